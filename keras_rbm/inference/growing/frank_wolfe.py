"""How adding, weighting and removing a hidden unit changes the likelihood.

With `sp(a) = log(1 + exp(a))` and `a(v) = w' v + d`, a unit that counts `c` times
changes the mean log-likelihood by

    Delta L(c) = mean_data c sp(a) - log mean_model exp(c sp(a))

exactly, where the second mean is over the model before the change. Removing the unit
changes it by `Delta L(-c)`. Both are estimated from the same model samples and are
concave in c.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm.inference.growing.reweighting import log_mean_exp, weighted_mean

_HALVINGS = 30


class DataAndSamples(NamedTuple):
    """The positive phase (data) and the negative phase (model samples).

    The weights of each sum to 1.

    Attributes:
        visible: tensor (N, V).
        weights: tensor (N,).
        samples: tensor (S, V).
        sample_weights: tensor (S,).
    """

    visible: tf.Tensor
    weights: tf.Tensor
    samples: tf.Tensor
    sample_weights: tf.Tensor


class HiddenUnits(NamedTuple):
    """Parameters of R hidden units: `weights` (R, V) and `bias` (R,)."""

    weights: tf.Tensor
    bias: tf.Tensor

    def softplus(self, visible):
        """Returns sp(w'v + d), (B, R)."""
        inputs = tf.matmul(visible, self.weights, transpose_b=True)
        return tf.math.softplus(inputs + self.bias)

    def square(self):
        """Returns |w|^2 + d^2, (R,)."""
        return tf.reduce_sum(tf.square(self.weights), -1) + tf.square(self.bias)


def linearized_objective(units, phases, l2):
    """Returns `l2/2 |w, d|^2 + mean_model sp(a) - mean_data sp(a)` [1, eq. 9], (R,).

    Minus the first-order change of `J = mean log p - l2/2 sum_i c_i |w_i, d_i|^2`.
    Equation 6 divides that penalty by alpha, the sum of all c_i, so in equation 8 alpha
    multiplies the difference of the means; equation 9, which this follows, has no
    alpha.

    References:
        1. Ping, Liu, Ihler. Learning infinite RBMs with Frank-Wolfe. NIPS 2016.
    """
    data = weighted_mean(units.softplus(phases.visible), phases.weights)
    model = weighted_mean(units.softplus(phases.samples), phases.sample_weights)
    return 0.5 * l2 * units.square() + model - data


def likelihood_objective(units, phases, l2):
    """Returns `l2/2 |w, d|^2 - Delta L(1)`, (R,): exact up to the samples."""
    data = weighted_mean(units.softplus(phases.visible), phases.weights)
    growth = log_mean_exp(units.softplus(phases.samples), phases.sample_weights)
    return 0.5 * l2 * units.square() + growth - data


@tf.function(autograph=False)
def find_units(phases, starts, l2, objective, max_iterations, tolerance=1e-4):
    """Minimizes an objective of a hidden unit by L-BFGS from several starts at once.

    Args:
        phases: `DataAndSamples`.
        starts: `HiddenUnits`, R of them. 0 is a saddle point of both objectives.
        l2: float, the penalty's weight.
        objective: `linearized_objective` or `likelihood_objective`.
        max_iterations: int.
        tolerance: float, of the gradient's largest component.

    Returns:
        `(units, values)`: `HiddenUnits` and their objectives (R,).
    """
    import tensorflow_probability as tfp

    @tf.function(autograph=False)  # L-BFGS calls it in ten places: trace it once
    def value_and_gradient(position):
        def value(position):
            return objective(_split(position), phases, l2)

        return tfp.math.value_and_gradient(value, position)

    start = tf.concat([starts.weights, starts.bias[:, tf.newaxis]], 1)
    result = tfp.optimizer.lbfgs_minimize(
        value_and_gradient,
        start,
        tolerance=tolerance,
        max_iterations=max_iterations,
        stopping_condition=tfp.optimizer.converged_all,
    )
    return _split(result.position), result.objective_value


def best_coefficients(data, samples, sample_weights, penalties, largest):
    """Maximizes `c mean_data x - log mean_model exp(c x) - c penalty` for each unit.

    Args:
        data: tensor (H,), mean of x = sp(a) over the data.
        samples: tensor (S, H), x of the model samples.
        sample_weights: tensor (S,).
        penalties: tensor (H,), `l2/2 |w, d|^2`.
        largest: tensor (H,); c lies between 0 and this.

    Returns:
        tensor (H,).
    """
    log_weights = tf.math.log(sample_weights)[:, tf.newaxis]

    def slope(c):
        tilted = tf.nn.softmax(log_weights + c * samples, axis=0)
        return data - penalties - tf.reduce_sum(tilted * samples, 0)

    def halve(index, low, high):
        middle = 0.5 * (low + high)
        rising = slope(middle) > 0.0
        return index + 1, tf.where(rising, middle, low), tf.where(rising, high, middle)

    _, low, high = tf.while_loop(
        lambda index, *_: index < _HALVINGS,
        halve,
        (tf.constant(0), tf.zeros_like(largest), largest),
    )
    inside = tf.where(slope(tf.zeros_like(largest)) <= 0.0, 0.0, 0.5 * (low + high))
    return tf.where(slope(largest) >= 0.0, largest, inside)


def removal_gains(coefficients, data, samples, sample_weights, penalties):
    """Returns the gain in penalized likelihood from removing each single unit.

    Args:
        coefficients: tensor (H,), c.
        data: tensor (H,), mean of sp(a) over the data.
        samples: tensor (S, H), sp(a) of the model samples.
        sample_weights: tensor (S,).
        penalties: tensor (H,), `l2/2 |w, d|^2`.

    Returns:
        `(gains, errors)`, (H,): `-c mean_data sp(a) - log mean_model exp(-c sp(a))
        + c penalty`, and its standard error by the delta method.
    """
    shrunk = -coefficients * samples
    growth = log_mean_exp(shrunk, sample_weights)
    relative = tf.exp(shrunk - growth) - 1.0
    weights = sample_weights[:, tf.newaxis]
    errors = tf.sqrt(tf.reduce_sum(tf.square(weights * relative), 0))
    return coefficients * (penalties - data) - growth, errors


class Removal(NamedTuple):
    """The removal of a hidden unit, or a smaller coefficient for it.

    Attributes:
        unit: int tensor, its index.
        coefficient: scalar, its new coefficient.
        gain: scalar, gain in penalized likelihood, nats.
        error: scalar, its standard error.
    """

    unit: tf.Tensor
    coefficient: tf.Tensor
    gain: tf.Tensor
    error: tf.Tensor


def best_removal(potentials, phases, l2, *, line_search):
    """Finds the hidden unit whose removal raises the penalized likelihood most.

    Args:
        potentials: `Potentials` with `FractionalParameters` hidden units.
        phases: `DataAndSamples` with samples of the model.
        l2: float, the penalty's weight.
        line_search: bool, whether a unit's coefficient may be reduced instead.

    Returns:
        `Removal`.
    """
    coefficients = potentials.hidden.coefficients

    def softplus(states):
        return tf.math.softplus(potentials.hidden_natural(states))

    data = weighted_mean(softplus(phases.visible), phases.weights)
    samples = softplus(phases.samples)
    units = HiddenUnits(tf.transpose(potentials.kernel), potentials.hidden_bias)
    penalties = 0.5 * l2 * units.square()
    amounts = coefficients
    if line_search:
        amounts = best_coefficients(
            -data, -samples, phases.sample_weights, -penalties, coefficients
        )
    gains, errors = removal_gains(
        amounts, data, samples, phases.sample_weights, penalties
    )
    best = tf.argmax(gains, output_type=tf.int32)
    return Removal(
        best,
        tf.gather(coefficients - amounts, best),
        tf.gather(gains, best),
        tf.gather(errors, best),
    )


def _split(position):
    return HiddenUnits(position[:, :-1], position[:, -1])
