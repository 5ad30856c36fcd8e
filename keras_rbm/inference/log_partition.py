"""log Z by a named method."""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keras_rbm import random
from keras_rbm.checks import check_counts
from keras_rbm.inference.annealing.annealed_importance import (
    anneal_back,
    anneal_forwards,
    check_annealing,
    per_model,
)
from keras_rbm.inference.annealing.bidirectional import bidirectional, checked
from keras_rbm.inference.annealing.bridge_sampling import tempered_log_partition
from keras_rbm.inference.annealing.starting_point import (
    StartingPoint,
    find_starting_point,
)
from keras_rbm.inference.annealing.tempered_path import temperatures
from keras_rbm.inference.arguments import check_model, checked_base, checked_states
from keras_rbm.inference.estimates import LogPartition
from keras_rbm.inference.exact import exact_log_partition, smaller_layer
from keras_rbm.inference.gibbs import gibbs_chain
from keras_rbm.inference.messages.belief_propagation import sum_product
from keras_rbm.inference.messages.beliefs import check_binary
from keras_rbm.inference.messages.mean_field import mean_field_bound
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.soundness import check_finite

#: Replicas of tempering, less one, and its sweeps.
_REPLICAS, _STEPS = 20, 1000
_DETERMINISTIC = ("exact", "bethe", "mean_field")
_ANNEALED = ("ais", "bidirectional", "reverse_ais")
METHODS = (*_DETERMINISTIC, *_ANNEALED, "tempering")
_SEEDS = "start", "forward", "backward", "tempering", "gibbs"


def estimate_log_partition(
    potentials,
    method="ais",
    *,
    base=None,
    chains=None,
    betas=None,
    num_chains=100,
    initial_visible=None,
    steps=None,
    seed=0,
    progress=False,
    spread=None,
):
    """Computes or estimates log Z by a named method.

    All methods that sample begin with `find_starting_point`: chains and short annealing
    runs from several places search for the regions that hold the model's mass. The base
    model of the tempered path takes the means found there.

    | method | what it does | its interval is finite if |
    | --- | --- | --- |
    | `"exact"` | enumerates up to 25 units | always: a point |
    | `"ais"` | anneals forwards | weights behave well, and no mode was missed |
    | `"bidirectional"` | anneals both ways | the two directions overlap |
    | `"reverse_ais"` | anneals model samples back | weights behave well |
    | `"tempering"` | bridges tempered replicas | they exchange, travel and mix |
    | `"bethe"` | `sum_product`, binary units | never: error not known |
    | `"mean_field"` | a lower bound | never |

    `"ais"` also anneals back, from states that the search found, to check whether its
    chains have missed any; `"reverse_ais"` also anneals forwards. With
    `initial_visible` it does not, and is only as good as these samples of the model. No
    method can detect a mode that none of its chains has met.

    Args:
        potentials: `Potentials`.
        method: str, see above.
        base: tensor (V,) or (B, V), visible natural parameters of independent units
            with the means of the data, from which the search begins. It always begins
            in other places, too; with `None`, if no data are known, only there, and
            `note` says so.
        chains: tensor (C, V), states that other chains of a single model have reached,
            such as those of a learning rule: the search looks there, too.
        betas: int, number of temperatures (for tempering, replicas less one), spaced at
            equal thermodynamic distances (tempering: equal swap rates), by default 1000
            (20); or the values, as for `temperatures`.
        num_chains: int ≥ 2; with fewer than 10 the interval is infinite.
        initial_visible: tensor (C, V), model samples for `"reverse_ais"`; by default
            those of the search. With B models C is a multiple of B, and row i belongs
            to model i modulo B.
        steps: int, sweeps of each replica of `"tempering"`, by default 1000; for the
            annealing methods, additional Gibbs sweeps before chains are annealed back,
            by default 0.
        seed: int or integer tensor of shape (2,).
        progress: bool. Show progress bars of annealing.
        spread: function `(anneal, work, seed) -> log weights` that calls
            `anneal(share, seed)` on several devices, or `None`. `work` is the states to
            anneal back, or an int, the number of chains to anneal forwards.

    Returns:
        `LogPartition`, nats. If chains cannot tell an end of its interval, a warning
        says so once, and what to do.

    Raises:
        ValueError: if the method is unknown, a parameter not finite, the model too
            large to enumerate, or an argument out of range.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> z = keras_rbm.inference.estimate_log_partition(model, "bidirectional")
    >>> print(f"{z.value / np.log(2):.4f}")
    5.0000
    """
    check_model(potentials)
    check_method(potentials, method)
    check_finite(potentials)
    if method in _DETERMINISTIC:
        return _deterministic(potentials, method)
    if initial_visible is not None and method != "reverse_ais":
        raise ValueError(
            "Expected initial_visible with method 'reverse_ais' only. Received: "
            f"initial_visible with method {method!r}. Leave it out."
        )
    check_annealing(potentials, num_chains, minimum=2)
    if initial_visible is not None:
        initial_visible = checked_states(potentials, "initial_visible", initial_visible)
    base = checked_base(potentials, base)
    if betas is not None:
        temperatures(betas)
    if steps is not None:
        check_counts(0, steps=steps)
    seed = random.as_seed(seed)
    seeds = {name: random.fold_in(seed, i) for i, name in enumerate(_SEEDS)}
    start = find_starting_point(
        potentials, base, chains, num_chains=num_chains, seed=seeds["start"]
    )
    if method == "tempering":
        result = _tempered(potentials, start, betas, num_chains, steps, seeds)
    else:
        runs = _Runs(potentials, start, start.temperatures(betas), progress, spread)
        result = _annealed(runs, method, num_chains, initial_visible, steps, seeds)
    return _explained(result, method, base)


def _tempered(potentials, start, betas, num_chains, steps, seeds):
    result = tempered_log_partition(
        potentials,
        betas=_REPLICAS if betas is None else betas,
        num_chains=num_chains,
        steps=_STEPS if steps is None else steps,
        base=start.base,
        initial_visible=start.visible,
        ancestors=start.ancestors[:, 0],
        seed=seeds["tempering"],
    )
    return result.unless_refuted(start.least)


def _annealed(runs, method, num_chains, initial_visible, steps, seeds):
    start = runs.start
    given = initial_visible is not None
    states = runs.moved(initial_visible if given else start.visible, steps, seeds)
    backward = runs.back(states, seeds["backward"])
    reverse = LogPartition.from_log_weights(backward, reverse=True)
    reverse = reverse.unless_refuted(start.least)
    if given:  # the caller states that these are samples
        return reverse
    forward = runs.forth(num_chains, seeds["forward"])
    both = bidirectional(forward, backward, start.ancestors, start.least, start.absent)
    if method == "bidirectional":
        return both
    if method == "reverse_ais":
        return checked(reverse, both, start.absent, reverse=True)
    return checked(LogPartition.from_log_weights(forward), both, start.absent)


class _Runs(NamedTuple):
    """Annealing runs of B models from one starting point, in both directions."""

    potentials: Potentials
    start: StartingPoint
    betas: np.ndarray
    progress: bool
    spread: Callable | None

    def moved(self, states, steps, seeds):
        """Returns states after Gibbs sweeps; raises a ValueError if they are few."""
        chains = len(states) // self.num_models
        if chains < 2:
            raise ValueError(
                "Expected at least two chains for each model, for an error. Received: "
                f"{len(states)} initial_visible."
            )
        if not steps:
            return states
        tiled = self.potentials.repeat(chains)
        return gibbs_chain(tiled, states, seeds["gibbs"], num_sweeps=steps)

    def back(self, states, seed):
        """Returns log weights (M,) or (M, B) of states annealed back."""

        def anneal(states, seed):
            models = self.potentials
            if models.batch_size is not None:
                models = models.repeat(len(states) // self.num_models)
            return anneal_back(models, states, *self.path, seed, self.progress)

        return self._log_weights(anneal, states, seed)

    def forth(self, num_chains, seed):
        """Returns log weights (M,) or (M, B) of chains annealed forwards."""

        def anneal(count, seed):
            path = *self.path, count
            return anneal_forwards(self.potentials, *path, seed, self.progress)

        return self._log_weights(anneal, num_chains, seed)

    @property
    def path(self):
        return self.start.base, self.betas

    @property
    def num_models(self):
        return len(self.start.ancestors[0])

    def _log_weights(self, anneal, work, seed):
        def log_weights(work, seed):
            return anneal(work, seed).log_weights

        if self.spread is None:
            return per_model(log_weights(work, seed), self.potentials)
        return per_model(self.spread(log_weights, work, seed), self.potentials)


def check_method(potentials, method):
    """Raises a ValueError unless a method is known, and suits the model's units."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"Expected method one of {METHODS}. Received: {method!r}.")
    if method == "exact":
        smaller_layer(potentials)
    if method == "bethe":
        check_binary(potentials)


def _deterministic(potentials, method):
    if method == "exact":
        return LogPartition.exact(exact_log_partition(potentials))
    if method == "bethe":
        beliefs = sum_product(potentials, pairwise=None)
        return LogPartition.without_error(beliefs.log_partition)
    return mean_field_bound(potentials)


_REASONS = {
    "ais": "its chains' weights vary too much",
    "reverse_ais": "its chains' weights vary too much",
    "tempering": "replicas exchange or travel too rarely",
}
_CURES = {
    "tempering": "Use more replicas (betas=40) and steps, or method='bidirectional'.",
    "ais": "Use method='bidirectional', or ten times as many betas.",
}
_CURE = "Use ten times as many betas, or more chains (at least 10, by default 100)."


_BLIND = "No data are known (no fit, no adapt): the search began without them."


def _explained(result, method, base):
    """Returns an estimate with its note; warns if an end of the interval is open."""
    blind = _BLIND if base is None else ""
    finite = np.ravel(result.is_finite.numpy())
    if finite.all():
        return result._replace(note=blind)
    if finite.size > 1:
        which, known = f" of {np.sum(~finite)} of {finite.size} models", ""
    else:
        which = ""
        ends = [("at least", result.lower), ("at most", result.upper)]
        ends = [(words, np.ravel(end)[0]) for words, end in ends]
        known = "".join(f" It is {k} {v:.2f}." for k, v in ends if np.isfinite(v))
    note = (
        f"The error of log Z{which} is not known: {result.note or _REASONS[method]}."
        f"{known} "
        f"{_CURES.get(method, _CURE)} {blind}"
    ).rstrip()
    warnings.warn(f"log_partition({method!r}): {note}", stacklevel=4)
    return result._replace(note=note)
