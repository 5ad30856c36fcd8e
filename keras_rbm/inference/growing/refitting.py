"""Fits biases after a change of the hidden layer, and estimates the gain of both."""

import functools
from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.growing.moment_matching import match_means, total_softplus
from keras_rbm.inference.growing.reweighting import Descended, carry_over, weighted_mean
from keras_rbm.inference.potentials import Potentials
from keras_rbm.units import FractionalParameters

#: Nats: a change that could gain more creates modes that the model did not have.
_LARGE_GAIN = 1.0


class Refit(NamedTuple):
    """A changed and refitted model, compared with the one before the change.

    Attributes:
        visible_bias: tensor (V,), fitted.
        scale: scalar, factor of all coefficients.
        visible: tensor (S, V), samples.
        held_out_chains: `Descended`, (J, V), samples not used to choose the change.
        log_ratio: scalar, log of the new model's Z over the old one's.
        gain: scalar, gain in the data's mean log-likelihood from the change, nats,
            beyond what following the data gains.
        gain_error: scalar, its standard error, and that of `log_ratio`.
        judge_ess: scalar, relative effective sample size that the held-out chains
            would have after a single step from model to model.
        acceptance: scalar, share of Metropolis steps accepted.
    """

    visible_bias: tf.Tensor
    scale: tf.Tensor
    visible: tf.Tensor
    held_out_chains: Descended
    log_ratio: tf.Tensor
    gain: tf.Tensor
    gain_error: tf.Tensor
    judge_ess: tf.Tensor
    acceptance: tf.Tensor

    @classmethod
    def placeholder(cls, phases, held_out_chains):
        """Returns zeros of the same shapes, as a loop's first value."""
        bias = tf.zeros_like(phases.samples[0])
        zero = tf.constant(0.0)
        scalars = [zero] * 5
        return cls(bias, zero, phases.samples, held_out_chains, *scalars)


def refit(
    changed,
    change,
    phases,
    held_out_chains,
    seed,
    *,
    drift,
    bias_steps,
    gibbs_steps,
    learn_temperature=False,
    before=None,
):
    """Fits the visible biases after a change, and estimates the gain of both.

    Args:
        changed: `Potentials` after the change, with the previous biases.
        change: function of states (B, V) that returns the increase of `log p*` by the
            change, (B,).
        phases: `DataAndSamples` with samples of the previous model, of equal weight.
        held_out_chains: `Descended`, other samples (J, V) of the previous model.
        seed: int or integer tensor of shape (2,).
        drift: tensor (V,), how far the data's means are from those that the previous
            biases were fitted to. Following them gains a little on each batch and loses
            as much on the others, so it is not counted as a gain of the change.
        bias_steps: int ≥ 1, maximum number of sweeps.
        gibbs_steps: int ≥ 1, sweeps of the held-out chains.
        learn_temperature: bool, whether the coefficients' scale is fitted too.
        before: `Potentials` before the change, with the units of `changed`, some of
            which may count 0 times, or `None`. The held-out chains pass through models
            in between.

    Returns:
        `Refit`. The gain is estimated from the held-out chains: the samples of the
        phases were used to choose the change, and would overestimate it.
    """
    total = None
    if learn_temperature:
        totals = total_softplus(changed, phases.visible)
        total = tf.reduce_sum(phases.weights * totals)
    matched = match_means(
        changed,
        weighted_mean(phases.visible, phases.weights),
        phases.samples,
        change(phases.samples),
        random.fold_in(seed, 0),
        max_sweeps=bias_steps,
        drift=drift,
        total=total,
    )

    def whole_change(visible):
        difference = change(visible)
        difference += tf.linalg.matvec(visible, matched.bias - changed.visible_bias)
        if learn_temperature:
            difference += (matched.scale - 1.0) * total_softplus(changed, visible)
        return difference

    coefficients = matched.scale * changed.hidden.coefficients
    hidden = FractionalParameters(changed.hidden_bias, coefficients)
    fitted = Potentials(changed.kernel, matched.bias, hidden)
    gain = tf.reduce_sum(phases.weights * whole_change(phases.visible))
    moved = carry_over(
        held_out_chains,
        whole_change,
        fitted,
        random.fold_in(seed, 1),
        num_sweeps=gibbs_steps,
        between=before and functools.partial(_between, before, fitted),
        is_large=gain - tf.reduce_mean(whole_change(held_out_chains.visible))
        > _LARGE_GAIN,
    )
    return Refit(
        visible_bias=matched.bias,
        scale=matched.scale,
        visible=matched.visible,
        held_out_chains=moved.samples,
        log_ratio=moved.log_ratio,
        gain=gain - moved.log_ratio - matched.followed,
        gain_error=moved.error,
        judge_ess=moved.ess,
        acceptance=matched.acceptance,
    )


def _between(before, after, t):
    """Returns the model `p*_before^(1 - t) p*_after^t`; both have the same units."""

    def mixed(first, second):
        return (1.0 - t) * first + t * second

    coefficients = mixed(before.hidden.coefficients, after.hidden.coefficients)
    return Potentials(
        after.kernel,
        mixed(before.visible_bias, after.visible_bias),
        FractionalParameters(after.hidden_bias, coefficients),
    )
