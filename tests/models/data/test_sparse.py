"""Sparse rows do what dense ones do, bit for bit, and are never dense as a whole."""

import keras
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from same import assert_same, refused
from small_models import Loader, batches, compiled, generator, slow

import keras_rbm as kr
from keras_rbm.datasets.in_memory import SparseRows
from keras_rbm.models.training import many_steps
from keras_rbm.sklearn import RBMEstimator, RBMImputer

RNG = np.random.default_rng(0)
DATA = (RNG.random((103, 8)) < 0.2).astype("float32")
DATA[-3:] = 0.0  # the last rows store nothing
TARGETS = (RNG.random((103, 3)) < 0.4).astype("float32")
STARS = np.where(RNG.random((103, 8)) < 0.4, RNG.integers(0, 3, (103, 8)), np.nan)
STARS = STARS.astype("float32")
CSR = scipy.sparse.csr_array
ROWS, TENSOR = CSR(DATA), tf.sparse.from_dense(DATA)
EAGER = {"run_eagerly": True}


def stored(rows):
    """Returns rows as a SciPy matrix that stores what is not NaN, zeros among them."""
    places = np.nonzero(~np.isnan(rows))
    return CSR((rows[places], places), rows.shape)


def sparse_tensor(rows):
    places = np.argwhere(~np.isnan(rows))
    return tf.SparseTensor(places, rows[tuple(places.T)], rows.shape)


def rbm(**options):
    return kr.RBM(4, seed=0, **options)


def fitted(model, *data, **kwargs):
    """Returns a model's weights and history after an eager fit."""
    compiled(model, **EAGER)
    history = model.fit(*data, batch_size=20, verbose=0, **kwargs).history
    return [*map(np.array, model.weights), *history.values()]


#: Rows, the same ones that are dense, and options of `fit`.
FORMS = {
    "csr": (scipy.sparse.csr_matrix(DATA), DATA),
    "coo": (scipy.sparse.coo_array(DATA), DATA),
    "bool": (scipy.sparse.csc_array(DATA.astype(bool)), DATA),
    "tensor": (TENSOR, DATA),
    "pipeline": (batches(TENSOR, size=20), batches(DATA, size=20)),
    "loader": (Loader(ROWS, 20), Loader(DATA, 20)),
    "generator": (generator(ROWS, 20), generator(DATA, 20), {"steps_per_epoch": 5}),
    "weights": (ROWS, DATA, {"sample_weight": np.arange(103.0) % 3}),
    "split": (ROWS, DATA, {"validation_split": 0.2}),
    "validation": (ROWS, DATA, {"validation_data": ROWS[:50]}),
}


@pytest.mark.parametrize("name", FORMS)
def test_fit(name):
    sparse, dense, *options = FORMS[name]
    options = options[0] if options else {"shuffle": False}
    found = fitted(rbm(), sparse, **options)
    if name == "validation":
        options = {"validation_data": DATA[:50]}
    assert_same(found, fitted(rbm(), dense, **options))


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
def test_as_users_run():
    models = []
    for rows, tensor in ((DATA, DATA), (ROWS, TENSOR)):
        models.append(compiled(rbm()))
        models[-1].fit(rows, batch_size=20, epochs=3, verbose=0)
        models[-1].fit(batches(tensor, size=20), verbose=0)
    assert_same(*[model.weights for model in models])


@pytest.mark.parametrize(
    ("missing", "make"),
    [
        ("absent", stored),
        ("latent", sparse_tensor),
        slow("absent", sparse_tensor),
        slow("latent", stored),
    ],
)
def test_what_is_not_stored_is_unknown(missing, make):
    """A stored 0 is state 0."""

    def model():
        return rbm(visible=kr.units.Categorical(3), missing=missing)

    dense, sparse, rows = model(), model(), make(STARS)
    assert_same(fitted(sparse, rows), fitted(dense, STARS))
    few = make(STARS[:5])
    for method, options in (
        ("marginals", {"steps": 3}),
        ("impute", {"steps": 3}),
        ("log_likelihood", {"log_partition": "exact"}),
        ("__call__", {}),
    ):
        ours, theirs = (getattr(m, method) for m in (sparse, dense))
        np.testing.assert_array_equal(
            ours(few, **options), theirs(STARS[:5], **options)
        )
    adapted = model(), model()
    adapted[0].adapt(STARS)
    adapted[1].adapt(batches(rows) if make is sparse_tensor else rows)
    np.testing.assert_array_equal(adapted[0].base_rate, adapted[1].base_rate)


METHODS = {
    "__call__": {},
    "predict": {"verbose": 0},
    "predict_on_batch": {},
    "evaluate": {"verbose": 0},
    "train_on_batch": {},
    "test_on_batch": {},
    "reconstruct": {},
    "free_energy": {},
    "pseudo_log_likelihood": {},
    "log_likelihood": {"log_partition": 30.0},
    "adapt": {},
}


@pytest.mark.parametrize("method", METHODS)
def test_methods(method):
    forms = [DATA, scipy.sparse.coo_array(DATA), TENSOR]
    if method in ("free_energy", "log_likelihood", "adapt"):  # take datasets
        forms.append(batches(TENSOR))
    results = []
    for rows in forms:
        model = compiled(rbm(num_visible=8), **EAGER)
        result = getattr(model, method)(rows, **METHODS[method])
        results.append(model.base_rate if result is None else result)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_conditional_model():
    y = CSR(TARGETS)
    dense, sparse = kr.CRBM(4, seed=0), kr.CRBM(4, seed=0)
    one = fitted(dense, DATA, TARGETS)
    for pair in ((ROWS, TARGETS), (DATA, y)):
        assert_same(fitted(kr.CRBM(4, seed=0), *pair), one)
    assert_same(fitted(sparse, ROWS, y), one)
    scores = sparse.log_likelihood(ROWS, y), dense.log_likelihood(DATA, TARGETS)
    np.testing.assert_array_equal(*scores)
    np.testing.assert_array_equal(sparse.predict_map(ROWS), dense.predict_map(DATA))
    assert sparse.sample(ROWS, steps=1, seed=0).shape == TARGETS.shape


def test_estimator():
    options = {"n_iter": 1, "batch_size": 50, "random_state": 0}
    dense, sparse = RBMEstimator(4, **options), RBMEstimator(4, **options)
    dense.fit(DATA).partial_fit(DATA)
    sparse.fit(ROWS).partial_fit(ROWS)
    for method in ("transform", "score_samples"):
        ours, theirs = getattr(sparse, method), getattr(dense, method)
        np.testing.assert_array_equal(ours(ROWS), theirs(DATA))
    with refused("sparse X without NaN"):
        sparse.fit(ROWS * np.nan)
    with refused("dense data is required", error=TypeError):
        RBMImputer(4, n_iter=1).fit(ROWS)
    gaps = np.where(RNG.random(DATA.shape) < 0.1, np.nan, DATA)
    with refused("had NaN. Received: sparse X"):
        RBMEstimator(4, **options).fit(gaps).transform(ROWS)


@pytest.fixture
def never_whole(monkeypatch):
    """Fails where more than a thousand rows become dense at once."""
    dense = SparseRows.__array__

    def few(rows, *args, **kwargs):
        assert len(rows) <= 1000
        return dense(rows, *args, **kwargs)

    def whole(*args, **kwargs):
        raise AssertionError("the whole matrix became dense")

    monkeypatch.setattr(SparseRows, "__array__", few)
    for name in ("toarray", "todense"):
        monkeypatch.setattr(CSR, name, whole)
    monkeypatch.setattr(many_steps, "_MOST_BYTES", 2**14)


@pytest.mark.slow
@pytest.mark.usefixtures("never_whole")
def test_no_more_than_a_few_rows_are_dense():
    rows = CSR(RNG.random((12_000, 8)) < 0.2).astype("float32")
    model = compiled(kr.RBM(2, seed=0), **EAGER)
    model.fit(rows, batch_size=800, verbose=0, validation_split=0.1)
    model.adapt(rows)
    for method in ("free_energy", "pseudo_log_likelihood", "reconstruct"):
        assert getattr(model, method)(rows).shape[0] == 12_000
    model.log_likelihood(rows, 30.0)
    model.evaluate(rows, batch_size=800, verbose=0)
    model.predict(rows, batch_size=800, verbose=0)
    model.free_energy(tf.data.Dataset.from_tensors(TENSOR).repeat(12))
    table = CSR((rows.data * 0, rows.indices, rows.indptr), rows.shape)
    table.data[::2] = 1.0
    stars = kr.RBM(2, visible=kr.units.Categorical(2), missing="absent", seed=0)
    compiled(stars, **EAGER).fit(table, batch_size=800, verbose=0)
    stars.free_energy(table)
    with pytest.raises(AssertionError):
        np.asarray(SparseRows.of(rows))


def changed(row, column, value):
    rows = scipy.sparse.lil_array(DATA)
    rows[row, column] = value
    return rows


BAD = {
    "Received: 3 in row 101, column 5": (101, 5, 3.0),
    "Expected finite": (7, 2, np.nan),
    "Expected finite ": (7, 2, np.inf),
    "Received: -1 in row 0": (0, 0, -1.0),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_values_change_nothing(words):
    rows, model = changed(*BAD[words]), compiled(rbm(num_visible=8), **EAGER)
    for call in (model.fit, model.adapt, model.free_energy):
        with refused(words, model):
            call(rows)
    with refused("Expected", model):
        model.evaluate(batches(tf.sparse.from_dense(rows.toarray())), verbose=0)


def test_bad_shapes_and_types():
    model = compiled(rbm(num_visible=8), **EAGER)
    for rows, words, error in (
        (ROWS[:, :5], r"\(examples, 8\)", ValueError),
        (ROWS[:0], "at least one example", ValueError),
        (tf.data.Dataset.from_tensor_slices(TENSOR), "dataset.batch", ValueError),
        (ROWS.astype(complex), "numbers. Received: dtype complex", TypeError),
    ):
        with refused(words, model, error=error):
            model.fit(rows)


def test_units_without_state_0_need_all_entries():
    spins = rbm(visible="spin", num_visible=8)
    with refused("Received: 0 in row 0, column 0", spins):
        spins.adapt(CSR(np.where(np.eye(8), 0, 1.0)))
    assert spins.free_energy(CSR(2 * DATA - 1)).shape == 103
    mixed = kr.units.Joined([("bernoulli", 4), ("gaussian", 4)])
    mixed = rbm(visible=mixed, num_visible=8)
    fitted(mixed, changed(102, 7, 5.0))
    with refused("Bernoulli.*5 in row 102, column 3", mixed):
        mixed.fit(changed(102, 3, 5.0))


def test_zeros_that_have_been_dropped():
    """`eliminate_zeros` would make the lowest rating unknown."""
    rows = stored(STARS)
    rows.eliminate_zeros()
    with pytest.warns(UserWarning, match="Expected stored zeros"):
        fitted(rbm(visible=kr.units.Categorical(3), missing="absent"), rows)


def test_duplicates_are_added():
    places = np.array([0, 0, 1]), np.array([2, 2, 0])
    rows = SparseRows.of(scipy.sparse.coo_array(([1, 2, 3], places), (2, 3)))
    np.testing.assert_array_equal(rows, [[0, 0, 3], [3, 0, 0]])
    unsorted = CSR(([1, 2, 4], [2, 0, 2], [0, 3]), (1, 3))
    np.testing.assert_array_equal(SparseRows.of(unsorted, np.nan), [[2, np.nan, 5]])
    assert unsorted.nnz == 3


def test_shuffled_batches_and_input_of_a_keras_model():
    shuffled = [
        next(iter(kr.datasets.shuffled_batches(rows, 10, seed=0, iterations=0)))
        for rows in (ROWS, DATA)
    ]
    np.testing.assert_array_equal(*shuffled)
    inputs, model = keras.Input((8,), sparse=True), rbm(num_visible=8)
    network = keras.Model(inputs, model(inputs))
    np.testing.assert_array_equal(network(TENSOR), model(DATA))
