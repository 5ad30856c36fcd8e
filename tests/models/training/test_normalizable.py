import keras
import numpy as np
import pytest
from small_models import compiled, fitted, slow

from keras_rbm import CRBM, RBM, units
from keras_rbm.inference.arguments import spectral_gap
from keras_rbm.models.training.guard import LEAST_GAP

RNG = np.random.default_rng(0)
#: Columns that nearly repeat each other.
ROWS = np.float32(RNG.normal(size=(400, 1)) + 0.2 * RNG.normal(size=(400, 6)))
MIXED = units.Joined([("gaussian", 5), ("bernoulli", 1)])
GAUSSIAN = {"visible": "gaussian", "hidden": "gaussian"}


@pytest.mark.parametrize(
    ("visible", "hidden"),
    [
        ("gaussian", "gaussian"),
        ("gaussian", "rectified"),
        slow(units.Gaussian(standardize=True), "double_rectified"),
        (MIXED, units.Joined([("gaussian", 3), ("bernoulli", 2)])),
    ],
)
def test_training_stays_where_z_is_finite(visible, hidden):
    """By default fits ended in NaN, or where `sample` and log Z refused the model."""
    rows = ROWS.copy()
    if visible is MIXED:
        rows[:, 5] = rows[:, 5] > 0.0
    rbm = compiled(RBM(5, visible=visible, hidden=hidden, seed=0), rule="cd")
    assert spectral_gap(fitted(rbm, rows, epochs=40).potentials()) > LEAST_GAP - 1e-4
    assert np.isfinite(rbm.sample(3, steps=10)).all()


def after_no_step(rbm):
    """Returns an RBM after a step that learns nothing."""
    compiled(rbm, keras.optimizers.SGD(0.0), rule="cd")
    rbm.train_on_batch(np.zeros((2, rbm.num_visible), "float32"))
    return rbm


def test_only_weights_between_unbounded_units_shrink():
    hidden = units.Joined([("gaussian", 2), ("bernoulli", 2)])
    options = {"num_visible": 6, "kernel_regularizer": None, "seed": 0}
    rbm = RBM(4, visible=MIXED, hidden=hidden, **options)
    want = np.full((6, 4), 3.0, "float32")
    rbm.kernel.assign(want)
    # 5 x 2 weights
    want[:5, :2] = np.sqrt(1.0 - LEAST_GAP) / np.sqrt(10.0)
    np.testing.assert_allclose(after_no_step(rbm).kernel, want, rtol=1e-4)


@pytest.mark.parametrize(
    ("shape", "low", "high"),
    [((6, 4), 0.5, 2.0), ((100, 50), 0.95, 1.0), ((40, 90), 0.97, 1.3)],
)
def test_wide_layers_whose_singular_values_are_alike(shape, low, high):
    """A power method was content with a norm that was 5 % too small."""
    values = np.full(min(shape), low)
    values[0] = high
    left, right = (np.linalg.qr(RNG.normal(size=(n, min(shape))))[0] for n in shape)
    rbm = RBM(shape[1], num_visible=shape[0], **GAUSSIAN)
    rbm.kernel.assign((left * values) @ right.T)
    gap = spectral_gap(after_no_step(rbm).potentials())
    assert LEAST_GAP - 1e-4 < gap < LEAST_GAP + 0.05


def test_a_conditional_model_stays_there():
    crbm = CRBM(3, **GAUSSIAN, kernel_regularizer=None, seed=0)
    compiled(crbm, keras.optimizers.Adam(0.05), rule="cd")
    fitted(crbm, ROWS[:, :2], ROWS, epochs=40)
    assert spectral_gap(crbm.potentials(ROWS[:1, :2])) > LEAST_GAP - 1e-4
