"""The path from independent units to a model, and chains annealed along it."""

import functools
import math
import numbers
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm.inference import traces
from keras_rbm.inference.gibbs import ChainState, SweepNoise, sweep_noise
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import kind_of_models

#: Share of the temperatures that are equally spaced, whatever lengths were measured.
_EVEN = 0.1
#: Temperatures between two updates of the progress bar.
_SEGMENT = 250
#: Temperatures whose noise is drawn at once; a divisor of `_SEGMENT`.
_BLOCK = 10
#: Chains · V · H from which XLA's compilation, about a second, pays off.
_LARGE = 10**6


def temperatures(betas: ArrayLike) -> np.ndarray:
    """Returns inverse temperatures from 0 to 1 as an array.

    Args:
        betas: int K, for K equal steps; a sequence of `(end, steps)` pairs, for
            segments of equal steps each; or the increasing values themselves,
            beginning with 0 and ending with 1.

    Raises:
        ValueError: if the values do not increase strictly from 0 to 1, in float32.

    Example:

    >>> keras_rbm.inference.temperatures(4).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> len(keras_rbm.inference.temperatures([(0.5, 500), (0.9, 4000), (1.0, 10000)]))
    14501
    """
    values = _values(betas)
    used = values.astype(np.float32)
    increasing = used.ndim == 1 and len(used) > 1 and np.all(np.diff(used) > 0)
    if not increasing or values[0] != 0.0 or values[-1] != 1.0:
        raise ValueError(
            "Expected betas that increase strictly from 0 to 1. Received: "
            f"betas={betas!r}. Pass a number of steps ≥ 1, a list of (end, steps) "
            "segments such as [(0.5, 500), (1.0, 10000)], or the values."
        )
    return values


def _values(betas):
    """Returns `betas` as an array, empty if they cannot be converted."""
    if isinstance(betas, numbers.Integral) and not isinstance(betas, bool):
        count = int(betas) if 0 < betas < 2**31 else 0
        return np.linspace(0.0, 1.0, count + 1)
    try:
        values = np.asarray(betas, np.float64)
    except (TypeError, ValueError):
        return np.zeros(0)
    if values.ndim == 2 and values.shape[1] == 2:
        ends, steps = values.T
        if not np.all((steps >= 1) & (steps == np.round(steps))):
            return np.zeros(0)
        starts = np.concatenate([[0.0], ends[:-1]])
        pieces = [
            np.linspace(start, end, int(count) + 1)[1:]
            for start, end, count in zip(starts, ends, steps, strict=True)
        ]
        values = np.concatenate([[0.0], *pieces])
    return values


def spaced(betas: np.ndarray, lengths: np.ndarray, count: int) -> np.ndarray:
    """Returns `count` + 1 inverse temperatures in steps of equal length, nearly.

    Args:
        betas, lengths: arrays (n,), inverse temperatures from 0 to 1 and the length of
            the path from 0 up to each.
        count: int ≥ 1.
    """
    if not np.isfinite(lengths).all():  # energies beyond float32
        lengths = betas
    share = (1.0 - _EVEN) * lengths / lengths[-1] + _EVEN * betas
    values = np.interp(np.linspace(0.0, 1.0, count + 1), share, betas)
    values[0], values[-1] = 0.0, 1.0
    return temperatures(values)


class TemperedPath(NamedTuple):
    """The models between the base-rate model and `potentials`.

    `log p*_beta(v) = ((1 - beta) a + beta b)' v + base(v)
    + sum_j A_j((1 - beta) d_j + beta (v'W + c)_j)`; at beta = 0 the units are
    independent, at 1 the path has reached the model.

    Attributes:
        potentials: `Potentials`.
        base: tensor (V,) or (C, V), visible natural parameters `a` at beta = 0.
        hidden_base: tensor (H,) or (C, H), hidden ones, `d`; `None` for zeros.
    """

    potentials: Potentials
    base: tf.Tensor
    hidden_base: tf.Tensor | None = None

    @classmethod
    def of(
        cls,
        potentials: Potentials,
        base: tf.Tensor | None = None,
        num_chains: int | None = None,
    ) -> "TemperedPath":
        """Returns the path of models, with a row for each of M chains of B models.

        Args:
            potentials: `Potentials`.
            base: tensor (V,) or (B, V), or `None` for zeros; for a single model also
                (K, V), for M chains from each row.
            num_chains: int, M; by default the potentials already have a row per chain.
        """
        if num_chains is not None:
            potentials = potentials.repeat(num_chains)
        if base is None:
            base = tf.zeros(potentials.visible.num_rows)
        base = tf.cast(base, tf.float32)
        if potentials.batch_size is not None:
            rows = potentials.batch_size
            base = tf.reshape(base, (-1, potentials.visible.num_rows))
            base = tf.tile(base, (rows // tf.shape(base)[0], 1))
        elif base.shape.rank == 2:
            base = tf.tile(base, (num_chains or 1, 1))
        return cls(potentials, base)

    def log_partition_of_base(self) -> tf.Tensor:
        """Returns log Z_0, () or (B,), float64, nats."""
        hidden_base = self.hidden_base
        if hidden_base is None:
            hidden_base = tf.zeros_like(self.potentials.hidden.bias)
        visible, hidden, base, hidden_base = tf.nest.map_structure(
            lambda tensor: tf.cast(tensor, tf.float64),
            (
                self.potentials.visible,
                self.potentials.hidden,
                self.base,
                hidden_base,
            ),
        )
        of_hidden = hidden.log_partition(hidden_base)
        of_visible = visible.log_partition(base)
        return tf.reduce_sum(of_visible, -1) + tf.reduce_sum(of_hidden, -1)

    def sample_base(self, chains: int | tf.Tensor, seed: int | tf.Tensor) -> tf.Tensor:
        """Returns visible states (C, V) of C chains, drawn at beta = 0."""
        units = self.potentials.visible
        return units.draw(tf.broadcast_to(self.base, (chains, units.num_rows)), seed)

    def rows(self, index: tf.Tensor) -> "TemperedPath":
        """Returns the path with those rows of its bases, which have several."""
        base, hidden_base = (
            tf.gather(each, index) for each in (self.base, self.hidden_base)
        )
        return self._replace(base=base, hidden_base=hidden_base)

    def hidden_natural(self, chains: ChainState, beta: float | tf.Tensor) -> tf.Tensor:
        """Returns the natural parameter of each hidden unit given v, (C, H)."""
        natural = beta * chains.hidden_natural
        if self.hidden_base is None:
            return natural
        return natural + (1.0 - beta) * self.hidden_base

    def hidden_log_partition(
        self, chains: ChainState, beta: float | tf.Tensor
    ) -> tf.Tensor:
        """Returns the log-partition of each hidden unit given v, (C, H)."""
        hidden = self.potentials.hidden
        return hidden.log_partition(self.hidden_natural(chains, beta))

    def log_weight_difference(
        self,
        chains: ChainState,
        low: float | tf.Tensor,
        high: float | tf.Tensor,
        of_low: tf.Tensor | None = None,
        of_high: tf.Tensor | None = None,
        high_base: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Returns log p*_high(v) - log p*_low(v), (C,), in float64.

        `chains` is a `ChainState`; `low` and `high` are scalars, or columns (C, 1). The
        `hidden_log_partition` of either may be passed if it is already known, and
        another `base` for `high`; with another hidden base `of_high` must be passed.
        """
        of_high = (
            self.hidden_log_partition(chains, high) if of_high is None else of_high
        )
        of_low = self.hidden_log_partition(chains, low) if of_low is None else of_low
        units = self.potentials.visible
        change = (high - low) * (units.bias - self.base)
        if high_base is not None:
            change += (1.0 - high) * (high_base - self.base)
        bias = tf.reduce_sum(change * units.first_of(chains.visible), -1)
        return tf.cast(bias + tf.reduce_sum(of_high - of_low, -1), tf.float64)

    def sweep(
        self,
        chains: ChainState,
        beta: float | tf.Tensor,
        noise: SweepNoise,
        clamp: tf.Tensor | None = None,
    ) -> ChainState:
        """Draws h from p_beta(h | v), then v from p_beta(v | h).

        Args:
            chains: `ChainState`.
            beta: scalar, or column (C, 1).
            noise: `SweepNoise`.
            clamp: bool tensor (V,) or (C, V), units that keep their value.

        Returns:
            `ChainState`; its natural parameters are those of the model, beta = 1.
        """
        potentials = self.potentials
        hidden = potentials.hidden.sample(
            self.hidden_natural(chains, beta), noise.hidden
        )
        model = potentials.visible_natural(hidden)
        natural = (1.0 - beta) * self.base + beta * model
        visible = potentials.visible.sample(natural, noise.visible)
        if clamp is not None:
            visible = tf.where(clamp, chains.visible, visible)
        return ChainState(visible, potentials.hidden_natural(visible))


class Annealed(NamedTuple):
    """Chains that were annealed along a path, M for each model.

    Attributes:
        visible: tensor (C, V), their last states: of chains annealed back, at the base.
        log_weights: tensor (C,), float64, log Z_0 and what the path added to it.
        steps: tensor (blocks, C), float64, what each block of steps added; on the way
            forward a block lies between two `block_ends`.
    """

    visible: tf.Tensor
    log_weights: tf.Tensor
    steps: tf.Tensor


def anneal_forward(
    potentials: Potentials,
    base: tf.Tensor | None,
    betas: np.ndarray,
    num_chains: int,
    seed: int | tf.Tensor,
    progress: bool = False,
    at_once: int | None = None,
) -> Annealed:
    """Anneals M new chains for each model, from the base to the model.

    Args:
        potentials, base, num_chains: as for `TemperedPath.of`.
        betas: array (K + 1,), inverse temperatures from 0 to 1.
        seed: int or integer tensor of shape (2,).
        progress: bool. Show a progress bar.
        at_once: int, chains of a single model that run in one program, if XLA compiles
            it: each other number is another program, half a second to compile. By
            default all of them.

    Returns:
        `Annealed`.
    """
    path = TemperedPath.of(potentials, base, num_chains)
    seed = random.as_seed(seed)
    rows = path.potentials.batch_size
    if rows is None:
        rows = num_chains if path.base.shape.rank == 1 else len(path.base)
    visible = path.sample_base(rows, random.fold_in(seed, -1))
    single = path.potentials.batch_size is None
    if at_once and single and rows != at_once and _is_large(path, at_once):
        return _in_parts(path, visible, betas, seed, at_once)
    return _anneal(path, visible, betas, seed, progress)


def anneal_backward(
    potentials: Potentials,
    visible: tf.Tensor,
    base: tf.Tensor | None,
    betas: np.ndarray,
    seed: int | tf.Tensor,
    progress: bool = False,
) -> Annealed:
    """Anneals states (C, V) from the model back to the base, see `anneal_forward`."""
    path = TemperedPath.of(potentials, base)
    return _anneal(path, visible, betas, random.as_seed(seed), progress, reverse=True)


def _anneal(path, visible, betas, seed, progress, reverse=False):
    schedule = _schedule(betas, reverse)
    log_weights = tf.zeros(tf.shape(visible)[:1], tf.float64)
    chains = ChainState(visible, path.potentials.hidden_natural(visible))
    state = (chains, log_weights)
    large = _is_large(path, visible.shape[0])
    block = _block_compiled if large else _block
    if path.base.shape.rank == 1 and large:  # as from several bases: one program
        path = path._replace(base=_rows_of_base(path, len(visible)))
    kind = kind_of_models(path.potentials)
    run = _run(block, kind, path.base.shape.rank)
    count = schedule.shape[0]
    segment = _SEGMENT if progress and tf.executing_eagerly() else count
    bar = keras.utils.Progbar(count, unit_name="temperature") if progress else None
    steps = []
    for start in range(0, count, segment):
        end = min(start + segment, count)
        *state, added = run(path, state, schedule, tf.constant([start, end]), seed)
        steps.append(added)
        if bar is not None:
            bar.update(end)
    chains, log_weights = state
    log_weights += path.log_partition_of_base()
    return Annealed(chains.visible, log_weights, tf.concat(steps, 0))


def _is_large(path, rows):
    """Returns whether XLA compiles what anneals so many chains."""
    sizes = (rows, *path.potentials.kernel.shape)
    return traces.compiles and None not in sizes and math.prod(sizes) >= _LARGE


def _rows_of_base(path, rows):
    return tf.broadcast_to(path.base, (rows, path.potentials.visible.num_rows))


def _in_parts(path, visible, betas, seed, size):
    """Anneals chains of a single model, `size` at once; the last are filled up."""
    count = len(visible)
    rows = np.resize(np.arange(count), -(-count // size) * size).reshape(-1, size)
    bases, parts = _rows_of_base(path, count), []
    for number, own in enumerate(rows):
        some = path._replace(base=tf.gather(bases, own))
        own_seed = random.fold_in(seed, number)
        parts.append(_anneal(some, tf.gather(visible, own), betas, own_seed, False))
    states, log_weights = (
        tf.concat([getattr(part, name) for part in parts], 0)[:count]
        for name in ("visible", "log_weights")
    )
    steps = tf.concat([part.steps for part in parts], 1)[:, :count]
    return Annealed(states, log_weights, steps)


def _schedule(betas, reverse):
    """Returns the betas of each step, (steps, 3).

    They are the two between which the log weight grows, and that of the next sweep. On
    the way back a sweep comes first. It is a step that adds nothing.
    """
    lows, highs = betas[:-1], betas[1:]
    if not reverse:
        return tf.constant(np.stack([lows, highs, highs], 1), tf.float32)
    lows, highs = (np.append(1.0, each[::-1]) for each in (lows, highs))
    return tf.constant(np.stack([lows, highs, lows], 1), tf.float32)


def per_model(log_weights: tf.Tensor, potentials: Potentials) -> tf.Tensor:
    """Returns log weights (M,), or (M, B) where there are B models."""
    batch = potentials.batch_size
    return log_weights if batch is None else tf.reshape(log_weights, (-1, batch))


def block_ends(betas: np.ndarray) -> np.ndarray:
    """Returns the inverse temperatures between which `Annealed.steps` lie."""
    return np.append(betas[:-1:_BLOCK], betas[-1])


def _block(path, state, schedule, count, seed):
    """Anneals by the first `count` of at most `_BLOCK` steps."""
    rows = tf.shape(state[0].visible)[0]
    noise = sweep_noise(path.potentials, rows, seed, num_sweeps=_BLOCK)

    def step(index, chains, log_weights):
        low, high, own = tf.unstack(tf.gather(schedule, index))
        log_weights += path.log_weight_difference(chains, low, high)
        return index + 1, path.sweep(chains, own, noise.of_sweep(index)), log_weights

    start = tf.constant(0), *state
    return tf.while_loop(lambda index, *_: index < count, step, start)[1:]


_block_compiled = tf.function(_block, autograph=False, jit_compile=True)


def _blocks(block, path, state, schedule, span, seed):
    steps = tf.TensorArray(
        tf.float64,
        -(-(span[1] - span[0]) // _BLOCK),
        element_shape=state[1].shape,
        clear_after_read=False,
    )

    def body(start, number, steps, *state):
        end = tf.minimum(start + _BLOCK, span[1])
        block_seed = random.fold_in(seed, start)
        # Of one shape, for which XLA compiles, whatever the number of temperatures is.
        own = tf.gather(schedule, tf.minimum(start + tf.range(_BLOCK), span[1] - 1))
        new = block(path, state, own, end - start, block_seed)
        # A trace for other sizes may be reused for these, with unknown shapes.
        new = tf.nest.map_structure(
            lambda x, old: tf.ensure_shape(x, old.shape), new, state
        )
        steps = steps.write(number, new[1] - state[1])
        return end, number + 1, steps, *new

    _, _, steps, *state = tf.while_loop(
        lambda start, *_: start < span[1],
        body,
        (span[0], tf.constant(0), steps, *state),
        parallel_iterations=1,
    )
    return *state, steps.stack()


@functools.cache
def _run(block, *kind):
    """Returns the loop over blocks, traced once for all sizes of a growing model.

    Each loop is given models of one kind only, which differ in little but H.
    """
    blocks = functools.partial(_blocks, block)
    return tf.function(blocks, autograph=False, reduce_retracing=True)
