"""log Z by a named method."""

import math
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm._checks import check_counts, check_numbers
from keras_rbm.inference.annealing.annealing import annealings
from keras_rbm.inference.annealing.starting_point import (
    checked_search,
    seeds_of,
    starting_point,
)
from keras_rbm.inference.annealing.tempered_partition import bridged
from keras_rbm.inference.annealing.tempered_path import temperatures
from keras_rbm.inference.annealing.tempering import check_single
from keras_rbm.inference.arguments import check_finite, check_model
from keras_rbm.inference.estimates import FEWEST, LogPartition
from keras_rbm.inference.exact import enumerated_log_partition, smaller_layer
from keras_rbm.inference.full_precision import full_precision
from keras_rbm.inference.messages.belief_propagation import sum_product
from keras_rbm.inference.messages.beliefs import check_binary
from keras_rbm.inference.messages.mean_field import mean_field_bound
from keras_rbm.inference.potentials import Potentials

#: Temperatures of annealing, if its interval is too wide at the number before: the last
#: only if a precision is asked for. By default this one, in nats.
_BETAS, _ALL_BETAS, _PRECISION = (100, 1000), (100, 1000, 10_000), 0.05
#: Replicas of tempering, less one, and its sweeps.
_REPLICAS, _STEPS = 20, 1000
_DETERMINISTIC = ("exact", "bethe", "mean_field")
_ANNEALED = ("ais", "bidirectional", "reverse_ais")
METHODS = (*_DETERMINISTIC, *_ANNEALED, "tempering")


def estimate_log_partition(
    potentials: Potentials,
    method: str = "ais",
    *,
    base: ArrayLike | None = None,
    chains: ArrayLike | None = None,
    betas: ArrayLike | None = None,
    precision: float | None = None,
    num_chains: int = 100,
    initial_visible: ArrayLike | None = None,
    steps: int | None = None,
    seed: int | tf.Tensor = 0,
    search: bool = True,
    progress: bool = False,
) -> LogPartition:
    """Computes or estimates log Z by a named method.

    All methods that sample begin with `find_starting_point`: chains and short annealing
    runs from several places search for the regions that hold the model's mass. The base
    model of the tempered path takes the means found there.

    | method | what it does | its interval is finite if |
    | --- | --- | --- |
    | `"exact"` | enumerates up to 25 units | always: a point |
    | `"ais"` | AIS from searched means | weights behave, no mode was missed |
    | `"bidirectional"` | anneals both ways | the two directions overlap |
    | `"reverse_ais"` | anneals model samples back | weights behave well |
    | `"tempering"` | bridges tempered replicas | they exchange, travel and mix |
    | `"bethe"` | `sum_product`, binary units | never: error not known |
    | `"mean_field"` | a lower bound | never |

    `"ais"` does more than the field's AIS [1, 2], which `search=False` gives: it starts
    at the means that the search found, spaces its temperatures by measured lengths, and
    also anneals back, from states that the search found, to check whether its chains
    have missed any. `"reverse_ais"` also anneals forwards: `anneal` returns all three.
    With `initial_visible` it does not, and is only as good as these samples of the
    model. No method can detect a mode that none of its chains has met.

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
            equal thermodynamic distances (tempering: equal swap rates); or the values,
            as for `temperatures`. By default annealing takes 100, and 1000 if its
            interval is then not within ± 0.05 nats, or there is no search; tempering
            has 21 replicas.
        precision: float > 0, nats. Annealing stops once its interval is within ± this,
            and takes 100, 1000 or 10,000 temperatures. More would not help where most
            of the error comes from the states annealed back; more chains would. Not
            with `betas`; other methods do not use it.
        num_chains: int ≥ 2; with fewer than 10 the interval is infinite.
        initial_visible: tensor (C, V), model samples for `"reverse_ais"`; by default
            those of the search. With B models C is a multiple of B, and row i belongs
            to model i modulo B.
        steps: int, sweeps of each replica of `"tempering"`, by default 1000; for the
            annealing methods, additional Gibbs sweeps before chains are annealed back,
            by default 0.
        search: bool. With `False`, `"ais"` and `"tempering"` are the field's own: they
            start at `base`, or zeros, at equally spaced temperatures.
        seed: int or integer tensor of shape (2,).
        progress: bool. Show progress bars of annealing.

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

    References:
        1. Neal. Annealed importance sampling. Statistics and Computing, 2001.
        2. Salakhutdinov, Murray. On the quantitative analysis of deep belief networks.
           ICML 2008.
    """
    return estimate_by_each(
        potentials,
        [method],
        base=base,
        chains=chains,
        betas=betas,
        precision=precision,
        num_chains=num_chains,
        initial_visible=initial_visible,
        steps=steps,
        seed=seed,
        search=search,
        progress=progress,
    )[method]


def estimate_by_each(
    potentials: Potentials, methods: Sequence[str], **options: Any
) -> dict[str, LogPartition]:
    """Estimates log Z by several methods, with one search and one annealing for all.

    Args:
        potentials, **options: as for `estimate_log_partition`.
        methods: list of str.

    Returns:
        dict of method to what `estimate_log_partition` returns.
    """
    for method in methods:
        _check_name(method)
        if options.get("initial_visible") is not None and method != "reverse_ais":
            raise ValueError(
                "Expected initial_visible with method 'reverse_ais' only. Received: "
                f"initial_visible with method {method!r}. Leave it out."
            )
    betas = options.pop("betas", None)
    tries, half_width = _tries(betas, **options)
    options.pop("precision", None)
    check_model(potentials)
    check_finite(potentials)
    with full_precision():
        # These first: they refuse models that do not suit before others take time.
        estimates = {
            method: _deterministic(potentials, method)
            for method in methods
            if method in _DETERMINISTIC
        }
        annealed = [method for method in methods if method in _ANNEALED]
        start = None
        if annealed:
            runs = annealings(potentials, tries, **options)
            found, start = _narrow(runs, annealed, half_width)
            estimates |= found
        if "tempering" in methods:
            estimates["tempering"] = _tempered(potentials, start, betas, **options)
    for method in methods:
        if method not in _DETERMINISTIC and not np.all(estimates[method].is_finite):
            # At the line that has asked a model for its log Z.
            note = estimates[method].note
            level = _levels_to_user()
            warnings.warn(f"log_partition({method!r}): {note}", stacklevel=level)
    return {method: estimates[method].as_numbers() for method in methods}


def _levels_to_user():
    """Returns the `stacklevel` of the first caller outside of this library."""
    frame, level, package = sys._getframe(1), 1, __name__.split(".")[0]
    while frame is not None and _package_of(frame) == package:
        frame, level = frame.f_back, level + 1
    return level


def _package_of(frame):
    return frame.f_globals.get("__name__", "").split(".")[0]


def _tries(betas, precision=None, search=True, num_chains=100, **options):
    """Returns the `betas` to try, and half the width of an interval to stop at."""
    if precision is not None:
        check_numbers(precision=precision)
        if not precision > 0.0 or betas is not None:
            raise ValueError(
                "Expected precision > 0, in nats, and no betas with it. Received: "
                f"precision={precision!r}, betas={betas!r:.200}."
            )
    few = isinstance(num_chains, int) and num_chains < FEWEST  # an infinite interval
    if betas is not None or not search or few:
        return (betas,), math.inf
    return (_BETAS, _PRECISION) if precision is None else (_ALL_BETAS, precision)


def _narrow(runs, methods, half_width):
    """Returns the estimates, each of its first narrow run or the last; and a start."""
    found, narrow = {}, set()
    for run in runs:
        for method in set(methods) - narrow:
            found[method] = z = getattr(run, method)
            if np.max(z.upper - z.lower) <= 2.0 * half_width:
                narrow.add(method)
        if len(narrow) == len(methods):
            break
    return found, run.start


def check_method(potentials: Potentials, method: str) -> None:
    """Raises a ValueError unless a method is known, and suits the model's units."""
    _check_name(method)
    if method == "exact":
        smaller_layer(potentials)
    if method == "bethe":
        check_binary(potentials)


def _check_name(method):
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"Expected method one of {METHODS}. Received: {method!r}.")


def _deterministic(potentials, method):
    if method == "exact":
        return LogPartition.exact(enumerated_log_partition(potentials))
    if method == "bethe":
        beliefs = sum_product(potentials, pairwise=None)
        return LogPartition.without_error(beliefs.log_partition)
    return mean_field_bound(potentials)


def _tempered(
    potentials,
    start,
    betas,
    *,
    base=None,
    chains=None,
    num_chains=100,
    steps=None,
    seed=0,
    search=True,
    **_of_annealing,
):
    """Returns the estimate by tempering from a `StartingPoint`, by default a new."""
    check_single(potentials)
    betas = temperatures(_REPLICAS if betas is None else betas)
    steps = _STEPS if steps is None else steps
    check_counts(5, steps=steps)
    seeds = seeds_of(seed)
    if start is None:
        base, chains = checked_search(potentials, base, chains, num_chains)
        start = starting_point(
            potentials, base, chains, num_chains, seeds["start"], search
        )
    result = bridged(
        potentials,
        start.base,
        betas,
        num_chains,
        steps,
        start.visible,
        start.ancestors[:, 0],
        seeds["tempering"],
    )
    result = result.without_refuted_upper_end(start.lower_bound)
    return start.explained(result, "tempering")
