"""Chains between two RBMs, one of which has a unit more, and the ratio of their Z."""

import math
from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.annealing.bridge import bridge
from keras_rbm.inference.gibbs import ChainState, SweepNoise, draw_states
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import traced_by_size
from keras_rbm.inference.weights import effective_sample_size, resampled_rows
from keras_rbm.units.unit import LayerParameters

#: Relative effective sample size that remains after a step from model to model: for a
#: small change, and for a large one, whose modes samples must find as they form.
_KEPT, _KEPT_OF_LARGE = 0.5, 0.97
#: A change is large if a single step would leave less than this.
_LARGE = 0.3
#: Least effective number of lineages. With fewer, whose spread would not be known, each
#: sample becomes a lineage of its own.
_LEAST_LINEAGES = 30
#: Factor of the number of sweeps in each step of a large change.
_SWEEPS_OF_LARGE = 2
#: The least step is 1 / `_STEPS`.
_STEPS = 100
_HALVINGS = 20


class _Fields(NamedTuple):
    bias: tf.Tensor
    coefficients: tf.Tensor


class FractionalParameters(LayerParameters, _Fields):
    """Hidden units of which unit i counts `c_i` times, from 0 to 1 [1, section 3.3].

    Summed out, unit i has the weight `(1 + exp(eta_i))^c_i`, which no distribution of
    states has if c_i is a fraction. `sample` then draws from a similar distribution,
    `1 + exp(c_i eta_i)` [1, proposition 3.2], and `log_correction` is what a Metropolis
    step corrects it by.

    Attributes:
        bias: tensor (H,).
        coefficients: tensor (H,), c.

    References:
        1. Ping, Liu, Ihler. Learning infinite RBMs with Frank-Wolfe. NIPS 2016.
    """

    __slots__ = ()

    def log_partition(self, natural):
        return self.coefficients * tf.math.softplus(natural)

    def mean(self, natural):
        return self.coefficients * tf.math.sigmoid(natural)

    def sample(self, natural, noise):
        c = self.coefficients
        # Either end of the noise may stand for a unit that is on. Which one it is
        # differs between an RBM and the models between, and all results depend on it.
        on = tf.cond(
            tf.reduce_all(c == 1.0),
            lambda: noise < tf.math.sigmoid(natural),
            lambda: tf.where(
                c < 1.0,
                noise < tf.math.sigmoid(c * natural),
                noise >= tf.exp(-tf.math.softplus(natural)),
            ),
        )
        return c * tf.cast(on, natural.dtype)

    def is_whole(self):
        """Returns whether `sample` draws from the units' own distribution, a bool."""
        return tf.reduce_all((self.coefficients == 0.0) | (self.coefficients == 1.0))

    def log_correction(self, natural):
        """Returns the log weight minus that of the model sampled from, (C,)."""
        c = self.coefficients
        difference = c * tf.math.softplus(natural) - tf.math.softplus(c * natural)
        # With c = 0 it is a constant.
        return tf.reduce_sum(tf.where(c > 0.0, difference, 0.0), -1)


def between(before, after, t):
    """Returns the model `p*_before^(1 - t) p*_after^t`.

    Args:
        before, after: `Potentials` with the same `FractionalParameters` hidden units,
            but for their coefficients, and with binary visible units.
        t: scalar from 0 to 1.
    """

    def mixed(first, second):
        return (1.0 - t) * first + t * second

    coefficients = mixed(before.hidden.coefficients, after.hidden.coefficients)
    return Potentials(
        after.kernel,
        mixed(before.visible_bias, after.visible_bias),
        FractionalParameters(after.hidden_bias, coefficients),
    )


def fractional_sweep(potentials, state, seed):
    """Draws h, then v, and accepts v by a Metropolis step if a unit is fractional.

    Args:
        potentials: `Potentials` with `FractionalParameters` hidden units.
        state: `ChainState`.
        seed: int or integer tensor of shape (2,).

    Returns:
        `ChainState`.
    """
    chains, width = tf.shape(state.visible)[0], potentials.num_visible
    noise = random.uniform((chains, width + potentials.num_hidden + 1), seed)
    layers = SweepNoise(noise[:, :width], noise[:, width:-1])
    new = draw_states(potentials, state.hidden_natural, layers).visible
    new = ChainState(new, potentials.hidden_natural(new))

    def metropolis():
        correction = potentials.hidden.log_correction
        gain = correction(new.hidden_natural) - correction(state.hidden_natural)
        accepted = tf.math.log(noise[:, -1:]) < gain[:, tf.newaxis]
        chosen = (tf.where(accepted, *pair) for pair in zip(new, state, strict=True))
        return ChainState(*chosen)

    return tf.cond(potentials.hidden.is_whole(), lambda: new, metropolis)


@traced_by_size
def fractional_chain(potentials, visible, seed, num_sweeps):
    """Returns visible states (C, V) after sweeps.

    Args:
        potentials: `Potentials` with `FractionalParameters` hidden units.
        visible: tensor (C, V), states to start from.
        seed: seed tensor (2,).
        num_sweeps: scalar int tensor.
    """

    def sweep(index, state):
        fresh = random.fold_in(seed, index)
        return index + 1, fractional_sweep(potentials, state, fresh)

    start = ChainState(visible, potentials.hidden_natural(visible))
    return tf.while_loop(
        lambda index, _: index < num_sweeps, sweep, (tf.constant(0), start)
    )[1].visible


class Descended(NamedTuple):
    """Samples in lineages: those of one lineage may be copies, if sweeps do not mix.

    Attributes:
        visible: tensor (S, V).
        lineages: int tensor (S,), numbers from 0 to S - 1.
    """

    visible: tf.Tensor
    lineages: tf.Tensor

    @classmethod
    def independent(cls, visible):
        """Returns samples that are each a lineage of their own."""
        return cls(visible, tf.range(visible.shape[0]))


class Moved(NamedTuple):
    """Samples of a new model that were samples of an old one.

    Attributes:
        samples: `Descended`.
        log_ratio: scalar, log of the new model's Z over the old one's.
        error: scalar, standard error of `log_ratio`.
        ess: scalar, relative effective sample size that the old samples would have
            after a single step, from 1 / S to 1; 0 if the change of one is NaN.
    """

    samples: Descended
    log_ratio: tf.Tensor
    error: tf.Tensor
    ess: tf.Tensor


def resample_move(samples, change, before, after, seed, *, num_sweeps, is_large=False):
    """Turns samples of a model into samples of another by resample-move [1].

    Samples are resampled with weights `exp(change)`, because `Z_new p_new = Z_old p_old
    exp(change)`, and then make sweeps. Resampling moves mass between modes where sweeps
    do not. Bridge sampling [2] between before and after estimates `Z_new / Z_old`.

    If the weights would leave fewer than half of the samples, they pass through models
    between the two, `p*_old exp(t change)`, in steps that leave half each. If fewer
    than three in ten would remain, steps leave 97 % and make twice as many sweeps:
    only there do samples meet a mode that forms on the way. The error is that between
    lineages of samples with a common ancestor, also one from earlier calls. Sweeps that
    do not mix leave copies with the same errors; if they mix, adding up within lineages
    loses nothing.

    Args:
        samples: `Descended`, S known, of the old model. For an honest estimate they
            must not have been used to choose the new model.
        change: function of states (B, V) that returns the increase of `log p*`, (B,):
            the difference of the two models' free energies, but for its rounding.
        before, after: `Potentials` of the old and of the new model, as for `between`.
        seed: int or integer tensor of shape (2,).
        num_sweeps: int ≥ 1.
        is_large: bool scalar, whether the change is known to be large. Samples of the
            old model cannot tell if the new one has modes that the old one lacks.

    Returns:
        `Moved`.

    References:
        1. Gilks, Berzuini. Following a moving target: Monte Carlo inference for dynamic
           Bayesian models. JRSS B, 2001.
        2. Bennett. Efficient estimation of free energy differences from Monte Carlo
           data. Journal of Computational Physics, 1976.
    """
    visible, lineages = samples
    count = visible.shape[0]
    ess = effective_sample_size(change(visible)) / count
    ess = tf.where(tf.math.is_nan(ess), 0.0, ess)
    large = (ess < _LARGE) | is_large
    kept = tf.where(large, _KEPT_OF_LARGE, _KEPT)
    num_sweeps *= tf.where(large, _SWEEPS_OF_LARGE, 1)

    def step(index, t, visible, lineages, parts, ratio):
        x = change(visible)
        size = _step_size(x, 1.0 - t, kept)
        rows = resampled_rows(size * x, random.fold_in(seed, 2 * index))
        moved = fractional_chain(
            between(before, after, t + size),
            tf.gather(visible, rows),
            random.fold_in(seed, 2 * index + 1),
            num_sweeps,
        )
        gain, new = _bridged(size * x, size * change(moved), rows)
        parts += tf.math.unsorted_segment_sum(new, lineages, count)
        lineages = tf.gather(lineages, rows)
        return index + 1, t + size, moved, lineages, parts, ratio + gain

    state = (
        tf.constant(0),
        tf.constant(0.0),
        visible,
        lineages,
        tf.zeros(count, tf.float64),
        tf.constant(0.0, tf.float64),
    )
    _, _, visible, lineages, parts, ratio = tf.while_loop(
        lambda index, t, *_: (t < 1.0 - 1e-6) & (index < 2 * _STEPS), step, state
    )
    error = tf.math.reduce_std(parts) / math.sqrt(count)
    ratio, error = (tf.cast(x, tf.float32) for x in (ratio, error))
    sizes = tf.math.unsorted_segment_sum(tf.ones(count), lineages, count)
    few = count**2 / tf.reduce_sum(tf.square(sizes)) < _LEAST_LINEAGES
    lineages = tf.where(few, tf.range(count), lineages)
    return Moved(Descended(visible, lineages), ratio, error, ess)


def _step_size(change, rest, kept):
    """Returns how far from 0 to `rest` a step may go, at least 1 / 100."""

    def keeps(size):
        few = effective_sample_size(size * change) < kept * change.shape[0]
        return ~few  # also true for NaN

    def halve(index, low, high):
        middle = 0.5 * (low + high)
        far = keeps(middle)
        return index + 1, tf.where(far, middle, low), tf.where(far, high, middle)

    _, size, _ = tf.while_loop(
        lambda index, *_: index < _HALVINGS,
        halve,
        (tf.constant(0), tf.zeros_like(rest), rest),
    )
    size = tf.where(keeps(rest), rest, tf.maximum(size, 1.0 / _STEPS))
    return tf.minimum(size, rest)


def _bridged(before, after, parents):
    """Returns log(Z after / Z before) from both models' log weights, and its parts.

    The parts, (S,), are what each state before adds, together with its descendants.
    """
    before, after = (
        tf.cast(part, tf.float64)[tf.newaxis, tf.newaxis] for part in (before, after)
    )
    ratio, parts = bridge(before, after, parents)
    return ratio[0], parts[0]
