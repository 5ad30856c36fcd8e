"""log Z by a named method."""

import sys
import warnings

import numpy as np

from keras_rbm.inference.annealing.both_ways import annealed
from keras_rbm.inference.annealing.replica_bridge import (
    from_ladder,
    moved_ladder,
    tempered,
)
from keras_rbm.inference.annealing.replicas import check_single
from keras_rbm.inference.annealing.search import find_start
from keras_rbm.inference.arguments import check_finite, check_model
from keras_rbm.inference.estimates import LogPartition
from keras_rbm.inference.exact import exact_log_partition, is_quick, smaller_layer
from keras_rbm.inference.messages.belief_propagation import sum_product
from keras_rbm.inference.messages.beliefs import check_binary
from keras_rbm.inference.messages.mean_field import mean_field_bound
from keras_rbm.inference.traces import full_precision

_ANNEALED = ("ais", "bidirectional", "reverse_ais")
#: Intervals of a ladder this many times as wide as those that are narrow enough are
#: annealed, too, if no precision is asked for: mostly that takes longer for no less.
_WIDE = 3.0
METHODS = ("exact", "bethe", "mean_field", *_ANNEALED, "tempering")


def log_partitions(potentials, methods, options, ladder=None):
    """Estimates log Z by several methods, with one search and one annealing for all.

    Args:
        potentials: `Potentials`.
        methods: list of str; `None` is for `"exact"`, where that takes a second at
            most, else for the `ladder`, and where there is none, or its interval is
            open or wide, for `"ais"`.
        options: `Options`.
        ladder: `Ladder` that training has left, from which tempering goes on.

    Returns:
        dict of method to `LogPartition`.
    """
    for method in methods:
        _check_name(method)
    check_model(potentials)
    check_finite(potentials)
    quick = None in methods and is_quick(potentials)
    names = {m: m or ("exact" if quick else "ais") for m in methods}
    sampled = {m: name for m, name in names.items() if name not in _DETERMINISTIC}
    with full_precision():
        if sampled or quick:
            options = options.checked(potentials)
        # These first: they refuse models that do not suit before others take time.
        estimates = {
            method: _DETERMINISTIC[name](potentials)
            for method, name in names.items()
            if name in _DETERMINISTIC
        }
        if sampled:
            estimates |= _by_chains(potentials, sampled, options, ladder)
    for method in sampled:
        if not np.all(estimates[method].is_finite):
            # At the line that has asked a model for its log Z.
            text = f"log_partition({method or 'ais'!r}): {estimates[method].note}"
            warnings.warn(text, stacklevel=_levels_to_user())
    return {method: estimates[method].as_numbers() for method in methods}


def _by_chains(potentials, names, options, ladder):
    """Returns estimates by the methods that sample, a dict of what is asked to name."""
    estimates, of_ladder = {}, None
    if "tempering" in names:
        check_single(potentials)
    moved = ladder and moved_ladder(potentials, ladder, options)
    if moved:
        of_ladder = from_ladder(potentials, ladder, moved, options)
    if of_ladder is not None and {None, "tempering"} & names.keys():
        most = _WIDE if options.precision is None else 1.0
        known = {"tempering"} | ({None} if options.excess(of_ladder) <= most else set())
        estimates = dict.fromkeys(known & names.keys(), of_ladder)
    rest = {m: name for m, name in names.items() if m not in estimates}
    if not rest:
        return estimates
    samples = None
    if of_ladder is not None:  # else its shares of modes are those of its start
        samples = moved.visible[-1], np.arange(options.num_chains) % ladder.num_chains
    start = find_start(potentials, options, samples)
    if rest.pop("tempering", None):
        estimates["tempering"] = tempered(potentials, start, options)
    if rest:
        run = annealed(potentials, start, options, [*rest.values()])
        estimates |= {m: getattr(run, name) for m, name in rest.items()}
    if None in rest and of_ladder is not None:
        of_ladder = of_ladder.without_refuted_upper_end(start.lower_bound)
        both = of_ladder, estimates[None]
        estimates[None] = min(both, key=lambda z: float(z.upper - z.lower))
    return estimates


def check_method(potentials, method):
    """Raises a ValueError unless a method is known, and suits the model's units."""
    _check_name(method)
    if method == "exact":
        smaller_layer(potentials)
    if method == "bethe":
        check_binary(potentials)


def _check_name(method):
    if method is not None and not (isinstance(method, str) and method in METHODS):
        raise ValueError(f"Expected method one of {METHODS}. Received: {method!r}.")


def _bethe(potentials):
    beliefs = sum_product(potentials, pairwise=None)
    return LogPartition.without_error(beliefs.log_partition)


_DETERMINISTIC = {
    "exact": lambda model: LogPartition.exact(exact_log_partition(model)),
    "bethe": _bethe,
    "mean_field": mean_field_bound,
}


def _levels_to_user():
    """Returns the `stacklevel` of the first caller outside of this library."""
    frame, level = sys._getframe(1), 1
    while frame and frame.f_globals.get("__name__", "").startswith("keras_rbm."):
        frame, level = frame.f_back, level + 1
    return level
