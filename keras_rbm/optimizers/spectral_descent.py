"""Stochastic spectral descent."""

import math
import numbers
from typing import Any

import keras
import tensorflow as tf

#: Singular values up to this share of the largest count as zero.
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

    Methods. A batch of B gives an RBM's kernel a gradient of rank ≤ 2B, so the polar
    factor is that of its numerical range: `"svd"` drops singular values up to 1e-4 of
    the largest. `"newton_schulz"` iterates `X ← (15 X - 10 XX'X + 3 (XX')²X) / 8`
    from a scaled G until `‖X_{k+1} - X_k‖ ≤ 1e-3`, with matrix products only. It ends
    after 14 steps, which bring a singular value of 1e-4 of the largest half-way to 1.
    Values above about 1e-3 reach 1, those below 1e-5 stay near 0; between them, where
    `"svd"` drops all or nothing, the factor is gradual. XLA compiles it. XLA's own SVD
    takes seconds where TensorFlow's takes milliseconds, so `"svd"` needs
    `compile(jit_compile=False)`; on a CPU it is the faster of the two.

    Args:
        learning_rate: float ≥ 0 or `keras.optimizers.schedules.LearningRateSchedule`;
            the rate of all variables but matrices, and of `weight_decay` for all.
        matrix_learning_rate: float ≥ 0, schedule or `None`. A float can be set again
            at any time, like `learning_rate`.
        method: str, `"newton_schulz"` or `"svd"`. Both compute in float32, or in
            float64 for float64 gradients.
        **kwargs: as for every Keras optimizer: `weight_decay`, `clipnorm`, `use_ema`,
            `gradient_accumulation_steps`, `name` and so on.

    Raises:
        TypeError: if a rate is neither a number nor a schedule; if a rate is assigned
            although `matrix_learning_rate` was not created as a float.
        ValueError: if a rate is negative or not finite, or the method is unknown; at
            the first step, if XLA would compile `"svd"`.

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
        matrix_learning_rate: float
        | keras.optimizers.schedules.LearningRateSchedule
        | None = None,
        method: str = "newton_schulz",
        **kwargs: Any,
    ) -> None:
        learning_rate = _checked_rate("learning_rate", learning_rate)
        if matrix_learning_rate is not None:
            matrix_learning_rate = _checked_rate(
                "matrix_learning_rate", matrix_learning_rate
            )
        if method not in list(_POLAR_FACTORS):
            raise ValueError(
                f"Expected a method among {sorted(_POLAR_FACTORS)}. Received: "
                f"method={method!r}."
            )
        super().__init__(learning_rate, **kwargs)
        self.method = method
        if isinstance(matrix_learning_rate, float):
            matrix_learning_rate = self.add_variable(
                shape=(),
                initializer=keras.initializers.Constant(matrix_learning_rate),
                aggregation="only_first_replica",
                name="matrix_learning_rate",
            )
        self._matrix_learning_rate = matrix_learning_rate

    @property
    def matrix_learning_rate(self) -> keras.Variable | tf.Tensor | None:
        """The rate of matrices: a variable, a schedule's current value, or `None`."""
        rate = self._matrix_learning_rate
        return rate(self._iterations) if _is_schedule(rate) else rate

    @matrix_learning_rate.setter
    def matrix_learning_rate(self, rate: float) -> None:
        made_as_float = isinstance(self._matrix_learning_rate, keras.Variable)
        if not made_as_float or _is_schedule(rate):
            raise TypeError(
                "Expected a float, for an optimizer made with a float "
                f"matrix_learning_rate. Received: {rate!r} for one made with "
                f"{self._matrix_learning_rate!r}. Make a new optimizer."
            )
        self._matrix_learning_rate.assign(_checked_rate("matrix_learning_rate", rate))

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
        polar = _POLAR_FACTORS[self.method](gradient)
        nuclear_norm = tf.reduce_sum(gradient * polar)
        return tf.cast(rate, gradient.dtype) * nuclear_norm * polar

    def get_config(self) -> dict[str, Any]:
        rate = self._matrix_learning_rate
        if _is_schedule(rate):
            rate = keras.optimizers.schedules.serialize(rate)
        elif rate is not None:
            rate = float(rate.numpy())
        own = {"matrix_learning_rate": rate, "method": self.method}
        return super().get_config() | own

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> "StochasticSpectralDescent":
        rate = config.get("matrix_learning_rate")
        if isinstance(rate, dict):
            rate = keras.optimizers.schedules.deserialize(rate, custom_objects)
            config = config | {"matrix_learning_rate": rate}
        return super().from_config(config, custom_objects)


def polar_factor_by_svd(matrix):
    """Returns `U V'` of a matrix `U S V'`, without the directions that are dropped.

    Args:
        matrix: float tensor (rows, columns), of zeros or of any rank.

    Returns:
        tensor (rows, columns); zeros for zeros.

    Raises:
        ValueError: if XLA would compile it.
    """
    # TensorFlow's only way to say whether XLA compiles what is being traced.
    from tensorflow.python.ops import control_flow_util

    if control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
        raise ValueError(
            "Expected a step that XLA does not compile for method='svd'. Received: "
            f"jit_compile on a matrix of shape {tuple(matrix.shape)}. Use "
            "method='newton_schulz', or compile(jit_compile=False)."
        )
    s, u, v = tf.linalg.svd(matrix)
    kept = tf.cast(s > DROP_TOLERANCE * s[0], matrix.dtype)
    return tf.matmul(kept * u, v, transpose_b=True)


def polar_factor_by_newton_schulz(matrix):
    """Approximates `polar_factor_by_svd` by matrix products.

    Args:
        matrix: float tensor (rows, columns) of known shape, of zeros or of any rank.

    Returns:
        tensor (rows, columns); zeros for zeros.
    """
    if matrix.shape[0] > matrix.shape[1]:
        return tf.transpose(polar_factor_by_newton_schulz(tf.transpose(matrix)))

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


_POLAR_FACTORS = {
    "newton_schulz": polar_factor_by_newton_schulz,
    "svd": polar_factor_by_svd,
}


def _is_schedule(rate):
    return isinstance(rate, keras.optimizers.schedules.LearningRateSchedule)


def _checked_rate(name, rate):
    """Returns a rate as float or schedule, or raises."""
    if _is_schedule(rate):
        return rate
    if isinstance(rate, bool) or not isinstance(rate, numbers.Real):
        raise TypeError(
            "Expected a float or a keras.optimizers.schedules.LearningRateSchedule. "
            f"Received: {name}={rate!r}. Pass for example {name}=0.01."
        )
    if not 0 <= rate < math.inf:
        raise ValueError(
            f"Expected a finite rate ≥ 0. Received: {name}={rate!r}. Pass for example "
            f"{name}=0.01."
        )
    return float(rate)
