"""The L1 block penalty: its value, and that it leaves few weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import assert_restored

from keras_rbm.regularizers import L1Block, L1BlockPrior, NormalPrior


def test_l1_block_is_a_squared_norm_of_each_unit():
    kernel = np.array([[1.0, -2.0], [3.0, 0.0], [0.0, 0.5]], "float32")
    penalty = L1Block(0.25)
    want = 0.25 / (2 * 3) * (4.0**2 + 2.5**2)
    assert float(penalty(tf.constant(kernel))) == pytest.approx(want)
    assert assert_restored(keras.regularizers, penalty).strength == 0.25
    dense = keras.Sequential([keras.layers.Dense(2, kernel_regularizer=penalty)])
    dense.compile("sgd", "mse")
    dense.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)


@pytest.mark.parametrize(
    ("kind", "number", "word"),
    [
        (L1Block, -1.0, "strength ≥ 0"),
        (L1BlockPrior, -1.0, "strength ≥ 0"),
        (L1Block, "a", "number"),
        *((NormalPrior, number, "stddev") for number in (0.0, -1.0, "a", np.nan)),
    ],
)
def test_what_is_refused(kind, number, word):
    with pytest.raises((TypeError, ValueError), match=word):
        kind(number)
