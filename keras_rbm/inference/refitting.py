"""What follows a change of the hidden layer: biases that fit, and the gain of both."""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.frank_wolfe import weighted_mean
from keras_rbm.inference.moment_matching import match_means, total_softplus
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.reweighting import carry_over
from keras_rbm.units import FractionalParameters


class Refit(NamedTuple):
    """A changed model after its fit, beside the one before the change.

    Attributes:
        visible_bias: tensor (V,), fitted.
        scale: scalar, factor of all coefficients.
        visible: tensor (S, V), samples.
        judges: tensor (J, V), samples that had no part in the choice of the change.
        gain: scalar, of the mean log-likelihood of the data, nats.
        gain_error: scalar, its standard error.
        judges_size: scalar, share of the judges that counted.
        acceptance: scalar, share of Metropolis steps accepted.
    """

    visible_bias: tf.Tensor
    scale: tf.Tensor
    visible: tf.Tensor
    judges: tf.Tensor
    gain: tf.Tensor
    gain_error: tf.Tensor
    judges_size: tf.Tensor
    acceptance: tf.Tensor

    @classmethod
    def none(cls, evidence, judges):
        """Returns what stands for no change, with the samples as they were."""
        zero = tf.constant(0.0)
        bias = tf.zeros_like(evidence.samples[0])
        return cls(bias, zero, evidence.samples, judges, zero, zero, zero, zero)


def refit(
    changed,
    change,
    evidence,
    judges,
    seed,
    *,
    bias_steps,
    gibbs_steps,
    learn_temperature=False,
):
    """Fits the visible biases after a change, and estimates what both have gained.

    Args:
        changed: `Potentials` after the change, with the biases before.
        change: function of states (B, V), by how much the change has made `log p*`
            larger, (B,).
        evidence: `Evidence`; its samples are of the model before, of equal weight.
        judges: tensor (J, V), other samples of it.
        seed: int or integer tensor of shape (2,).
        bias_steps: int ≥ 1, sweeps at most.
        gibbs_steps: int ≥ 1, sweeps of the judges.
        learn_temperature: bool, whether the coefficients' scale is fitted too.

    Returns:
        `Refit`. The gain is estimated from the judges: the samples of the evidence
        have chosen the change, and think too well of it.
    """
    total = None
    if learn_temperature:
        totals = total_softplus(changed, evidence.visible)
        total = tf.reduce_sum(evidence.weights * totals)
    matched = match_means(
        changed,
        weighted_mean(evidence.visible, evidence.weights),
        evidence.samples,
        change(evidence.samples),
        random.fold_in(seed, 0),
        max_sweeps=bias_steps,
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
    moved = carry_over(
        judges,
        whole_change,
        Potentials(changed.kernel, matched.bias, hidden),
        random.fold_in(seed, 1),
        num_sweeps=gibbs_steps,
    )
    gain = tf.reduce_sum(evidence.weights * whole_change(evidence.visible))
    return Refit(
        visible_bias=matched.bias,
        scale=matched.scale,
        visible=matched.visible,
        judges=moved.visible,
        gain=gain - moved.log_ratio,
        gain_error=moved.error,
        judges_size=moved.size,
        acceptance=matched.acceptance,
    )
