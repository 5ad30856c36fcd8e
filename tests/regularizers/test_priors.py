import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import assert_restored

import keras_rbm
from keras_rbm.regularizers import L1BlockPrior, NormalPrior

ROWS = np.tile(np.eye(4, dtype="float32"), (3, 1))


#: A pipeline that does not say how long it is.
UNKNOWN = tf.data.Dataset.from_tensor_slices(ROWS).batch(4).filter(lambda x: True)


def made():
    rbm = keras_rbm.RBM(2, num_visible=4, seed=0, kernel_regularizer=NormalPrior(0.5))
    rbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    return rbm


def penalties(rbm, data, **kwargs):
    """Returns the penalty of each batch of a `fit`."""
    found = []
    look = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: found.append(rbm.losses[0])
    )
    rbm.fit(data, verbose=0, callbacks=[look], **kwargs)
    return found


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize(
    "data",
    [ROWS, tf.data.Dataset.from_tensor_slices(ROWS).batch(4), UNKNOWN],
    ids=["array", "pipeline", "unknown length"],
)
def test_counts_each_row_once(data):
    rbm = made()
    penalty = penalties(rbm, data, batch_size=None, epochs=2)[-1]
    squares = np.sum(np.square(rbm.kernel))
    np.testing.assert_allclose(penalty, squares / (2 * 0.5**2 * 12), rtol=1e-5)
    # A fit of one epoch of unknown length keeps what is known.
    penalties(rbm, UNKNOWN)
    assert rbm.fit_state.rows == 12


@pytest.mark.parametrize(("columns", "share"), [(4, 1.0), (600, 0.5)])
def test_few_weights_a_unit(columns, share):
    """Above 300 rows of a kernel a unit may have more of them."""
    rbm = keras_rbm.RBM(2, seed=0, kernel_regularizer=L1BlockPrior(0.6))
    rbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    rows = np.zeros((70, columns), "float32")
    penalty = penalties(rbm, rows)[-1]
    norms = np.abs(rbm.kernel).sum(0)
    np.testing.assert_allclose(penalty, share * 0.3 * (norms**2).sum() / 70, rtol=1e-5)


def test_six_rows_outweigh_the_default_prior():
    """Two kinds of users, of two kinds of films: -1.33 nats at best."""
    users = np.kron(np.eye(2), np.ones((3, 3))).astype("float32")
    users[[1, 4], [1, 5]], users[3:, 2] = 0.0, 1.0
    rbm = keras_rbm.RBM(2, seed=0)
    rbm.compile()
    rbm.fit(users, epochs=300, verbose=0)
    assert np.mean(rbm.log_likelihood(users, "exact")) > -1.6


def test_rows_of_a_last_batch_that_is_not_full():
    """It counted as full: 13 rows in batches of 12 as 24."""
    rows, rbm = np.concatenate([ROWS, ROWS[:1]]), made()
    one, other = (penalties(rbm, rows, batch_size=size)[-1] for size in (12, 13))
    np.testing.assert_allclose(one, other, rtol=1e-5)
    assert rbm.fit_state.rows == 13


def test_rows_go_on_where_a_pipeline_does_not_say_how_many(tmp_path):
    rbm = made()
    rbm.fit(ROWS, batch_size=4, verbose=0)
    rbm.save(tmp_path / "rbm.keras")
    again = keras.saving.load_model(tmp_path / "rbm.keras")
    with pytest.warns(UserWarning, match="ran out of data"):
        assert penalties(again, UNKNOWN)[0] > 0.0


def test_no_penalty_outside_of_fit():
    rbm = made()
    assert penalties(rbm, ROWS)[-1] > 0.0
    network = keras.Sequential([rbm, keras.layers.Dense(1)])
    network.build((None, 4))
    assert sum(network.losses) == NormalPrior()(rbm.kernel) == 0.0


def test_the_maximum_is_that_of_scikit_learn():
    """Of the posterior density, for a model without hidden units' influence."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)).astype("float32")
    y = (rng.random((60, 1)) < 0.5 + 0.3 * np.tanh(x[:, :1])).astype("float32")
    crbm = keras_rbm.CRBM(
        1, kernel_regularizer=NormalPrior(0.5), kernel_initializer="zeros", seed=0
    )
    crbm.compile(keras.optimizers.SGD(0.5))
    crbm.fit(x, y, batch_size=60, epochs=300, verbose=0)
    expected = LogisticRegression(C=0.25, tol=1e-8).fit(x, y[:, 0])
    np.testing.assert_allclose(crbm.visible_kernel[:, 0], expected.coef_[0], atol=1e-3)
    np.testing.assert_allclose(crbm.visible_bias, expected.intercept_, atol=1e-3)


def test_config_round_trip():
    assert assert_restored(keras.regularizers, NormalPrior(0.3)).stddev == 0.3
    assert assert_restored(keras.regularizers, L1BlockPrior(0.3)).strength == 0.3
