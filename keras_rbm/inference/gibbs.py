"""Block Gibbs sampling."""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm._checks import as_array
from keras_rbm.inference import arguments
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import traced_by_size

#: Most memory for noise that is drawn at once, in bytes.
_MOST_BYTES = 2**26


class GibbsState(NamedTuple):
    """State of block Gibbs chains: `visible` (C, V) and `hidden` (C, H)."""

    visible: tf.Tensor
    hidden: tf.Tensor


class ChainState(NamedTuple):
    """Chains that live in v: `visible` (C, V) and `hidden_natural` (C, H), of h | v."""

    visible: tf.Tensor
    hidden_natural: tf.Tensor


class SweepNoise(NamedTuple):
    """Uniform noise of a sweep: (C, V) and (C, H); of several, with a leading axis."""

    visible: tf.Tensor
    hidden: tf.Tensor

    def of_sweep(self, index):
        """Returns the noise of one of several sweeps, as a `SweepNoise`."""
        # Not layer[index]: XLA would draw that part again, on one core.
        return SweepNoise(*(tf.gather(layer, index) for layer in self))


def sweep_noise(potentials, chains, seed, *, num_sweeps=1, first=0):
    """Draws the uniform noise of several sweeps, for both layers at once.

    It is drawn early and in one piece. XLA would fuse a draw that has a single use into
    that use, which is several times slower on a CPU.

    Args:
        potentials: `Potentials`.
        chains: int or scalar tensor, C.
        seed: int or integer tensor of shape (2,).
        num_sweeps: int, S.
        first: int or scalar int64 tensor, how many rows (C · S in all) of the noise
            with this seed to leave out.

    Returns:
        `SweepNoise` with a leading axis S.
    """
    sizes = (potentials.num_visible, potentials.num_hidden)
    shape = num_sweeps, chains, sum(sizes)
    noise = random.uniform(shape, seed, first * sum(sizes))
    layers = tf.split(noise, sizes, 2)
    for layer, size in zip(layers, sizes, strict=True):
        if isinstance(size, int):  # lost if another size is not known
            layer.set_shape((*layer.shape[:2], size))
    return SweepNoise(*layers)


class ChainNoise:
    """The noise of all sweeps of a chain, drawn at once or, if large, in blocks.

    The numbers are the same. A block takes at most 64 MB, unless a few sweeps take
    more; if the number of chains is not known, all is drawn at once.

    Args:
        potentials, chains, seed, num_sweeps: as for `sweep_noise`.
    """

    def __init__(self, potentials, chains, seed, num_sweeps):
        self._of = potentials, chains, seed
        row = potentials.num_visible + potentials.num_hidden
        self._block = num_sweeps
        if isinstance(chains, int) and isinstance(row, int):
            # Philox makes four numbers at once: so many sweeps are always whole fours.
            self._least = 4 // math.gcd(chains * row, 4)
            most = _MOST_BYTES // (4 * chains * row * self._least) * self._least
            self._block = min(num_sweeps, max(self._least, most))
        self._chains, self._all = chains, None
        if self._block == num_sweeps:
            self._all = sweep_noise(*self._of, num_sweeps=num_sweeps)

    def of_sweep(self, index):
        """Returns the noise of one sweep."""
        if self._all is not None:
            return self._all.of_sweep(index)
        start = index // self._least * self._least
        return self._drawn(start, self._least).of_sweep(index - start)

    def loop(self, sweep, state, first, count):
        """Returns a state after several sweeps in a row.

        Args:
            sweep: function `(noise, state) -> state`.
            state: nest of tensors.
            first: int, number of the first sweep.
            count: int, number of sweeps.
        """
        end = first + count

        def run(noise, start, skipped, stop, state):
            return tf.while_loop(
                lambda index, _: index < stop,
                lambda i, state: (i + 1, sweep(noise.of_sweep(i - skipped), state)),
                (start, state),
            )[1]

        if self._all is not None:
            return run(self._all, tf.constant(first), 0, end, state)

        def block(start, state):
            noise, stop = self._drawn(start, self._block), start + self._block
            span = tf.maximum(start, first), start, tf.minimum(stop, end)
            return stop, run(noise, *span, state)

        start = tf.constant(first // self._least * self._least), state
        return tf.while_loop(lambda start, _: start < end, block, start)[1]

    def _drawn(self, first, count):
        first = tf.cast(first, tf.int64) * self._chains
        return sweep_noise(*self._of, num_sweeps=count, first=first)


def sample_hidden_given_visible(
    potentials: Potentials, visible: ArrayLike, seed: int | tf.Tensor
) -> tf.Tensor:
    """Returns hidden states (C, H) drawn from p(h | v)."""
    visible = arguments.checked_states(potentials, "visible", visible)
    return potentials.hidden.draw(potentials.hidden_natural(visible), seed)


def sample_visible_given_hidden(
    potentials: Potentials, hidden: ArrayLike, seed: int | tf.Tensor
) -> tf.Tensor:
    """Returns visible states (C, V) drawn from p(v | h)."""
    hidden = arguments.checked_states(potentials, "hidden", hidden, hidden=True)
    return potentials.visible.draw(potentials.visible_natural(hidden), seed)


def gibbs_sweep(
    potentials: Potentials, visible: ArrayLike, seed: int | tf.Tensor
) -> GibbsState:
    """Draws h from p(h | v), then v from p(v | h).

    The sweep leaves the model's distribution of v invariant, and is reversible
    with respect to it.

    Args:
        potentials: `Potentials`.
        visible: tensor (C, V), states.
        seed: int or integer tensor of shape (2,).

    Returns:
        `GibbsState`, the new v and the h that it was drawn from.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [9.0] * 3, [0.0] * 2)
    >>> keras_rbm.inference.gibbs_sweep(model, tf.zeros((1, 3)), seed=0).visible.numpy()
    array([[1., 1., 1.]], dtype=float32)
    """
    visible = arguments.checked_states(potentials, "visible", visible)
    noise = sweep_noise(potentials, tf.shape(visible)[0], seed).of_sweep(0)
    return draw_states(potentials, potentials.hidden_natural(visible), noise)


def draw_states(potentials, hidden_natural, noise):
    """Returns the `GibbsState` that a sweep draws: h given v, then v given h.

    Args:
        potentials: `Potentials`.
        hidden_natural: tensor (C, H), natural parameters of h given the present v.
        noise: `SweepNoise` of one sweep.
    """
    hidden = potentials.hidden.sample(hidden_natural, noise.hidden)
    natural = potentials.visible_natural(hidden)
    return GibbsState(potentials.visible.sample(natural, noise.visible), hidden)


def noisy_sweep(potentials, state, noise, clamp=None):
    """Returns the `ChainState` after a sweep."""
    visible = draw_states(potentials, state.hidden_natural, noise).visible
    if clamp is not None:
        visible = tf.where(clamp, state.visible, visible)
    return ChainState(visible, potentials.hidden_natural(visible))


def gibbs_chain(
    potentials: Potentials,
    visible: ArrayLike,
    seed: int | tf.Tensor,
    *,
    num_sweeps: int | tf.Tensor,
    clamp: ArrayLike | None = None,
) -> tf.Tensor:
    """Runs several sweeps of block Gibbs sampling.

    Args:
        potentials: `Potentials`.
        visible: tensor (C, V), states to start from.
        seed: int or integer tensor of shape (2,).
        num_sweeps: int or scalar integer tensor.
        clamp: bool tensor (V,) or (C, V), units that keep their starting value.

    Returns:
        tensor (C, V), visible states.
    """
    visible = arguments.checked_states(potentials, "visible", visible)
    arguments.check_normalizable(potentials)
    arguments.check_sizes(0, num_sweeps=num_sweeps)
    if clamp is not None:
        clamp = checked_mask(clamp, visible.shape)
    count, sweeps = visible.shape[0], tf.cast(num_sweeps, tf.int32)
    return chain_in_parts(
        potentials,
        count,
        lambda rows: visible[rows],
        random.as_seed(seed),
        sweeps,
        clamp,
    )


def chain_in_parts(potentials, count, start, seed, num_sweeps, clamp):
    """Returns what `gibbs_chain` does, some chains at a time if there are many.

    Args:
        potentials, num_sweeps, clamp: as for `gibbs_chain`.
        count: int, C, or `None` if it is not known.
        start: function that returns the states to start from of a slice of the chains.
        seed: int tensor (2,).
    """
    slices, parts, all_states = _parts(potentials, count), [], None
    for rows in slices:
        initial, kept = start(rows), clamp
        if clamp is not None and clamp.shape.rank == 2:
            kept = clamp[rows]
        first = 0 if rows.start is None else tf.constant(rows.start, tf.int64)
        states = _gibbs_chain(potentials, initial, seed, num_sweeps, kept, first)
        states.set_shape(initial.shape)  # a trace for any number of rows may have run
        if len(slices) == 1:
            return states
        if not tf.executing_eagerly():
            parts.append(states)
            continue
        if all_states is None:  # a list of parts would take as much memory again,
            # and so would a tensor that is a copy of the array
            all_states = np.empty((count, *states.shape[1:]), np.float32)
        all_states[rows] = states
    if parts:
        return tf.concat(parts, 0)
    return tf.experimental.dlpack.from_dlpack(all_states.__dlpack__())


def _parts(potentials, count):
    """Returns slices of the chains of a single model that run at once."""
    row = potentials.num_visible + potentials.num_hidden
    known = isinstance(count, int) and isinstance(row, int)
    size = max(4, _MOST_BYTES // (16 * row) // 4 * 4) if known else 0
    if not known or potentials.batch_size is not None or count <= size:
        return [slice(None)]
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


def checked_mask(clamp, shape):
    """Returns a clamp's mask as a tensor; raises a ValueError if it is not a mask.

    Args:
        clamp: bool array (V,) or (C, V).
        shape: (C, V) of the chains; C may be a tensor.
    """
    shape = tf.TensorShape([None if tf.is_tensor(size) else size for size in shape])
    expected = f"clamp to be a bool array of shape {tuple(shape[1:])} or {tuple(shape)}"
    mask = clamp if tf.is_tensor(clamp) else as_array(clamp)
    if getattr(mask, "dtype", None) not in (np.bool_, tf.bool):
        kind = getattr(mask, "dtype", type(clamp).__name__)
        raise ValueError(f"Expected {expected}. Received: dtype {kind}.")
    if not any(shape[start:].is_compatible_with(mask.shape) for start in (0, 1)):
        raise ValueError(f"Expected {expected}. Received: shape {tuple(mask.shape)}.")
    return tf.convert_to_tensor(mask)


@traced_by_size
def _gibbs_chain(potentials, visible, seed, num_sweeps, clamp, first):
    def sweep(index, state):
        rows, fresh = tf.shape(visible)[0], random.fold_in(seed, index)
        noise = sweep_noise(potentials, rows, fresh, first=first)
        return index + 1, noisy_sweep(potentials, state, noise.of_sweep(0), clamp)

    state = ChainState(visible, potentials.hidden_natural(visible))
    return tf.while_loop(
        lambda index, _: index < num_sweeps, sweep, (tf.constant(0), state)
    )[1].visible


def hidden_chain(potentials, hidden, seed, *, num_sweeps):
    """Runs sweeps v from p(v | h), h from p(h | v): chains that live in h.

    Args:
        potentials: `Potentials`.
        hidden: tensor (C, H), states.
        seed: int or integer tensor of shape (2,).
        num_sweeps: int ≥ 1.

    Returns:
        `GibbsState`, the last v and the h drawn from it.
    """
    chains = hidden.shape[0] or tf.shape(hidden)[0]
    noise = ChainNoise(potentials, chains, seed, num_sweeps)

    def sweep(noise, hidden):
        natural = potentials.visible_natural(hidden)
        visible = potentials.visible.sample(natural, noise.visible)
        natural = potentials.hidden_natural(visible)
        return GibbsState(visible, potentials.hidden.sample(natural, noise.hidden))

    # The last sweep is separate, so that its products are also used for the moments.
    last = num_sweeps - 1
    if last:
        hidden = noise.loop(
            lambda noise, hidden: sweep(noise, hidden).hidden, hidden, 0, last
        )
    return sweep(noise.of_sweep(last), hidden)


def visible_chain(potentials, visible, seed, *, num_sweeps):
    """Runs a fixed number of sweeps h from p(h | v), v from p(v | h).

    Like `gibbs_chain`, but for few sweeps inside a training step: the noise,
    `num_sweeps · C · (V + H)` numbers, is drawn before the first sweep if it takes at
    most 64 MB.

    Args:
        potentials: `Potentials`.
        visible: tensor (C, V), states.
        seed: int or integer tensor of shape (2,).
        num_sweeps: int ≥ 0.

    Returns:
        `ChainState`.
    """
    state = ChainState(visible, potentials.hidden_natural(visible))
    if not num_sweeps:
        return state
    chains = visible.shape[0] or tf.shape(visible)[0]
    noise = ChainNoise(potentials, chains, seed, num_sweeps)
    return noisy_chain(potentials, state, noise, 0, num_sweeps)


def noisy_chain(potentials, state, noise, first, count):
    """Returns the `ChainState` after sweeps `first` to `first + count - 1` of noise.

    Each sweep ends with the natural parameters of h, which the next one and the
    moments begin with: no product is computed twice.
    """
    return noise.loop(
        lambda noise, state: noisy_sweep(potentials, state, noise), state, first, count
    )
