"""Where annealing starts: independent units with the model's own means.

The base model of a tempered path should be near the model. Of all models of
independent units the one with the model's own marginals has the least
KL(model || base). Chains estimate the marginals, but chains that start in one place may
stay there, and a mode that few of them reach is lost in their mean. So chains start in
several places and are clustered by where they end. The weights of a short annealing run
from the mean of each cluster then tell how much of the model's mass lies there.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.checks import check_counts
from keras_rbm.inference.annealing.annealed_importance import anneal_forwards
from keras_rbm.inference.annealing.loop import block_ends
from keras_rbm.inference.annealing.regions import Pool, Regions
from keras_rbm.inference.annealing.single_site import Visited, single_site_sweeps
from keras_rbm.inference.annealing.tempered_path import TemperedPath, temperatures
from keras_rbm.inference.arguments import check_model, checked_base, checked_states
from keras_rbm.inference.estimates import effective_number
from keras_rbm.inference.gibbs import (
    ChainState,
    metropolis_step,
    proposal,
    sweep_noise,
)
from keras_rbm.inference.traces import traced_by_size

#: Sweeps of chains, which are averaged over the second half: for chains that start
#: anywhere, and for chains that start at states that may already be samples.
_SWEEPS, _FEWER_SWEEPS = 100, 50
#: Chains of each kind of start, and of each exploratory run, as a share of M.
_FEW = 0.4
#: Chains of all models whose noise is in memory at a time.
_ROWS_AT_ONCE = 10_000
#: Temperatures of an exploratory annealing run, and of the runs from the new base: one
#: follows another until states have that many independent ancestors.
_LOOK, _REFINE, _ENOUGH_ANCESTORS = 100, (250, 500, 1000), 25
#: Share of the first base's means in those of the new base: a base as narrow as the
#: mode that was found would never reach another.
_BROAD = 0.3
#: Visited states are good enough as samples if no estimate of log Z, less two of its
#: errors, exceeds the log of their mass by this many nats.
_NEARLY_ALL = 0.02
#: Share of the temperatures that are equally spaced, whatever lengths were measured.
_EVEN = 0.1


class StartingPoint(NamedTuple):
    """A base model for B models, samples of them, and how to space temperatures.

    Attributes:
        base: tensor (V,) or (B, V), visible natural parameters at beta = 0.
        visible: tensor (M, V) or (M · B, V), states that are nearly model samples.
        ancestors: int array (M, B); states with the same ancestor are not independent.
        betas, lengths: arrays (n,), inverse temperatures and the thermodynamic length
            from 0 up to each.
        least: array (B,), a lower bound of log Z, at 97.5 %.
        absent: array (B,), share of the mass that is known to lie in regions without
            any of the states.
    """

    base: tf.Tensor
    visible: tf.Tensor
    ancestors: np.ndarray
    betas: np.ndarray
    lengths: np.ndarray
    least: np.ndarray
    absent: np.ndarray

    def temperatures(self, betas=None, default=1000):
        """Returns inverse temperatures: those given, or a number of well-spaced ones.

        Steps of equal thermodynamic length add equally to the variance of the log
        weights [1].

        Args:
            betas: a sequence, as for `temperatures`; or int, the number of steps of
                equal measured length; `None` for `default` steps.

        References:
            1. Grosse, Maddison, Salakhutdinov. Annealing between distributions by
               averaging moments. NIPS 2013.
        """
        if betas is not None and np.ndim(betas):
            return temperatures(betas)
        count = len(temperatures(default if betas is None else betas)) - 1
        lengths = self.lengths
        if not np.isfinite(lengths).all():  # energies beyond float32
            lengths = self.betas
        share = (1.0 - _EVEN) * lengths / lengths[-1] + _EVEN * self.betas
        values = np.interp(np.linspace(0.0, 1.0, count + 1), share, self.betas)
        values[0], values[-1] = 0.0, 1.0
        return temperatures(values)


def find_starting_point(potentials, base=None, chains=None, *, num_chains=100, seed=0):
    """Finds a base model near the model, with samples of it.

    Args:
        potentials: `Potentials`, B models if the biases have a batch dimension.
        base: tensor (V,) or (B, V), visible natural parameters of independent units
            with the means of the data, or `None` if they are not known.
        chains: tensor (C, V), states that a single model's own chains have reached,
            such as those of a learning rule, or `None`.
        num_chains: int ≥ 2, M.
        seed: int or integer tensor of shape (2,).

    Returns:
        `StartingPoint`.
    """
    check_model(potentials)
    check_counts(2, num_chains=num_chains)
    base = checked_base(potentials, base)
    if chains is not None:
        chains = checked_states(potentials, "chains", chains)
    seeds = iter(random.fold_in(seed, number) for number in range(100))
    batch = potentials.batch_size
    pool = Pool(1 if batch is None else int(batch), potentials.visible.encode)
    few = max(2, round(_FEW * num_chains))
    rows = few * pool.batch
    units = potentials.visible

    def annealed(bases, betas, chains=num_chains):
        """Anneals from each of K bases (K, B, V); returns lengths along the way."""
        runs = len(bases)
        bases = tf.reshape(bases, (-1, width))
        bases = bases[0] if len(bases) == 1 else bases
        models = potentials.repeat(runs)
        new = anneal_forwards(models, bases, betas, chains, next(seeds))
        pool.add(new, runs)
        steps = np.reshape(new.steps, (-1, chains, runs * pool.batch))
        lengths = np.cumsum(np.sqrt(steps.var(1).mean(1) + 1e-12))
        return block_ends(betas), np.append(0.0, lengths)

    def settled(states, sweeps=_FEWER_SWEEPS):
        """Returns each chain's means over sweeps, (rows, V), and their last states."""
        models = potentials.repeat(len(states) // pool.batch)
        states = single_site_sweeps(models, states, next(seeds))
        return _means(models, states, tf.constant(sweeps), next(seeds))

    def of_models(values):
        """Returns a value for each model, (B, V), without the axis for a single one."""
        return values if batch is not None else values[0]

    def for_models(natural):
        return tf.broadcast_to(natural, (1, pool.batch, width))

    def mean_of_each(means):
        return tf.reduce_mean(tf.reshape(means, (-1, pool.batch, width)), 0)

    width = units.num_rows
    nowhere, look = tf.zeros(width), temperatures(_LOOK)
    first = nowhere if base is None else tf.cast(base, tf.float32)
    starts = [
        TemperedPath.of(potentials, natural, few).sample_base(rows, next(seeds))
        for natural in (first, units.bias, nowhere)
    ]
    starts.append(_given_any_hidden(potentials.repeat(few), rows, next(seeds)))
    if chains is not None and batch is None:
        starts.append(tf.cast(chains[:few], tf.float32))
    means, others = settled(tf.concat(starts, 0), _SWEEPS)
    # Chains that move between modes soon leave a small mode: some chains do not move.
    models = potentials.repeat(few)
    staying = _given_any_hidden(models, rows, next(seeds))
    unmoved, stayed = _means(models, staying, tf.constant(_SWEEPS), next(seeds))
    means = tf.concat([means, unmoved], 0)
    others = tf.concat([others, stayed], 0)
    reached = of_models(mean_of_each(means[:rows]))
    pool.regions = Regions.of(np.reshape(means, (-1, pool.batch, width)), next(seeds))
    centers = units.natural_for_mean(pool.regions.centers)
    looks = tf.concat([for_models(first), for_models(nowhere), centers], 0)
    size = max(1, _ROWS_AT_ONCE // rows)
    for number in range(0, len(looks), size):
        annealed(looks[number : number + size], look, few)
    visited = Visited.by(potentials, tf.concat([others, *pool.states], 0))

    def drawn():
        """Returns near-samples (M · B, V), their ancestors, and absent shares."""
        states, ancestors, absent = pool.draw(num_chains, next(seeds))
        if visited is None:
            return states, ancestors, absent
        nearly_all = visited.log_mass > np.max(pool.lows, 0) - _NEARLY_ALL
        exact, unseen = visited.draw(potentials, pool.regions, num_chains, next(seeds))
        own = np.tile(nearly_all, num_chains)[:, np.newaxis]
        numbers = np.arange(num_chains)[:, np.newaxis]
        return (
            tf.where(own, exact, states),
            np.where(nearly_all, numbers, ancestors),
            np.where(nearly_all, unseen, absent),
        )

    broad = units.mean(first) if base is not None else reached
    enough = min(_ENOUGH_ANCESTORS, num_chains // 4)
    states, ancestors, _ = drawn()
    for count in _REFINE:
        means = of_models(mean_of_each(settled(states)[0]))
        natural = units.natural_for_mean((1.0 - _BROAD) * means + _BROAD * broad)
        bases = for_models(natural)
        lengths = annealed(bases, look, few)
        path = StartingPoint(natural, None, None, *lengths, None, None)
        betas, lengths = annealed(bases, path.temperatures(count))
        states, ancestors, absent = drawn()
        if np.min(effective_number(ancestors)) >= enough:
            break
    # Without moves between modes: each already has states in proportion to its mass.
    models = potentials.repeat(num_chains)
    _, states = _means(models, states, tf.constant(_FEWER_SWEEPS), next(seeds))
    least = pool.lower_bound(len(looks) + 2 * len(_REFINE))
    if visited is not None:
        least = np.maximum(least, visited.log_mass)
    return StartingPoint(natural, states, ancestors, betas, lengths, least, absent)


def _given_any_hidden(potentials, rows, seed):
    """Returns visible states (rows, V), given hidden states drawn without any input."""
    units = potentials.hidden
    inputs = tf.zeros((rows, units.num_rows))
    hidden = units.draw(inputs, random.fold_in(seed, 0))
    natural = potentials.visible_natural(hidden)
    return potentials.visible.draw(natural, random.fold_in(seed, 1))


@traced_by_size
def _means(potentials, visible, sweeps, seed):
    """Returns each chain's mean of E[v | h] over sweeps, and the last states."""

    def sweep(index, state, total):
        fresh = random.fold_in(seed, index)
        noise = sweep_noise(potentials, tf.shape(visible)[0], fresh).of_sweep(0)
        new = proposal(potentials, state.hidden_natural, noise)
        means = potentials.visible.mean(potentials.visible_natural(new.hidden))
        total += tf.where(index < sweeps // 2, 0.0, means)
        new, _ = metropolis_step(potentials, state, new.visible, noise)
        for tensor, before in zip((*new, total), (*state, start), strict=True):
            tensor.set_shape(before.shape)  # lost if there are several models
        return index + 1, new, total

    state = ChainState(visible, potentials.hidden_natural(visible))
    start = tf.zeros_like(potentials.visible.encode(visible))
    _, state, total = tf.while_loop(
        lambda index, *_: index < sweeps, sweep, (tf.constant(0), state, start)
    )
    return total / tf.cast(sweeps - sweeps // 2, tf.float32), state.visible
