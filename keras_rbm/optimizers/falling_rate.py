"""A learning rate that falls to 0 in as many steps as `fit` makes."""

from typing import Any

import keras
import tensorflow as tf

from keras_rbm._checks import check_numbers


@keras.saving.register_keras_serializable("keras_rbm")
class FallingRate(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that falls to 0 in a straight line while `fit` runs.

    In update t, counted from the first of `fit`'s epoch 0, it is
    `initial_learning_rate * (1 - t / T)`, where T is how many updates `fit` was asked
    for: all epochs times their steps. So nobody has to count steps, and the last epochs
    average the noise of the samples away. It begins again with each call of `fit`; with
    `initial_epoch`, or resumed from a backup, it goes on where that epoch begins. If a
    pipeline does not say how long it is, the rate falls from epoch to epoch:
    `initial_learning_rate * (1 - epoch / epochs)`. Outside of `fit`, as in
    `train_on_batch`, and in models of other libraries, it does not fall.

    Args:
        initial_learning_rate: float > 0.

    Raises:
        TypeError, ValueError: if it is not a number > 0.

    Example:

    >>> rate = keras_rbm.optimizers.FallingRate(0.1)
    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.compile(keras.optimizers.SGD(rate), rule="pcd")
    >>> history = rbm.fit(np.eye(6, dtype="float32"), epochs=20, verbose=0)
    """

    def __init__(self, initial_learning_rate: float) -> None:
        check_numbers(initial_learning_rate=initial_learning_rate)
        if not initial_learning_rate > 0.0:
            raise ValueError(
                "Expected initial_learning_rate > 0. Received: "
                f"initial_learning_rate={initial_learning_rate}."
            )
        self.initial_learning_rate = float(initial_learning_rate)
        # Variables: a step that has been traced sees each new fit.
        self._first, self._length = (
            tf.Variable(0, trainable=False, dtype=tf.int64) for _ in range(2)
        )
        self._share = tf.Variable(1.0, trainable=False)

    def fall(self, first: int, length: int) -> None:
        """Lets the rate fall to 0 from update `first` on, for `length` ≥ 1 updates."""
        self._first.assign(first)
        self._length.assign(length)

    def hold(self, share: float = 1.0) -> None:
        """Holds the rate at a share of the initial one."""
        self._share.assign(share)
        self._length.assign(0)

    def __call__(self, step: Any) -> tf.Tensor:
        """Returns the rate of an update, a scalar."""
        length = tf.maximum(tf.convert_to_tensor(self._length), 1)
        left = self._first + length - tf.cast(step, tf.int64)
        share = tf.cast(left, tf.float32) / tf.cast(length, tf.float32)
        falls = tf.convert_to_tensor(self._length) > 0
        share = tf.where(falls, tf.clip_by_value(share, 0.0, 1.0), self._share)
        return self.initial_learning_rate * share

    def get_config(self) -> dict[str, Any]:
        return {"initial_learning_rate": self.initial_learning_rate}
