import warnings

import keras
import numpy as np
import pytest

from keras_rbm import CRBM, DBM, DBN, RBM, InfiniteRBM, rules, units
from keras_rbm.optimizers import FallingRate

RNG = np.random.default_rng(0)
#: Two halves that are equal, mostly 1.
DENSE = np.tile(RNG.random((500, 32)) < 0.9, 2).astype("float32")


def told(model, data=DENSE, epochs=3, fits=2, **options):
    """Returns the warnings of several fits."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.compile(**options)
        for _ in range(fits):
            model.fit(data, epochs=epochs, verbose=0)
    return [str(w.message) for w in caught if w.category is UserWarning]


def test_hidden_units_that_died_are_counted_once():
    rule = rules.ContrastiveDivergence(centered=False)
    rbm = RBM(20, kernel_regularizer=None, seed=0)
    (message,) = told(rbm, epochs=20, fits=2, rule=rule)
    assert "of 20 hidden units are always off or always on" in message


def test_a_model_worse_than_independent_units():
    messages = told(RBM(20, seed=0), optimizer=keras.optimizers.Adam(1.0))
    (message,) = [m for m in messages if "worse than independent" in m]
    assert "smaller learning rate" in message


@pytest.mark.parametrize(
    "rows",
    [
        DENSE,
        *(
            pytest.param(x, marks=pytest.mark.slow)
            for x in (1.0 - DENSE, DENSE[:1], DENSE[:3])
        ),
    ],
)
@pytest.mark.parametrize(
    "model",
    [
        lambda: RBM(20, seed=0),
        lambda: RBM(4, visible="gaussian", seed=0),
        lambda: DBM([5, 3], seed=0),
        *(
            pytest.param(model, marks=pytest.mark.slow)
            for model in (
                lambda: RBM(4, visible=units.Categorical(2), hidden="gaussian", seed=0),
                lambda: DBN([5, 3], seed=0),
                lambda: InfiniteRBM(5, seed=0),
            )
        ),
    ],
)
def test_defaults_give_no_warning(model, rows):
    assert [
        m for m in told(model(), rows) if "units" in m and "Expected" not in m
    ] == []


@pytest.mark.parametrize("rate", [pytest.param(1e-9, marks=pytest.mark.slow), 1e-3])
def test_a_model_that_has_not_learned_is_not_worse(rate):
    """Its loss is that of independent units, but for the noise."""
    sparse = (RNG.random((300, 50)) < 0.02).astype("float32")
    for seed in range(5):
        messages = told(
            RBM(5, seed=seed), sparse, 1, 1, optimizer=keras.optimizers.SGD(rate)
        )
        assert messages == []


def test_rows_without_a_known_entry_do_not_count():
    """They made the loss of independent units smaller, but not that of the model."""
    rows = (RNG.random((300, 4)) < 0.5).astype("float32")
    rows[::2] = np.nan
    assert told(RBM(2, missing="absent", seed=0), rows, 1, 1) == []


def test_the_rate_that_is_named_is_where_it_began():
    """In the last epoch it has fallen to 0, of which there is none smaller."""
    optimizer = keras.optimizers.SGD(FallingRate(1e6))
    rbm = RBM(20, kernel_regularizer=None, seed=0)
    messages = told(rbm, fits=1, epochs=1, optimizer=optimizer)
    (message,) = [m for m in messages if "diverged" in m]
    assert "The learning rate is 1e+06" in message


X = RNG.normal(size=(300, 20)).astype("float32")
Y = (X[:, :5] + RNG.normal(size=(300, 5)) > 0.0).astype("float32")


def told_of_pairs(x=X, y=Y, validation=None, epochs=1, hidden_units=2, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        crbm = CRBM(hidden_units, seed=0, **options)
        crbm.compile()
        for _ in range(2):
            crbm.fit(x, y, validation_data=validation, epochs=epochs, verbose=0)
    return [str(w.message) for w in caught if w.category is UserWarning]


@pytest.mark.parametrize(
    "x",
    [0.01 * X, X + 100.0, pytest.param(1e4 * X, marks=pytest.mark.slow)],
    ids=["small", "far", "large"],
)
def test_features_of_another_scale(x):
    messages = told_of_pairs(x)
    assert ["Standardize" in message for message in messages].count(True) == 1


@pytest.mark.parametrize(
    "x",
    [
        X + 2.0,
        X[:1],
        *(pytest.param(x, marks=pytest.mark.slow) for x in (X, 0.0 * X, X > 2.0)),
    ],
)
def test_features_that_suit(x):
    assert told_of_pairs(x.astype("float32"), Y[: len(x)]) == []


def test_a_model_without_a_finite_sum_ends_fit():
    """`fit` went on, and only `sample` refused the model."""
    rows = RNG.normal(size=(200, 4))
    rbm = RBM(3, visible="gaussian", hidden="gaussian", num_visible=4, seed=0)
    rbm.kernel.assign(0.55 * np.ones((4, 3)))
    frozen = rbm.kernel, rbm.visible_log_precision, rbm.hidden_log_precision
    for variable in frozen:
        variable.trainable = False
    rbm.compile("sgd", rule="cd")
    with pytest.raises(ValueError, match="finite partition function, in epoch 1. Exp"):
        rbm.fit(rows, verbose=0)


def test_a_model_that_overfits():
    held_out = X[200:], Y[200:]
    options = {"validation": held_out, "epochs": 40, "hidden_units": 30}
    free = {"kernel_regularizer": None, "visible_bias_initializer": "zeros"}
    (message,) = told_of_pairs(X[:40], Y[:40], **options, **free)
    assert "overfits" in message and "EarlyStopping" in message


def test_a_model_that_does_not_overfit():
    assert told_of_pairs(validation=(X[:100], Y[:100]), epochs=10) == []
