"""Samples of a model by Markov chains, with checks of their arguments."""

import warnings

import numpy as np
import tensorflow as tf

from keras_rbm import inference, random
from keras_rbm.inference.annealing.options import Options
from keras_rbm.inference.annealing.path import temperatures
from keras_rbm.inference.annealing.replicas import moved_replicas, start_replicas
from keras_rbm.inference.annealing.search import find_start
from keras_rbm.inference.arguments import check_normalizable, check_sizes
from keras_rbm.inference.estimates import FEWEST
from keras_rbm.inference.gibbs import chain_in_parts
from keras_rbm.inference.missing import filled, is_known
from keras_rbm.models.data.rows import as_rows, as_values

#: Most chains of the search before tempering; more replicas start at the same states.
_SEARCHED = 500
#: Replicas of tempering, less one, if the rule has none.
_REPLICAS = 10


def draw(model, potentials, base, shape, steps, initial_visible, seed):
    """Draws visible states (chains, V) by block Gibbs sampling, see `sample`."""
    check_normalizable(potentials)
    initial_visible, clamp, seed = checked_chains(
        model, potentials.visible, base, shape, steps, initial_visible, seed
    )
    count = None if tf.is_tensor(shape[0]) else int(shape[0])

    def start(rows):
        if initial_visible is not None:
            return initial_visible[rows]
        first, stop = rows.start or 0, shape[0] if rows.stop is None else rows.stop
        units = potentials.visible
        natural = tf.broadcast_to(base, (stop - first, units.num_rows))
        return units.draw(natural, random.fold_in(seed, -1), first)

    sweeps = tf.cast(steps, tf.int32)
    return chain_in_parts(potentials, count, start, seed, sweeps, clamp)


def draw_tempered(
    model, potentials, base, shape, steps, betas, ladder, initial_visible, seed
):
    """Draws visible states (chains, V) by parallel tempering, see `sample`.

    `ladder` is the `Ladder` to go on from, or `None`.
    """
    check_normalizable(potentials)
    if ladder is None:
        betas = temperatures(_REPLICAS if betas is None else betas)
    initial_visible, clamp, seed = checked_chains(
        model, potentials.visible, base, shape, steps, initial_visible, seed
    )
    if ladder is None:
        if initial_visible is None and tf.executing_eagerly():
            initial_visible = _searched(potentials, base, shape[0], seed)
        chains = inference.parallel_tempering(
            potentials,
            num_samples=shape[0],
            steps=steps,
            betas=betas,
            base=base,
            initial_visible=initial_visible,
            clamp=clamp,
            seed=seed,
        )
    else:
        path = ladder.path(potentials)
        if initial_visible is None:
            initial_visible = ladder.states(shape[0])
        chains = start_replicas(path, ladder.betas, initial_visible, shape[0])
        chains = moved_replicas(path, chains, seed, steps, clamp)
    if tf.executing_eagerly() and not chains.mix:
        cure = "." if ladder is not None else ", or more replicas, such as betas=20."
        warnings.warn(
            "Expected chains that have forgotten where they started. Received: "
            f"{float(chains.round_trips):.2f} round trips of a chain between beta = 0 "
            "and 1, where 1 is needed, neighbors that accept at least "
            f"{float(tf.reduce_min(chains.swap_rates)):.0%} of their swaps, where 5 % "
            f"are, and {float(1.0 - chains.renewed):.0%} of samples that have never "
            "been at beta = 0, more than the round trips of the others let expect: "
            f"modes may have wrong shares. Use more steps{cure}",
            stacklevel=3,
        )
    return chains.visible[-1]


def _searched(potentials, base, count, seed):
    """Returns states (count, V) near which a search has found the model's mass.

    Replicas that start elsewhere may never find a mode, which nothing then tells.
    """
    options = Options(max(FEWEST, min(count, _SEARCHED)), None, seed, base)
    states = find_start(potentials, options.checked(potentials)).visible
    return tf.gather(states, tf.range(count) % len(states))


def checked_chains(model, units, base, shape, steps, initial_visible, seed):
    """Returns the states to start from, which of them to keep, and the seed, checked.

    NaN among the states to start from is drawn from the base, and all other values are
    then kept, also in rows without NaN.
    """
    check_sizes(0, steps=steps)
    if initial_visible is None:
        return None, None, _seed(model, seed)
    part = model.form.visible._replace(has_gaps=True)
    fill = model.form.visible.fill
    initial_visible = as_rows(part.rows(as_values(initial_visible, fill)))
    part.check(initial_visible, "initial_visible")
    if not tf.is_tensor(shape[0]) and initial_visible.shape[0] != shape[0]:
        raise ValueError(
            f"Expected initial_visible of shape {shape}. Received: shape "
            f"{tuple(initial_visible.shape)}."
        )
    seed, known = _seed(model, seed), is_known(initial_visible)
    if tf.executing_eagerly() and np.all(known):
        return initial_visible, None, seed
    natural = tf.broadcast_to(base, (shape[0], units.num_rows))
    start = units.draw(natural, random.fold_in(seed, -1))
    kept = known & tf.reduce_any(~known)
    return filled(initial_visible, start), kept, seed


def _seed(model, seed):
    return model._next_seed() if seed is None else random.as_seed(seed)
