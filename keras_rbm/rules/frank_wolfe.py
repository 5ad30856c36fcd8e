"""Frank-Wolfe steps, which grow a hidden layer."""

import math
import numbers

import keras
import tensorflow as tf

from keras_rbm import random
from keras_rbm.checks import check_counts
from keras_rbm.inference.frank_wolfe import (
    best_removal,
    likelihood_objective,
    linearized_objective,
)
from keras_rbm.inference.growth import Growth, grow
from keras_rbm.inference.refitting import refit
from keras_rbm.inference.reweighting import weighted_mean
from keras_rbm.rules.growing_samples import GrowingSamples
from keras_rbm.rules.rule import Rule
from keras_rbm.rules.step import Phases

_OBJECTIVES = {
    "likelihood": likelihood_objective,
    "linearized": linearized_objective,
}
_Schedule = keras.optimizers.schedules.LearningRateSchedule
#: Searches that a step makes at most before it goes without a unit.
_TRIES = 3
#: Of the judges, relative; below, the next search has a stronger penalty.
_LOW_ESS = 0.2
_STRONGER = 3.0
#: Gain of an away step at least, nats: less is rounding.
_LEAST_GAIN = 1e-5


@keras.saving.register_keras_serializable("keras_rbm")
class FrankWolfe(Rule):
    """Grows an `InfiniteRBM` by one hidden unit a step [1].

    A step draws samples of the model by chains that go on from step to step, searches
    for the unit `(w, d)` that most improves the batch's penalised likelihood
    `J = mean log p - l2/2 sum_i c_i |w_i, d_i|^2` by L-BFGS, adds it, and moves the
    visible biases until the visible means are the batch's up to chance. The whole
    training set as one batch with `objective="linearized"` is the published search; the
    exact gain, the judges, refusals, and fitted biases are additions. Large batches are
    its stochastic form.

    Other chains then judge the unit: carried over from model to model by sequential
    Monte Carlo [2] they estimate the gain. They go by models in between where one step
    would leave fewer than half of them, and by many where it would leave fewer than
    three in ten, or where the unit could gain more than a nat: then it makes modes
    that must be met as they form. Chains that still are copies of each other count as
    one in the error. A unit is refused, and another is searched, at most twice, if it

    * gains less than two standard errors, or
    * would leave searching or judging chains a relative effective sample size (ESS / S)
      below 1/50 in one step. Below 1/5 of the judges the penalty of the next search is
      three times as large (a penalty of 0 stays 0).

    | `fit` logs of the last batch | what it is |
    | --- | --- |
    | `gain`, `gain_error` | of its mean log-likelihood by the new unit, nats |
    | `refused`, `unjudged` | searches; those refused as too few chains counted |
    | `removed` | 1 after an away step |
    | `search_ess`, `judge_ess` | relative ESS; the judges' least, refused or not |
    | `acceptance` | of fractional models' Metropolis steps |
    | `num_units` | of the model |
    | `log_partition`, `log_partition_error` | log Z as the judges have added it up |

    Without a new unit gain, its error, `search_ess` and acceptance are 0, and
    `judge_ess` is 1 where none was searched. log Z is added up from the first unit on
    (from annealing on where `fit` finds a model that the rule has not grown;
    `train_on_batch` logs NaN for one). Where its error exceeds 0.2 nats at the end of
    an epoch, `fit` estimates log Z again by annealing both ways.

    Args:
        l2: float ≥ 0, the penalty of a unit, or a
            `keras.optimizers.schedules.LearningRateSchedule` of the number of units.
            A small one lets the units of a young model grow beyond what the samples
            can judge; later units gain less and need a smaller one.
        num_samples: int ≥ 2, S, number of chains of the search; half as many more,
            at least 20, judge. Some `V / 2S` nats of what a search sees are chance:
            where units gain less, take more chains.
        gibbs_steps: int ≥ 1, sweeps of the chains before a search; 20 times as many
            where they start, at examples of the first batch.
        objective: `"likelihood"`, the exact gain under the samples, or
            `"linearized"`, the paper's first-order step, which overshoots.
        step: `"uniform"`, each unit counts once, or `"line_search"`, a new unit
            counts as often, from 0 to 1, as is best for J.
        temperature: `"count"`, coefficients stay as they are, or `"learned"`, a
            common factor of all is fitted together with the biases, to the likelihood
            without the penalty (which `away_steps` mind: the two may undo each other).
        away_steps: bool. If `True`, a step first looks whether J, with the penalty
            of the moment for all units, would gain from removing a unit (with
            `step="line_search"`: from counting it less) by more than two standard
            errors of the search's samples, and does so with the one that gains most.
        bias_steps: int ≥ 1, sweeps at most for the biases.
        lbfgs_iterations: int ≥ 1, of a search, at most.
        num_starts: int ≥ 1, starts of a search: near an example, and every second
            one a small random unit. One is quicker and does on images such as MNIST.

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
        l2=0.05,
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
        if isinstance(l2, dict) and "class_name" in l2:
            l2 = keras.saving.deserialize_keras_object(l2)
        number = isinstance(l2, numbers.Real) and not isinstance(l2, bool)
        if not isinstance(l2, _Schedule) and not (number and 0.0 <= l2 < math.inf):
            raise ValueError(
                "Expected a number l2 ≥ 0, or a LearningRateSchedule. Received: "
                f"l2={l2!r}."
            )
        if not isinstance(away_steps, bool):
            raise ValueError(
                f"Expected away_steps True or False. Received: {away_steps!r}."
            )
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
        ):
            if value not in choices:
                raise ValueError(
                    f"Expected {name} {choices[0]!r} or {choices[1]!r}. Received: "
                    f"{name}={value!r}."
                )
        self.l2 = l2
        self.num_samples = num_samples
        self.gibbs_steps = gibbs_steps
        self.objective = objective
        self.step_size = step
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
                "an InfiniteRBM; InfiniteRBM.from_rbm(rbm, ...) goes on from a trained "
                "one."
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
        return [_Growing(self.samples)]

    def phases(self, step):
        return Phases(step.positive, None, self.losses(step))

    def update(self, model, step, phases):
        visible, weights = step.visible, step.weights
        model.optimizer.iterations.assign_add(1)
        for name, variable in self._logs.items():
            variable.assign(1.0 if name == "judge_ess" else 0.0)
        mean = weighted_mean(visible, weights)
        tf.cond(
            (tf.reduce_sum(weights) > 0.0) & tf.reduce_all(tf.math.is_finite(mean)),
            lambda: self._step(model, visible, weights, mean, step.root_seed),
            _nothing,
        )
        self.samples.leave(model)
        return self._report(model)

    def visible_chains(self, potentials):
        return tf.convert_to_tensor(self.chains)

    def _report(self, model):
        logs = {name: tf.convert_to_tensor(v) for name, v in self._logs.items()}
        in_use = tf.reduce_any(model.coefficients > 0.0)
        return logs | {
            "num_units": tf.where(in_use, model.num_units, 0),
            "log_partition": tf.convert_to_tensor(self.samples.log_partition),
            "log_partition_error": tf.convert_to_tensor(
                self.samples.log_partition_error
            ),
        }

    def _step(self, model, visible, weights, mean, seed):
        """Takes the step with a batch that has any weight, and its mean."""
        self.samples.advance(model, visible, weights, mean, random.fold_in(seed, 1))
        if self.away_steps:
            self._step_away(model, visible, weights, mean, random.fold_in(seed, 2))
        coefficients = model.growing_potentials().hidden.coefficients
        room = tf.convert_to_tensor(model.num_units) < model.max_hidden_units
        room |= tf.reduce_all(coefficients == 0.0)
        phases = self.samples.phases(visible, weights)
        judges = self.samples.judges()

        def attempt(number, l2, least, unjudged, _):
            growth = grow(
                model.growing_potentials(),
                phases,
                judges,
                random.fold_in(seed, 3 + number),
                objective=_OBJECTIVES[self.objective],
                l2=l2,
                num_starts=self.num_starts,
                lbfgs_iterations=self.lbfgs_iterations,
                line_search=self.step_size == "line_search",
                learn_temperature=self.temperature == "learned",
                **self._fitting(mean),
            )
            ess = growth.refit.judge_ess
            l2 *= tf.where(ess < _LOW_ESS, _STRONGER, 1.0)
            unjudged += tf.cast(~growth.judged, tf.float32)
            return number + 1, l2, tf.minimum(least, ess), unjudged, growth

        nothing = Growth.placeholder(phases, judges)
        start = (
            tf.constant(0),
            self._penalty(model),
            tf.constant(1.0),
            tf.constant(0.0),
        )
        tries, _, least, unjudged, growth = tf.while_loop(
            lambda number, *state: room & ~state[-1].accepted & (number < _TRIES),
            attempt,
            (*start, nothing),
        )
        for name, value in (
            ("gain", growth.refit.gain),
            ("gain_error", growth.refit.gain_error),
            ("search_ess", growth.search_ess),
            ("acceptance", growth.refit.acceptance),
        ):
            self._logs[name].assign(tf.where(growth.accepted, value, 0.0))
        self._logs["judge_ess"].assign(least)
        self._logs["unjudged"].assign(unjudged)
        refused = tf.cast(tries, tf.float32) - tf.cast(growth.accepted, tf.float32)
        self._logs["refused"].assign(refused)

        def adopt():
            model.insert_unit(growth.weights, growth.bias, growth.coefficient)
            model.coefficients.assign(growth.refit.scale * model.coefficients)
            self.samples.take(model, growth.refit, mean)

        tf.cond(growth.accepted, adopt, _nothing)

    def _step_away(self, model, visible, weights, mean, seed):
        """Removes the unit that J gains most from losing, or counts it less."""
        before = model.growing_potentials()
        phases = self.samples.phases(visible, weights)
        removal = best_removal(
            before,
            phases,
            self._penalty(model),
            line_search=self.step_size == "line_search",
        )

        def remove():
            counts = before.hidden.coefficients
            chosen = tf.range(tf.shape(counts)[0]) == removal.unit
            hidden = before.hidden._replace(
                coefficients=tf.where(chosen, removal.coefficient, counts)
            )
            after = before._replace(hidden=hidden)
            fitted = refit(
                after,
                lambda states: before.free_energy(states) - after.free_energy(states),
                phases,
                self.samples.judges(),
                seed,
                before=before,
                **self._fitting(mean),
            )
            tf.cond(
                removal.coefficient > 0.0,
                lambda: model.set_coefficient(removal.unit, removal.coefficient),
                lambda: model.remove_unit(removal.unit),
            )
            self.samples.take(model, fitted, mean)
            self._logs["removed"].assign(1.0)

        threshold = tf.maximum(2.0 * removal.error, _LEAST_GAIN)
        tf.cond(removal.gain > threshold, remove, _nothing)

    def _fitting(self, mean):
        return {
            "drift": self.samples.drift(mean),
            "bias_steps": self.bias_steps,
            "gibbs_steps": self.gibbs_steps,
        }

    def _penalty(self, model):
        l2 = self.l2
        if isinstance(l2, _Schedule):
            l2 = l2(tf.math.count_nonzero(model.coefficients, dtype=tf.int32))
        return tf.cast(l2, tf.float32)

    def get_config(self):
        l2 = self.l2
        if isinstance(l2, _Schedule):
            l2 = keras.saving.serialize_keras_object(l2)
        return {
            "l2": l2,
            "num_samples": self.num_samples,
            "gibbs_steps": self.gibbs_steps,
            "objective": self.objective,
            "step": self.step_size,
            "temperature": self.temperature,
            "away_steps": self.away_steps,
            "bias_steps": self.bias_steps,
            "lbfgs_iterations": self.lbfgs_iterations,
            "num_starts": self.num_starts,
        }


class _Growing(keras.callbacks.Callback):
    """Takes up a model as `fit` begins, and ends it where there is no more room."""

    def __init__(self, samples):
        super().__init__()
        self.samples = samples

    def on_train_begin(self, logs=None):
        self.samples.begin(self.model)

    def on_epoch_end(self, epoch, logs=None):
        self.samples.anchor(self.model, logs)
        if self.model.is_full:
            self.model.stop_training = True


def _nothing():
    """Is done where there is nothing to do."""
