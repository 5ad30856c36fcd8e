"""A penalty that makes weights sparse, and units similar in size."""

from typing import Any

import keras
import tensorflow as tf

from keras_rbm._checks import check_numbers


@keras.saving.register_keras_serializable("keras_rbm")
class L1Block(keras.regularizers.Regularizer):
    """The squared L1 norm of each unit's weights: "L1b" [2], the exclusive lasso [1].

    `strength / (2 R) sum_j (sum_r |w_rj|)²` of a kernel with R rows, one column per
    unit. The larger a unit's weights are, the more strongly each is pulled to 0: strong
    units lose weights, weak ones keep theirs.

    For real-valued hidden units with a learned precision the scale is not determined:
    the penalty then shrinks W, and the precision follows. Fix the scale after each
    epoch, as `examples/papers/proteins/training.py` does.

    Args:
        strength: float ≥ 0, `lambda_1²` in [2].

    Raises:
        TypeError, ValueError: if `strength` is not a number ≥ 0.

    Example:

    >>> penalty = keras_rbm.regularizers.L1Block(0.25)
    >>> rbm = keras_rbm.RBM(8, visible="spin", kernel_regularizer=penalty)

    References:
        1. Zhou, Jin, Hoi. Exclusive lasso for multi-task feature selection.
           AISTATS 2010.
        2. Tubiana, Cocco, Monasson. Learning protein constitutive motifs from sequence
           data. eLife 8, 2019.
    """

    def __init__(self, strength: float) -> None:
        check_numbers(strength=strength)
        if strength < 0:
            raise ValueError(f"Expected strength ≥ 0. Received: strength={strength!r}.")
        self.strength = float(strength)

    def __call__(self, x):
        norms = tf.reduce_sum(tf.abs(x), list(range(len(x.shape) - 1)))
        rows = tf.cast(tf.size(x) / tf.size(norms), norms.dtype)
        return 0.5 * self.strength / rows * tf.reduce_sum(tf.square(norms))

    def get_config(self) -> dict[str, Any]:
        return {"strength": self.strength}
