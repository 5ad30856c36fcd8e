"""Regularizers for any Keras model."""

import math as _math
from typing import Any as _Any

import keras
import tensorflow as tf

from keras_rbm._checks import check_numbers as _check_numbers

#: Rows of a kernel from which on a unit may have more weights, see `L1BlockPrior`.
_SOME_ROWS = 300
#: Rows of data that `L1BlockPrior` counts at least: six cannot outweigh it.
_FEWEST_ROWS = 30


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
        self.strength = _checked_strength(strength)

    def __call__(self, x):
        rows, squares = _rows_and_squares(x)
        return 0.5 * self.strength / rows * squares

    def get_config(self) -> dict[str, _Any]:
        return {"strength": self.strength}


def _checked_strength(strength):
    _check_numbers(strength=strength)
    if strength < 0:
        raise ValueError(f"Expected strength ≥ 0. Received: strength={strength!r}.")
    return float(strength)


def _rows_and_squares(kernel):
    """Returns a kernel's number of rows, and the sum of its units' squared L1 norms."""
    norms = tf.reduce_sum(tf.abs(kernel), list(range(len(kernel.shape) - 1)))
    return _math.prod(kernel.shape[:-1]), tf.reduce_sum(tf.square(norms))


class Prior(keras.regularizers.Regularizer):
    """Minus the log-density of weights, for each of N training rows.

    With it, `fit` maximizes the posterior density of the weights given the data. The
    more rows there are, the less it matters, so one suits small data and large.
    """

    def __init__(self) -> None:
        # A variable: a step that has been traced sees each new fit.
        self._factor = tf.Variable(0.0, trainable=False)

    def count(self, rows: float) -> None:
        """Counts for so many rows from now on; for 0 of them it is no penalty."""
        self._factor.assign(self._of_one_row() / rows if rows else 0.0)


@keras.saving.register_keras_serializable("keras_rbm")
class L1BlockPrior(Prior):
    """`L1Block` for each of N training rows: units of few weights, where rows are few.

    `strength / (2 N) min(1, 300 / R) sum_j (sum_r |w_rj|)²` of a kernel with R rows,
    one column per unit. See `NormalPrior` for what N is; here it is at least 30, since
    fewer rows could not outweigh it. It is the default of `RBM` and `DBM` of
    binary units: where a unit needs few of the columns it finds them, and where it
    needs many it costs little; of proteins and wines `NormalPrior(1)` is better. The
    strength, and the 300 rows from which on a unit may have more weights, were chosen
    by the likelihood of held-out rows of binary tables of 16 to 1,058 columns.

    Args:
        strength: float ≥ 0.

    Raises:
        TypeError, ValueError: if `strength` is not a number ≥ 0.

    Example:

    >>> prior = keras_rbm.regularizers.L1BlockPrior(0.2)
    >>> rbm = keras_rbm.RBM(8, kernel_regularizer=prior)
    """

    def __init__(self, strength: float = 0.05) -> None:
        super().__init__()
        self.strength = _checked_strength(strength)

    def count(self, rows):
        super().count(max(rows, _FEWEST_ROWS) if rows else 0.0)

    def _of_one_row(self):
        return 0.5 * self.strength

    def __call__(self, x):
        rows, squares = _rows_and_squares(x)
        share = min(1.0, _SOME_ROWS / rows)
        return tf.cast(self._factor, x.dtype) * share * squares

    def get_config(self) -> dict[str, _Any]:
        return {"strength": self.strength}


@keras.saving.register_keras_serializable("keras_rbm")
class NormalPrior(Prior):
    """Minus the log-density of weights under N(0, s²), for each of N training rows.

    `sum_ij w_ij² / (2 s² N)`, which is the penalty of logistic regression in
    scikit-learn with `C = s²`. `fit` of this library's models says how many rows there
    are: of arrays the rows whose weight is not 0, of a pipeline the batches of an epoch
    times the rows of the first. If a pipeline does not say how many batches there are,
    N is known after the first epoch of the first fit. Outside of `fit`, and in other
    models, there is no penalty.

    Args:
        stddev: float > 0, s. By default that with which a `CRBM` begins: C = 0.3,
            about the best of logistic regressions that restore 8×8 noisy digits, from
            300 images to 1,200.

    Raises:
        TypeError, ValueError: if `stddev` is not a number > 0.

    Example:

    >>> prior = keras_rbm.regularizers.NormalPrior(0.5)
    >>> crbm = keras_rbm.CRBM(8, kernel_regularizer=prior)
    """

    def __init__(self, stddev: float = 0.55) -> None:
        super().__init__()
        _check_numbers(stddev=stddev)
        if not stddev > 0:
            raise ValueError(f"Expected stddev > 0. Received: stddev={stddev!r}.")
        self.stddev = float(stddev)

    def _of_one_row(self):
        return 0.5 / self.stddev**2

    def __call__(self, x):
        return tf.cast(self._factor, x.dtype) * tf.reduce_sum(tf.square(x))

    def get_config(self) -> dict[str, _Any]:
        return {"stddev": self.stddev}
