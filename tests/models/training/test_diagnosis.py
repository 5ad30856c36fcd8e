import itertools
import warnings

import keras
import numpy as np
import pytest
from small_models import compiled, fitted, quick, slow

from keras_rbm import CRBM, DBM, DBN, RBM, InfiniteRBM, rules, units
from keras_rbm.models.training.diagnosis import Diagnosis
from keras_rbm.optimizers import FallingRate
from keras_rbm.regularizers import L1BlockPrior

RNG = np.random.default_rng(0)
#: Two halves that are equal, mostly 1.
DENSE = np.tile(RNG.random((500, 32)) < 0.9, 2).astype("float32")
X = RNG.normal(size=(300, 20)).astype("float32")
Y = (X[:, :5] + RNG.normal(size=(300, 5)) > 0.0).astype("float32")


def told(model, *data, epochs=3, fits=2, validation_data=None, **options):
    """Returns the warnings of several fits."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        compiled(model, **options)
        for _ in range(fits):
            fitted(
                model,
                *(data or [DENSE]),
                epochs=epochs,
                validation_data=validation_data,
            )
    return [str(w.message) for w in caught if w.category is UserWarning]


def told_of_pairs(x=X, y=Y, hidden_units=2, epochs=1, validation_data=None, **options):
    model = CRBM(hidden_units, seed=0, **options)
    return told(model, x, y, epochs=epochs, validation_data=validation_data)


def the_one(messages, words):
    (message,) = [message for message in messages if words in message]
    return message


def test_hidden_units_that_died_are_counted_once():
    rule = rules.ContrastiveDivergence(centered=False)
    start = keras.initializers.RandomNormal(0.0, 0.01, seed=0)
    rbm = RBM(20, kernel_regularizer=None, kernel_initializer=start, seed=0)
    (message,) = told(rbm, epochs=20, rule=rule)
    assert "of 20 hidden units are always off or always on" in message


def test_hidden_units_that_have_learned_nothing():
    """Of three bits of which two decide the third, no two say anything."""
    xor = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], "float32")
    (message,) = told(RBM(4, seed=0), xor, epochs=100)
    assert "do not vary in the data" in message


def test_a_model_worse_than_independent_units():
    messages = told(RBM(20, seed=0), optimizer=keras.optimizers.Adam(1.0))
    assert "rate is 1: use a smaller" in the_one(messages, "worse than independent")


MODELS = {
    "RBM": lambda: RBM(20, seed=0),
    "gaussian": lambda: RBM(4, visible="gaussian", seed=0),
    "DBM": lambda: DBM([5, 3], seed=0),
    "categorical": lambda: RBM(
        4, visible=units.Categorical(2), hidden="gaussian", seed=0
    ),
    "DBN": lambda: DBN([5, 3], seed=0),
    "growing": lambda: InfiniteRBM(5, seed=0),
}
ROWS = {"dense": DENSE, "thin": 1.0 - DENSE, "one": DENSE[:1], "three": DENSE[:3]}
QUICK = [(name, "dense") for name in ("RBM", "gaussian", "DBM")]


@pytest.mark.parametrize(
    "pair", quick(itertools.product(MODELS, ROWS), *QUICK), ids=str
)
def test_defaults_give_no_warning(pair):
    messages = told(MODELS[pair[0]](), ROWS[pair[1]])
    assert not [m for m in messages if "units" in m and "Expected" not in m]


@pytest.mark.parametrize("rate", quick([1e-9, 1e-3], 1e-3))
def test_a_model_that_has_not_learned_is_not_worse(rate):
    """Its loss is that of independent units, but for the noise."""
    sparse = (RNG.random((300, 50)) < 0.02).astype("float32")
    for seed in range(5):
        options = {"epochs": 1, "fits": 1, "optimizer": keras.optimizers.SGD(rate)}
        assert told(RBM(5, seed=seed), sparse, **options) == []


def test_rows_without_a_known_entry_do_not_count():
    """They made the loss of independent units smaller, but not that of the model."""
    rows = (RNG.random((300, 4)) < 0.5).astype("float32")
    rows[::2] = np.nan
    assert told(RBM(2, missing="absent", seed=0), rows, epochs=1, fits=1) == []


def test_the_rate_that_is_named_is_where_it_began():
    """In the last epoch it has fallen to 0, of which there is none smaller."""
    optimizer = keras.optimizers.SGD(FallingRate(1e6))
    rbm = RBM(20, kernel_regularizer=None, seed=0)
    messages = told(rbm, fits=1, epochs=1, optimizer=optimizer)
    assert "The learning rate is 1e+06" in the_one(messages, "diverged")


@pytest.mark.parametrize(
    ("losses", "epoch"),
    [
        ([1e6, 1e5, 9.0], None),
        ([1e6, 2e6, 9.0, 1e6], 4),
        ([9.0, 1e6, 1e7, 1e8, 9.0], 3),
    ],
)
@pytest.mark.parametrize("chose", [True, False])
def test_it_speaks_at_the_end_or_if_nothing_gets_better(losses, epoch, chose):
    """A run that began badly was said to have diverged, and to need another rate."""
    rbm = fitted(compiled(RBM(4, seed=0), keras.optimizers.SGD(0.1)), DENSE)
    diagnosis, said = Diagnosis(), []
    diagnosis.set_model(rbm)
    diagnosis.begin(None, DENSE, True, chose)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number, loss in enumerate(losses):
            diagnosis.on_epoch_end(number, {"loss": loss})
            said += [number] * (len(caught) > len(said))
        diagnosis.on_train_end()
    messages = [str(w.message) for w in caught if "diverged" in str(w.message)]
    assert len(messages) == (epoch is not None)
    assert said == ([3] if epoch == 3 else [])
    for message in messages:
        assert ("Train longer" in message) == chose
        assert ("rate is 0.1" in message) != chose


@pytest.mark.parametrize("x", [0.01 * X, X + 100.0, slow(1e4 * X)])
def test_features_of_another_scale(x):
    the_one(told_of_pairs(x), "Standardize")


@pytest.mark.parametrize(
    "x", [X + 2.0, X[:1], *(slow(x) for x in (X, 0.0 * X, X > 2.0))]
)
def test_features_that_suit(x):
    assert told_of_pairs(x.astype("float32"), Y[: len(x)]) == []


def test_a_model_without_a_finite_sum_ends_fit():
    """`fit` went on, and only `sample` refused the model."""
    rbm = RBM(3, visible="gaussian", hidden="gaussian", num_visible=4, seed=0)
    rbm.kernel.assign(0.55 * np.ones((4, 3)))
    for variable in (rbm.kernel, rbm.visible_log_precision, rbm.hidden_log_precision):
        variable.trainable = False
    compiled(rbm, "sgd", rule="cd")
    with pytest.raises(ValueError, match="finite partition function, in epoch 1. Exp"):
        rbm.fit(RNG.normal(size=(200, 4)), verbose=0)


@pytest.mark.parametrize(
    ("count", "strength", "epochs", "known"),
    [(80, 0.001, 15, True), (80, 1.0, 30, False), (1000, 0.001, 15, False)],
    ids=["weak prior", "strong prior", "many rows"],
)
def test_rows_that_are_learned_by_heart(count, strength, epochs, known):
    """Four kinds of images; one pixel in five is flipped."""
    rng = np.random.default_rng(0)
    kinds = rng.random((4, 40)) < 0.5
    flipped = rng.random((count + 500, 40)) < 0.2
    rows = (kinds[rng.integers(0, 4, len(flipped))] ^ flipped).astype("float32")
    rbm = RBM(60, seed=0, kernel_regularizer=L1BlockPrior(strength))
    (data, held_out), options = np.split(rows, [count]), {"epochs": epochs, "fits": 1}
    messages = told(rbm, data, validation_data=(held_out,), **options)
    assert [*map(lambda message: "rows by heart" in message, messages)] == known * [
        True
    ]


def test_a_model_that_overfits():
    free = {"kernel_regularizer": None, "visible_bias_initializer": "zeros"}
    options = {"validation_data": (X[200:], Y[200:]), "epochs": 40, "hidden_units": 30}
    (message,) = told_of_pairs(X[:40], Y[:40], **options, **free)
    assert "overfits" in message and "EarlyStopping" in message
    assert told_of_pairs(validation_data=(X[:100], Y[:100]), epochs=10) == []
