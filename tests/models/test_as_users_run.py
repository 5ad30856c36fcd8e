"""Each model with its defaults and each inference, traced and compiled as for users.

Most other tests run short work without tracing or compiling it.
"""

import keras
import numpy as np
import pytest

import keras_rbm
from keras_rbm import CRBM, DBM, DBN, RBM, InfiniteRBM

pytestmark = pytest.mark.usefixtures("as_users_run")

RNG = np.random.default_rng(0)
PATTERNS = RNG.integers(0, 2, (2, 8))
DATA = np.abs(PATTERNS[RNG.integers(0, 2, 200)] - (RNG.random((200, 8)) < 0.1))
DATA = DATA.astype("float32")


def likelihood(model):
    if isinstance(model, CRBM):
        return model.log_likelihood(DATA, DATA, "exact")
    if isinstance(model, (DBM, DBN)):
        return model.log_likelihood_bound(DATA, "exact")
    return model.log_likelihood(DATA, "exact")


MODELS = {
    "RBM": lambda: RBM(6, seed=0),
    "CRBM": lambda: CRBM(6, seed=0),
    "CRBM of counts": lambda: CRBM(6, visible=keras_rbm.units.Binomial(2), seed=0),
    "InfiniteRBM": lambda: InfiniteRBM(6, seed=0),
    "DBM": lambda: DBM([6, 4], seed=0),
    "DBN": lambda: DBN([6, 4], seed=0),
}


#: They take five seconds each. `test_dbm.py` has a DBM compiled.
SLOW = "CRBM of counts", "InfiniteRBM", "DBM", "DBN"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
        for name in MODELS
    ],
)
def test_model_with_its_defaults(name, tmp_path):
    """Compiled without arguments, a model learns, scores, samples, and is a file."""
    model = MODELS[name]()
    model.compile()
    pairs = [DATA, DATA] if isinstance(model, CRBM) else [DATA]
    history = model.fit(*pairs, batch_size=50, epochs=5, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    scores = likelihood(model)
    uniform = -8 * np.log(3 if name == "CRBM of counts" else 2)
    assert np.mean(scores) > uniform
    first = DATA[:5] if isinstance(model, CRBM) else 5
    samples = model.sample(first, steps=20, seed=1)
    assert samples.shape == (5, 8)
    assert set(np.unique(samples)) <= {0.0, 1.0, 2.0}
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(likelihood(loaded), scores)
    np.testing.assert_array_equal(loaded.sample(first, steps=20, seed=1), samples)
    np.testing.assert_array_equal(
        loaded.predict(DATA, verbose=0), model.predict(DATA, verbose=0)
    )


@pytest.mark.parametrize("name", ["sum_product", "mean_field", "exact"])
def test_marginals_by_each_inference(name):
    """On a model of a single hidden unit, a tree, sum-product is exact."""
    crbm = CRBM(1, inference=name, num_visible=8, num_features=8, seed=0)
    crbm.kernel.assign(RNG.normal(0, 0.3, (8, 1)))
    exact = keras_rbm.inference.exact_moments(crbm.potentials(DATA[:20]))
    tolerance = 0.02 if name == "mean_field" else 1e-4
    found = crbm.predict(DATA[:20], verbose=0)
    np.testing.assert_allclose(found, exact.visible.bias, atol=tolerance)


@pytest.mark.parametrize(
    "name", ["max_product", pytest.param("mixed_product", marks=pytest.mark.slow)]
)
def test_states_by_each_inference(name):
    crbm = CRBM(1, inference=name, num_visible=8, num_features=8, seed=0)
    crbm.kernel.assign(RNG.normal(0, 1.0, (8, 1)))
    states = crbm.predict_map(DATA[:20]).numpy()
    everything = np.array(list(np.ndindex(*[2] * 8)), np.float32)
    for row, state in zip(DATA[:20], states, strict=True):
        x = np.repeat(row[np.newaxis], len(everything), 0)
        energies = crbm.free_energy(x, everything).numpy()
        # Max-product finds the best pair (v, h): near the best v.
        margin = 1e-4 if name == "mixed_product" else 0.7
        own = crbm.free_energy(row[np.newaxis], state[np.newaxis]).numpy()[0]
        assert own <= energies.min() + margin
