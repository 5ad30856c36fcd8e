"""Sparse rows do what dense ones do, bit for bit, and are never dense as a whole."""

import keras
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf

import keras_rbm as kr
from keras_rbm.datasets.sparse_rows import SparseRows
from keras_rbm.models.training import many_steps
from keras_rbm.sklearn import RBMEstimator, RBMImputer

RNG = np.random.default_rng(0)
DATA = (RNG.random((103, 8)) < 0.2).astype("float32")
TARGETS = (RNG.random((103, 3)) < 0.4).astype("float32")
STARS = np.where(RNG.random((103, 8)) < 0.4, RNG.integers(0, 3, (103, 8)), np.nan)
STARS = STARS.astype("float32")


def stored(rows):
    """Returns rows as a SciPy matrix that stores what is not NaN, zeros among them."""
    places = np.nonzero(~np.isnan(rows))
    return scipy.sparse.csr_array((rows[places], places), rows.shape)


def sparse_tensor(rows):
    places = np.argwhere(~np.isnan(rows))
    return tf.SparseTensor(places, rows[tuple(places.T)], rows.shape)


def batches(rows):
    return tf.data.Dataset.from_tensor_slices(rows).batch(20)


def fitted(model, *data, **kwargs):
    model.compile(run_eagerly=True)
    history = model.fit(*data, batch_size=20, verbose=0, **kwargs).history
    return [*map(np.asarray, model.weights)], history


def check_same(ours, theirs):
    for a, b in zip(ours[0], theirs[0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert ours[1] == theirs[1]


class Loader(keras.utils.PyDataset):
    """Gives out batches of rows."""

    def __init__(self, rows):
        super().__init__()
        self.rows = rows

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return (self.rows[20 * index : 20 * index + 20],)


FORMATS = {
    "csr": scipy.sparse.csr_matrix,
    "coo": scipy.sparse.coo_array,
    "bool": lambda rows: scipy.sparse.csc_array(rows.astype(bool)),
    "tensor": tf.sparse.from_dense,
    "pipeline": lambda rows: batches(tf.sparse.from_dense(rows)),
    "loader": lambda rows: Loader(scipy.sparse.csr_array(rows)),
    "generator": lambda rows: (
        (scipy.sparse.csr_array(rows[i : i + 20]),) for i in range(0, 100, 20)
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_fit(name):
    dense = DATA
    if name == "pipeline":
        dense = batches(DATA)
    elif name == "loader":
        dense = Loader(DATA)
    elif name == "generator":
        dense = ((DATA[i : i + 20],) for i in range(0, 100, 20))
    options = {"steps_per_epoch": 5} if name == "generator" else {"shuffle": False}
    one = fitted(kr.RBM(4, seed=0), dense, **options)
    check_same(fitted(kr.RBM(4, seed=0), FORMATS[name](DATA), **options), one)


@pytest.mark.parametrize(
    "options",
    [
        {"sample_weight": np.arange(103.0) % 3},
        {"validation_split": 0.2},
        {"validation_data": DATA[:50]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_of_fit(options):
    dense = fitted(kr.RBM(4, seed=0), DATA, **options)
    if "validation_data" in options:
        options = {"validation_data": scipy.sparse.csr_array(DATA[:50])}
    rows = scipy.sparse.csr_array(DATA)
    check_same(fitted(kr.RBM(4, seed=0), rows, **options), dense)


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
def test_as_users_run():
    dense, sparse = kr.RBM(4, seed=0), kr.RBM(4, seed=0)
    for rbm, rows in ((dense, DATA), (sparse, scipy.sparse.csr_array(DATA))):
        rbm.compile()
        rbm.fit(rows, batch_size=20, epochs=3, verbose=0)
        rbm.fit(batches(rows if rbm is dense else tf.sparse.from_dense(DATA)))
    for a, b in zip(dense.weights, sparse.weights, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "missing, make",
    [
        ("absent", stored),
        ("latent", sparse_tensor),
        pytest.param("absent", sparse_tensor, marks=pytest.mark.slow),
        pytest.param("latent", stored, marks=pytest.mark.slow),
    ],
)
def test_what_is_not_stored_is_unknown(missing, make):
    """A stored 0 is state 0."""

    def model():
        visible = kr.units.Categorical(3)
        return kr.RBM(4, visible=visible, missing=missing, seed=0)

    dense, sparse, rows = model(), model(), make(STARS)
    check_same(fitted(sparse, rows), fitted(dense, STARS))
    np.testing.assert_array_equal(sparse(rows), dense(STARS))
    few = make(STARS[:5])
    for method in ("marginals", "impute"):
        ours, theirs = (getattr(m, method) for m in (sparse, dense))
        np.testing.assert_array_equal(ours(few, steps=3), theirs(STARS[:5], steps=3))
    np.testing.assert_array_equal(
        sparse.log_likelihood(few, "exact"), dense.log_likelihood(STARS[:5], "exact")
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
    results = []
    forms = DATA, scipy.sparse.coo_array(DATA), tf.sparse.from_dense(DATA)
    for rows in forms:
        rbm = kr.RBM(4, num_visible=8, seed=0)
        rbm.compile(run_eagerly=True)
        result = getattr(rbm, method)(rows, **METHODS[method])
        results.append(rbm.base_rate if result is None else result)
    if method in ("free_energy", "log_likelihood", "adapt"):  # take datasets
        pipeline = batches(tf.sparse.from_dense(DATA))
        result = getattr(rbm, method)(pipeline, **METHODS[method])
        results.append(rbm.base_rate if result is None else result)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_conditional_model():
    x, y = scipy.sparse.csr_array(DATA), scipy.sparse.csr_array(TARGETS)
    dense = kr.CRBM(4, seed=0)
    one = fitted(dense, DATA, TARGETS)
    for pair in ((x, TARGETS), (DATA, y), (x, y)):
        sparse = kr.CRBM(4, seed=0)
        check_same(fitted(sparse, *pair), one)
    expected = dense.log_likelihood(DATA, TARGETS)
    np.testing.assert_array_equal(sparse.log_likelihood(x, y), expected)
    np.testing.assert_array_equal(sparse.predict_map(x), dense.predict_map(DATA))
    assert sparse.sample(x, steps=1, seed=0).shape == TARGETS.shape


@pytest.mark.slow
def test_deep_models():
    rows = scipy.sparse.csr_array(DATA)
    dbn = kr.DBN([kr.RBM(4, seed=0), kr.RBM(3, seed=0)])
    dbn.compile(run_eagerly=True)
    dbn.fit(rows, batch_size=20, verbose=0)
    np.testing.assert_array_equal(
        dbn.predict(rows, verbose=0), dbn.predict(DATA, verbose=0)
    )
    np.testing.assert_array_equal(dbn(rows), dbn(DATA))
    assert dbn.evaluate(rows, verbose=0) == dbn.evaluate(DATA, verbose=0)
    check_same(
        fitted(kr.DBM([4, 3], seed=0), rows), fitted(kr.DBM([4, 3], seed=0), DATA)
    )


@pytest.mark.slow
def test_growing_model():
    rows = np.repeat(DATA[:4], 25, axis=0)  # four kinds, so that a unit gains
    grown = []
    for data in (scipy.sparse.csr_array(rows), rows):
        model = kr.InfiniteRBM(3, seed=0)
        model.compile(rule=kr.rules.FrankWolfe(num_samples=500), run_eagerly=True)
        model.fit(data, batch_size=len(rows), verbose=0)
        assert model.hidden_units == 1
        grown.append(np.asarray(model.kernel))
    np.testing.assert_array_equal(*grown)


def test_callbacks_and_report():
    logs = []
    for rows in (DATA, scipy.sparse.csr_array(DATA)):
        rbm = kr.RBM(4, seed=0)
        gap = kr.callbacks.FreeEnergyGap(rows[:50], rows[50:])
        score = kr.callbacks.LogLikelihood(rows[50:], method="exact")
        logs.append(fitted(rbm, rows, callbacks=[gap, score]))
        logs[-1][1]["report"] = kr.score_report(rbm, rows, methods="exact").scores
    check_same(*logs)


def test_estimator():
    rows = scipy.sparse.csr_matrix(DATA)
    options = {"n_iter": 1, "batch_size": 50, "random_state": 0}
    dense, sparse = RBMEstimator(4, **options), RBMEstimator(4, **options)
    dense.fit(DATA).partial_fit(DATA)
    sparse.fit(rows).partial_fit(rows)
    for method in ("transform", "score_samples"):
        ours, theirs = getattr(sparse, method), getattr(dense, method)
        np.testing.assert_array_equal(ours(rows), theirs(DATA))
    with pytest.raises(ValueError, match="sparse X without NaN"):
        sparse.fit(rows * np.nan)
    with pytest.raises(TypeError, match="dense data is required"):
        RBMImputer(4, n_iter=1).fit(rows)
    gaps = np.where(RNG.random(DATA.shape) < 0.1, np.nan, DATA)
    with pytest.raises(ValueError, match="had NaN. Received: sparse X"):
        RBMEstimator(4, **options).fit(gaps).transform(rows)


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
        monkeypatch.setattr(scipy.sparse.csr_array, name, whole)
    monkeypatch.setattr(many_steps, "_MOST_BYTES", 2**14)


@pytest.mark.slow
@pytest.mark.usefixtures("never_whole")
def test_no_more_than_a_few_rows_are_dense():
    rows = scipy.sparse.csr_array(RNG.random((12_000, 8)) < 0.2).astype("float32")
    rbm = kr.RBM(2, seed=0)
    rbm.compile(run_eagerly=True)
    rbm.fit(rows, batch_size=800, verbose=0, validation_split=0.1)
    rbm.adapt(rows)
    for method in ("free_energy", "pseudo_log_likelihood", "reconstruct"):
        assert getattr(rbm, method)(rows).shape[0] == 12_000
    rbm.log_likelihood(rows, 30.0)
    rbm.evaluate(rows, batch_size=800, verbose=0)
    rbm.predict(rows, batch_size=800, verbose=0)
    tensor = tf.SparseTensor(np.argwhere(DATA), DATA[DATA > 0], DATA.shape)
    pipeline = tf.data.Dataset.from_tensors(tensor).repeat(12)
    rbm.free_energy(pipeline)
    table = scipy.sparse.csr_array(
        (rows.data * 0, rows.indices, rows.indptr), rows.shape
    )
    table.data[::2] = 1.0
    stars = kr.RBM(2, visible=kr.units.Categorical(2), missing="absent", seed=0)
    stars.compile(run_eagerly=True)
    stars.fit(table, batch_size=800, verbose=0)
    stars.free_energy(table)
    with pytest.raises(AssertionError):
        np.asarray(SparseRows.of(rows))


BAD = {
    "Received: 3 in row 101, column 5": (101, 5, 3.0),
    "finite x": (7, 2, np.nan),
    "finite x.": (7, 2, np.inf),
    "Received: -1 in row 0": (0, 0, -1.0),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_values_change_nothing(words):
    row, column, value = BAD[words]
    rows = scipy.sparse.lil_array(DATA)
    rows[row, column] = value
    rbm = kr.RBM(3, num_visible=8, seed=0)
    rbm.compile(run_eagerly=True)
    before = [*map(np.array, rbm.weights)]
    for call in (rbm.fit, rbm.adapt, rbm.free_energy):
        with pytest.raises(
            ValueError, match=words.replace("finite x", "Expected finite")
        ):
            call(rows)
    pipeline = batches(tf.sparse.from_dense(rows.toarray()))
    with pytest.raises(ValueError, match="Expected"):
        rbm.evaluate(pipeline, verbose=0)
    for a, b in zip(before, rbm.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_bad_shapes_and_types():
    rows = scipy.sparse.csr_array(DATA)
    rbm = kr.RBM(3, num_visible=8, seed=0)
    rbm.compile(run_eagerly=True)
    with pytest.raises(ValueError, match=r"\(examples, 8\)"):
        rbm.fit(rows[:, :5])
    with pytest.raises(ValueError, match="at least one example"):
        rbm.fit(rows[:0])
    with pytest.raises(ValueError, match="dataset.batch"):
        rbm.fit(tf.data.Dataset.from_tensor_slices(tf.sparse.from_dense(DATA)))
    with pytest.raises(TypeError, match="numbers. Received: dtype complex"):
        rbm.fit(rows.astype(complex))
    with pytest.raises(ValueError, match="one length"):
        crbm = kr.CRBM(3)
        crbm.compile()
        crbm.fit(rows, TARGETS[:5])


def test_units_without_state_0_need_all_entries():
    spins = kr.RBM(3, visible="spin", num_visible=8, seed=0)
    with pytest.raises(ValueError, match="Received: 0 in row 0, column 0"):
        spins.adapt(scipy.sparse.csr_array(np.where(np.eye(8), 0, 1.0)))
    assert spins.free_energy(scipy.sparse.csr_array(2 * DATA - 1)).shape == 103
    mixed = kr.units.Joined([("bernoulli", 4), ("gaussian", 4)])
    mixed = kr.RBM(3, visible=mixed, num_visible=8, seed=0)
    mixed.compile(run_eagerly=True)
    rows = scipy.sparse.lil_array(DATA)
    rows[102, 7] = 5.0
    fitted(mixed, rows)
    rows[102, 3] = 5.0
    with pytest.raises(ValueError, match="Bernoulli.*5 in row 102, column 3"):
        mixed.fit(rows)


def test_zeros_that_have_been_dropped():
    """`eliminate_zeros` would make the lowest rating unknown."""
    rows = stored(STARS)
    rows.eliminate_zeros()
    rbm = kr.RBM(3, visible=kr.units.Categorical(3), missing="absent", seed=0)
    with pytest.warns(UserWarning, match="Expected stored zeros"):
        fitted(rbm, rows)


def test_duplicates_are_added():
    places = np.array([0, 0, 1]), np.array([2, 2, 0])
    rows = SparseRows.of(scipy.sparse.coo_array(([1, 2, 3], places), (2, 3)))
    np.testing.assert_array_equal(rows, [[0, 0, 3], [3, 0, 0]])
    unsorted = scipy.sparse.csr_array(([1, 2, 4], [2, 0, 2], [0, 3]), (1, 3))
    np.testing.assert_array_equal(SparseRows.of(unsorted, np.nan), [[2, np.nan, 5]])
    assert unsorted.nnz == 3


def test_shuffled_batches():
    batch = next(
        iter(
            kr.datasets.shuffled_batches(
                scipy.sparse.csr_array(DATA), 10, seed=0, iterations=0
            )
        )
    )
    dense = next(iter(kr.datasets.shuffled_batches(DATA, 10, seed=0, iterations=0)))
    np.testing.assert_array_equal(batch, dense)


def test_sparse_input_of_a_keras_model():
    inputs = keras.Input((8,), sparse=True)
    rbm = kr.RBM(4, num_visible=8, seed=0)
    model = keras.Model(inputs, rbm(inputs))
    np.testing.assert_array_equal(model(tf.sparse.from_dense(DATA)), rbm(DATA))
