"""Frank-Wolfe steps, which grow a hidden layer."""

import keras
import tensorflow as tf

from keras_rbm import random
from keras_rbm.checks import check_counts
from keras_rbm.inference.growing.frank_wolfe import (
    likelihood_objective,
    linearized_objective,
)
from keras_rbm.inference.growing.growth import Growth, grow
from keras_rbm.inference.growing.reweighting import weighted_mean
from keras_rbm.rules.away_step import step_away
from keras_rbm.rules.growing_samples import Growing, GrowingSamples
from keras_rbm.rules.penalty import Penalty
from keras_rbm.rules.rule import Rule
from keras_rbm.rules.step import Phases

_OBJECTIVES = {
    "likelihood": likelihood_objective,
    "linearized": linearized_objective,
}
#: Most searches of a step before it ends without a unit.
_TRIES = 3
#: Relative ESS of held-out chains below which the next search has a stronger penalty.
_LOW_ESS = 0.2
_STRONGER = 3.0
#: Arguments that are attributes of the same name.
_AS_GIVEN = (
    "num_samples", "gibbs_steps", "objective", "step", "temperature", "away_steps",
    "bias_steps", "lbfgs_iterations", "num_starts",
)  # fmt: skip


@keras.saving.register_keras_serializable("keras_rbm")
class FrankWolfe(Rule):
    """Grows an `InfiniteRBM` by one hidden unit per step [1].

    A step draws samples of the model by persistent chains, and searches by L-BFGS for
    the unit `(w, d)` that most improves the batch's penalized likelihood
    `J = mean log p - l2/2 sum_i c_i |w_i, d_i|^2`. It adds the unit, and moves the
    visible biases until the visible means equal the batch's up to chance. The published
    search is the whole training set as one batch with `objective="linearized"`. Exact
    gain, held-out chains, refusals, fitted biases and smaller batches are additions.

    Held-out chains then judge the unit: they estimate its gain while they are carried
    over from model to model by sequential Monte Carlo [2]. They pass through models in
    between if one step would leave fewer than half of them, and through many if fewer
    than three in ten or the unit could gain more than a nat: then it creates modes that
    chains must meet as they form. Chains that are still copies of each other count as
    one in the error. A unit is refused, and another searched, at most twice, if it

    * gains less than two standard errors,
    * would leave searching or held-out chains a relative effective sample size
      (ESS / S) below 1/50 in one step, or
    * would give an example a probability above 1: no chain is where the unit is on,
      and the ESS counts as 0.

    If held-out chains' ESS is below 1/5 the next penalty is threefold (0 stays 0).

    | `fit` logs of the last batch | meaning |
    | --- | --- |
    | `gain`, `gain_error` | in mean log-likelihood, from the new unit, nats |
    | `refused`, `unjudged` | refused searches; those with too few effective chains |
    | `removed` | 1 after an away step |
    | `search_ess`, `judge_ess` | relative ESS; the least one of held-out chains |
    | `acceptance` | of fractional models' Metropolis steps |
    | `num_units` | of the model |
    | `log_partition`, `log_partition_error` | log Z, added up from the gains |

    Without a new unit, `gain`, `gain_error`, `search_ess` and `acceptance` are 0;
    `judge_ess` is 1 if no unit was searched. log Z is added up from the first unit, or
    from annealing if `fit` starts with a model that the rule has not grown
    (`train_on_batch` logs NaN for it). If its error exceeds 0.2 nats at the end of
    an epoch, `fit` estimates log Z again by annealing in both directions.

    Args:
        l2: float ≥ 0, the penalty of a unit, or a
            `keras.optimizers.schedules.LearningRateSchedule` of the number of units.
            With a small penalty the units of a young model grow beyond what the samples
            can judge; later units gain less and need a smaller one.
        num_samples: int ≥ 2, S, number of chains of the search; half as many more,
            at least 20, judge. About `V / 2S` nats of the gain in a search are chance:
            if units gain less, use more chains.
        gibbs_steps: int ≥ 1, sweeps of the chains before a search; 20 times as many
            when they start, at examples of the first batch.
        objective: `"likelihood"`, the exact gain under the samples, or
            `"linearized"`, the paper's first-order step, which overshoots.
        step: `"uniform"`, each unit counts once, or `"line_search"`, a new unit
            gets the coefficient, from 0 to 1, that is best for J.
        temperature: `"count"`, coefficients do not change, or `"learned"`, a common
            factor of all is fitted together with the biases, to the likelihood
            without the penalty. `away_steps` include it: the two may undo each other.
        away_steps: bool. If `True`, a step first checks whether removing a unit (with
            `step="line_search"`: reducing its coefficient) would raise J, with the
            current penalty for all units, by more than two standard errors of the
            search's samples, and removes the unit that gains most.
        bias_steps: int ≥ 1, maximum number of sweeps for the biases.
        lbfgs_iterations: int ≥ 1, most iterations of a search.
        num_starts: int ≥ 1, starts of a search: near an example, and every second
            one a small random unit. One is faster and enough for images such as MNIST.

    Attributes:
        chains: variable (S + J, V), the chains' visible states; the last J judge.

    Raises:
        ValueError: if an argument is out of range, or the model does not grow.

    Example:

    >>> data = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 100, axis=0)
    >>> grown = keras_rbm.InfiniteRBM(8, seed=0)
    >>> grown.compile(rule=keras_rbm.rules.FrankWolfe(l2=0.05, num_samples=500))
    >>> history = grown.fit(data, batch_size=200, epochs=3, verbose=0)
    >>> [int(units) for units in history.history["num_units"]]
    [1, 2, 3]

    References:
        1. Ping, Liu, Ihler. Learning infinite RBMs with Frank-Wolfe. NIPS 2016.
        2. Del Moral, Doucet, Jasra. Sequential Monte Carlo samplers. JRSS B, 2006.
    """

    grows = True

    def __init__(
        self,
        l2=0.02,
        num_samples=5000,
        gibbs_steps=5,
        *,
        objective="likelihood",
        step="uniform",
        temperature="count",
        away_steps=False,
        bias_steps=10,
        lbfgs_iterations=30,
        num_starts=2,
    ):
        super().__init__()
        self._penalty = Penalty(l2)
        check_counts(2, num_samples=num_samples)
        check_counts(
            gibbs_steps=gibbs_steps,
            bias_steps=bias_steps,
            lbfgs_iterations=lbfgs_iterations,
            num_starts=num_starts,
        )
        for name, value, choices in (
            ("objective", objective, tuple(_OBJECTIVES)),
            ("step", step, ("uniform", "line_search")),
            ("temperature", temperature, ("count", "learned")),
            ("away_steps", away_steps, (True, False)),
        ):
            if value not in choices:
                raise ValueError(
                    f"Expected {name} {choices[0]!r} or {choices[1]!r}. Received: "
                    f"{name}={value!r}."
                )
        self.l2 = self._penalty.l2
        self.num_samples = num_samples
        self.gibbs_steps = gibbs_steps
        self.objective = objective
        self.step = step
        self.temperature = temperature
        self.away_steps = away_steps
        self.bias_steps = bias_steps
        self.lbfgs_iterations = lbfgs_iterations
        self.num_starts = num_starts
        self.samples = GrowingSamples(num_samples, gibbs_steps)

    def check(self, model, optimizer=None):
        super().check(model, optimizer)
        if not model.grows:
            raise ValueError(
                "Expected a model that adds hidden units. Received: "
                f"{type(self).__name__} for {type(model).__name__} '{model.name}'. Use "
                "an InfiniteRBM, InfiniteRBM.from_rbm(rbm, ...) for a trained one."
            )

    def build(self, model):
        super().build(model)
        self.samples.build(self, model)
        self._logs = {
            name: self.add_variable(name, (), "zeros")
            for name in (
                "gain", "gain_error", "refused", "removed", "search_ess", "acceptance",
                "judge_ess", "unjudged",
            )
        }  # fmt: skip

    @property
    def chains(self):
        return self.samples.chains

    def callbacks(self):
        return [Growing(self.samples)]

    def phases(self, step):
        return Phases(step.positive, None, self.losses(step))

    def update(self, model, step, phases):
        visible, weights = step.visible, step.weights
        model.optimizer.iterations.assign_add(1)
        for name, log in self._logs.items():
            log.assign(1.0 if name == "judge_ess" else 0.0)
        mean = weighted_mean(visible, weights)
        tf.cond(
            (tf.reduce_sum(weights) > 0.0) & tf.reduce_all(tf.math.is_finite(mean)),
            lambda: self._step(model, visible, weights, mean, step.root_seed),
            lambda: None,
        )
        self.samples.leave(model)
        return self._report(model)

    def visible_chains(self, potentials):
        return tf.convert_to_tensor(self.chains)

    def _report(self, model):
        logs = {name: tf.convert_to_tensor(v) for name, v in self._logs.items()}
        in_use = tf.reduce_any(model.coefficients > 0.0)
        logs["num_units"] = tf.where(in_use, model.num_units, 0)
        for name in ("log_partition", "log_partition_error"):
            logs[name] = tf.convert_to_tensor(getattr(self.samples, name))
        return logs

    def _step(self, model, visible, weights, mean, seed):
        """Takes the step with a batch of positive weight, and its mean."""
        self.samples.advance(model, visible, weights, mean, random.fold_in(seed, 1))
        if self.away_steps:
            removed = step_away(
                model,
                self.samples,
                self.samples.phases(visible, weights),
                mean,
                random.fold_in(seed, 2),
                l2=self._penalty.at(model),
                **self._fitting(mean),
            )
            self._logs["removed"].assign(removed)
        coefficients = model._growing_potentials().hidden.coefficients
        room = tf.convert_to_tensor(model.num_units) < model.max_hidden_units
        room |= tf.reduce_all(coefficients == 0.0)
        phases = self.samples.phases(visible, weights)
        held_out_chains = self.samples.held_out_chains()

        def attempt(number, l2, least, unjudged, _):
            growth = grow(
                model._growing_potentials(),
                phases,
                held_out_chains,
                random.fold_in(seed, 3 + number),
                objective=_OBJECTIVES[self.objective],
                l2=l2,
                num_starts=self.num_starts,
                lbfgs_iterations=self.lbfgs_iterations,
                learn_temperature=self.temperature == "learned",
                log_partition=self.samples.log_partition_now(),
                **self._fitting(mean),
            )
            ess = growth.refit.judge_ess
            l2 *= tf.where(ess < _LOW_ESS, _STRONGER, 1.0)
            unjudged += tf.cast(~growth.judged, tf.float32)
            return number + 1, l2, tf.minimum(least, ess), unjudged, growth

        start = (tf.constant(0), self._penalty.at(model), tf.constant(1.0))
        nothing = tf.constant(0.0), Growth.placeholder(phases, held_out_chains)
        tries, _, least, unjudged, growth = tf.while_loop(
            lambda number, *state: room & ~state[-1].accepted & (number < _TRIES),
            attempt,
            (*start, *nothing),
        )
        found = {"search_ess": growth.search_ess} | growth.refit._asdict()
        for name in ("gain", "gain_error", "search_ess", "acceptance"):
            self._logs[name].assign(tf.where(growth.accepted, found[name], 0.0))
        refused = tries - tf.cast(growth.accepted, tf.int32)
        counts = {"judge_ess": least, "unjudged": unjudged, "refused": refused}
        for name, value in counts.items():
            self._logs[name].assign(tf.cast(value, tf.float32))

        def adopt():
            model.insert_unit(growth.weights, growth.bias, growth.coefficient)
            model.coefficients.assign(growth.refit.scale * model.coefficients)
            self.samples.take(model, growth.refit, mean)

        tf.cond(growth.accepted, adopt, lambda: None)

    def _fitting(self, mean):
        return {
            "drift": self.samples.drift(mean),
            "bias_steps": self.bias_steps,
            "gibbs_steps": self.gibbs_steps,
            "line_search": self.step == "line_search",
        }

    def get_config(self):
        as_given = {name: getattr(self, name) for name in _AS_GIVEN}
        return {"l2": self._penalty.config()} | as_given
