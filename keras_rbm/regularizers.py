"""Regularizers for any Keras model."""

from typing import Any as _Any

import keras
import tensorflow as tf

from keras_rbm._checks import check_numbers as _check_numbers


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
        _check_numbers(strength=strength)
        if strength < 0:
            raise ValueError(f"Expected strength ≥ 0. Received: strength={strength!r}.")
        self.strength = float(strength)

    def __call__(self, x):
        norms = tf.reduce_sum(tf.abs(x), list(range(len(x.shape) - 1)))
        rows = tf.cast(tf.size(x) / tf.size(norms), norms.dtype)
        return 0.5 * self.strength / rows * tf.reduce_sum(tf.square(norms))

    def get_config(self) -> dict[str, _Any]:
        return {"strength": self.strength}


@keras.saving.register_keras_serializable("keras_rbm")
class NormalPrior(keras.regularizers.Regularizer):
    """Minus the log-density of weights under N(0, s²), for each of N training rows.

    `sum_ij w_ij² / (2 s² N)`: with it, `fit` maximizes the posterior density of the
    weights given the data. The more rows there are, the less the prior matters, so one
    deviation s suits small data and large. It is the penalty of logistic regression in
    scikit-learn with `C = s²`. `fit` of this library's models says how many rows there
    are: of arrays the rows whose weight is not 0, of a pipeline the batches of an epoch
    times the rows of the first. If a pipeline does not say how many batches there are,
    N is known after the first epoch of the first fit. Outside of `fit`, and in other
    models, there is no penalty.

    Args:
        stddev: float > 0, s. By default that with which a `CRBM` begins: C = 0.3,
            about the best of logistic regressions that restore 8×8 noisy digits, from
            300 images to 1,200. `RBM` and `DBM` have 1, which leaves room for strong
            couplings.

    Raises:
        TypeError, ValueError: if `stddev` is not a number > 0.

    Example:

    >>> prior = keras_rbm.regularizers.NormalPrior(0.5)
    >>> crbm = keras_rbm.CRBM(8, kernel_regularizer=prior)
    """

    def __init__(self, stddev: float = 0.55) -> None:
        _check_numbers(stddev=stddev)
        if not stddev > 0:
            raise ValueError(f"Expected stddev > 0. Received: stddev={stddev!r}.")
        self.stddev = float(stddev)
        # A variable: a step that has been traced sees each new fit.
        self._l2 = tf.Variable(0.0, trainable=False)

    def count(self, rows: float) -> None:
        """Counts for so many rows from now on; for 0 of them it is no penalty."""
        self._l2.assign(0.5 / (self.stddev**2 * rows) if rows else 0.0)

    def __call__(self, x):
        return tf.cast(self._l2, x.dtype) * tf.reduce_sum(tf.square(x))

    def get_config(self) -> dict[str, _Any]:
        return {"stddev": self.stddev}
