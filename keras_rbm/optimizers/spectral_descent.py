"""Stochastic spectral descent."""

import math
from typing import Any

import keras
import tensorflow as tf

from keras_rbm._checks import check_numbers

#: Singular values up to about this share of the largest count as zero.
DROP_TOLERANCE = 1e-4
#: A step multiplies small singular values by 15/8. More steps would raise dropped ones.
MAX_STEPS = int(math.log(DROP_TOLERANCE) / math.log(8 / 15))
STEP_TOLERANCE = 1e-3


@keras.saving.register_keras_serializable("keras_rbm")
class StochasticSpectralDescent(keras.optimizers.Optimizer):
    """Steepest descent in the largest singular value of a matrix's step [1].

    `W ← W - matrix_learning_rate · ‖G‖_S1 · U V'` for each variable of two axes with
    gradient `G = U S V'`, where `‖G‖_S1 = sum(S)`; `U V'` is the polar factor of G.
    Every direction in the gradient gets a step of the same length. Variables with any
    other number of axes are updated as by SGD, with `learning_rate`. It works for any
    Keras model.

    Rates. Without `matrix_learning_rate` a matrix uses `learning_rate / min(rows,
    columns)`: then its step is never longer than that of SGD with the same rate
    (Frobenius norm), and equals it if one side is 1. For an RBM of binary units,
    because `log Z(W + D) ≤ log Z(W) + <∇log Z, D> + (VH/2) ‖D‖²_S∞`, the exact gradient
    never raises the negative log-likelihood if one variable moves at a time and the
    rates are 1/(VH) for the kernel, 4/V and 4/H for the biases; if all three move at
    once, a third of each. As for SGD, useful rates are far higher. On small data sets
    and with small batches the method was seen to diverge [2].

    The polar factor. A batch of B gives an RBM's kernel a gradient of rank ≤ 2B, so the
    factor is that of its numerical range: singular values up to about 1e-4 of the
    largest count as zero. It is found by matrix products only (`polar_factor`).

    Args:
        learning_rate: float or `keras.optimizers.schedules.LearningRateSchedule`; the
            rate of all variables but matrices, and of `weight_decay` for all.
        matrix_learning_rate: float ≥ 0 or `None`.
        **kwargs: as for every Keras optimizer: `weight_decay`, `clipnorm`, `use_ema`,
            `gradient_accumulation_steps`, `name` and so on.

    Raises:
        TypeError, ValueError: if `matrix_learning_rate` is no finite number ≥ 0.

    Example:

    >>> kernel = keras.Variable([[1.0, 0.0], [0.0, 1.0]])
    >>> optimizer = keras_rbm.optimizers.StochasticSpectralDescent(
    ...     matrix_learning_rate=0.1)
    >>> optimizer.apply([tf.constant([[3.0, 0.0], [0.0, 1.0]])], [kernel])
    >>> print(kernel.numpy().round(4))  # less 0.1 · (3 + 1) in both directions
    [[0.6 0. ]
     [0.  0.6]]

    References:
        1. Carlson, Cevher, Carin. Stochastic spectral descent for restricted
           Boltzmann machines. AISTATS 2015.
        2. Upadhya, Sastry. Learning RBM with a DC programming approach. ACML 2017.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 0.01,
        matrix_learning_rate: float | None = None,
        **kwargs: Any,
    ) -> None:
        rate = matrix_learning_rate
        if rate is not None:
            check_numbers(matrix_learning_rate=rate)
            if rate < 0:
                raise ValueError(
                    f"Expected a rate ≥ 0. Received: matrix_learning_rate={rate!r}."
                )
        super().__init__(learning_rate, **kwargs)
        self.matrix_learning_rate = rate

    def update_step(
        self, gradient: tf.Tensor, variable: keras.Variable, learning_rate: tf.Tensor
    ) -> None:
        gradient = tf.ensure_shape(tf.convert_to_tensor(gradient), variable.shape)
        if len(variable.shape) == 2:
            step = self._matrix_step(gradient, learning_rate)
        else:
            step = tf.cast(learning_rate, gradient.dtype) * gradient
        self.assign_sub(variable, step)

    def _matrix_step(self, gradient, learning_rate):
        if gradient.dtype != tf.float64:
            gradient = tf.cast(gradient, tf.float32)
        rate = self.matrix_learning_rate
        if rate is None:
            rate = learning_rate / min(gradient.shape)
        polar = polar_factor(gradient)
        nuclear_norm = tf.reduce_sum(gradient * polar)
        return tf.cast(rate, gradient.dtype) * nuclear_norm * polar

    def get_config(self) -> dict[str, Any]:
        rate = {"matrix_learning_rate": self.matrix_learning_rate}
        return super().get_config() | rate


def polar_factor(matrix):
    """Approximates `U V'` of a matrix `U S V'`, by Newton-Schulz iterations.

    It iterates `X ← (15 X - 10 XX'X + 3 (XX')²X) / 8` from a scaled matrix until
    `‖X_{k+1} - X_k‖ ≤ 1e-3`, and ends after 14 steps, which bring a singular value of
    1e-4 of the largest half-way to 1. Values above about 1e-3 reach 1, those below 1e-5
    stay near 0; between them the factor is gradual. It computes in the matrix' type.

    Args:
        matrix: float tensor (rows, columns) of known shape, of zeros or of any rank.

    Returns:
        tensor (rows, columns); zeros for zeros.
    """
    if matrix.shape[0] > matrix.shape[1]:
        return tf.transpose(polar_factor(tf.transpose(matrix)))

    def step(_, x):
        gram = tf.matmul(x, x, transpose_b=True)
        polynomial = 3 * tf.matmul(gram, gram) - 10 * gram
        following = (15 * x + tf.matmul(polynomial, x)) / 8
        return tf.norm(following - x), following

    # The iteration converges from singular values in (0, 1.5). First scale entries to
    # at most 1, whose squares neither overflow nor vanish; then divide by (Σ s⁴)^¼, a
    # bound of the largest s that is closer than the Frobenius norm.
    x = tf.math.divide_no_nan(matrix, tf.reduce_max(tf.abs(matrix)))
    gram = tf.matmul(x, x, transpose_b=True)
    x = tf.math.divide_no_nan(x, tf.sqrt(tf.norm(gram)))
    return tf.while_loop(
        lambda change, _: change > STEP_TOLERANCE,
        step,
        (tf.constant(math.inf, x.dtype), x),
        maximum_iterations=MAX_STEPS,
    )[1]
