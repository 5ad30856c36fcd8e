"""What the hidden units of a CRBM do: whether they take part, or read features."""

import warnings

import keras
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from small_models import batches, compiled, fitted, reloaded

from keras_rbm import CRBM
from keras_rbm.models.training.trial import Trial
from keras_rbm.regularizers import NormalPrior
from keras_rbm.rules import ContrastiveDivergence, MaximumLikelihood
from keras_rbm.units import Categorical, Joined

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 10)).astype("float32")
SLOPES = RNG.normal(size=(10, 3))
LINEAR = (X @ SLOPES + 2.0 * RNG.normal(size=(200, 3))).astype("float32")
BENT = (2.0 * np.abs(X[:, :1]) + 0.2 * RNG.normal(size=(200, 1))).astype("float32")
SAID = "Hidden units gain nothing"


def learned(y, x=X, hidden_units=8, epochs=40, **kwargs):
    crbm = compiled(CRBM(hidden_units, visible="gaussian", seed=0, **kwargs))
    return fitted(crbm, x, y, epochs=epochs, batch_size=20)


def error_of(model, y):
    return np.mean(np.square(model.predict(X[150:]) - y[150:]))


def test_they_do_where_they_help():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        crbm = learned(BENT[:150], X[:150], epochs=80)
    ridge = Ridge().fit(X[:150], BENT[:150])
    assert error_of(crbm, BENT) < 0.5 * error_of(ridge, BENT)


def test_else_the_regressions_stay(tmp_path):
    with pytest.warns(UserWarning, match=SAID):
        crbm = learned(LINEAR[:80], X[:80], hidden_units=12)
    ridge = Ridge(10.0).fit(X[:80], LINEAR[:80])
    assert error_of(crbm, LINEAR) < 1.03 * error_of(ridge, LINEAR)
    assert crbm.kernel.regularizer.stddev == 0.05
    # It is part of files, stays, and is said once.
    loaded = reloaded(crbm, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fitted(loaded, X, LINEAR)
    assert loaded.kernel.regularizer.stddev == 0.05


def test_the_trial_starts_at_the_regressions_that_were_chosen(monkeypatch):
    """It began at those of the first deviation: all else was a gain."""
    errors, found = Trial._errors, []
    monkeypatch.setattr(
        Trial, "_errors", lambda *args: found.append(errors(*args)) or found[-1]
    )
    exact = X @ SLOPES + 0.01 * RNG.normal(size=(200, 3)).astype("float32")
    with pytest.warns(UserWarning, match=SAID):
        crbm = learned(exact, epochs=1)
    assert np.mean(found[0][0]) < 1e-3
    assert error_of(crbm, exact) < 1e-3


def test_a_column_that_is_known_in_the_last_rows_only():
    y = BENT.repeat(2, 1)
    y[:180, 0] = np.nan
    y[190] = np.nan
    crbm = learned(y, missing="latent", epochs=2)
    assert np.isfinite(crbm.predict(X, verbose=0)).all()


def test_predictions_that_are_worse_than_the_start_are_said(monkeypatch):
    """Here for a rate that never falls."""
    helped = np.ones(40), np.zeros(40)
    monkeypatch.setattr(Trial, "_errors", lambda self, epochs: helped)
    crbm = CRBM(30, visible="gaussian", seed=0)
    with pytest.warns(UserWarning, match="times the squared error that they had"):
        fitted(compiled(crbm, keras.optimizers.Adam(0.3)), X, LINEAR, epochs=5)


def test_rows_of_weight_0_are_not_judged():
    y, weights = BENT.copy(), np.ones(200, "float32")
    y[150:], weights[150:] = 10.0 * X[150:, 1:2], 0.0
    crbm = compiled(CRBM(8, visible="gaussian", seed=0))
    fitted(crbm, X, y, sample_weight=weights, epochs=80, batch_size=20)
    assert crbm.kernel.regularizer.stddev == 3.0


@pytest.mark.parametrize(
    ("data", "kwargs"),
    [
        ((X[:40], LINEAR[:40]), {}),
        ((batches(X, LINEAR, size=20),), {}),
        ((X, LINEAR), {"kernel_regularizer": NormalPrior(1.0)}),
        ((X, LINEAR), {"visible_bias_initializer": "zeros"}),
    ],
)
def test_not_without_enough_rows_or_a_choice(data, kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        crbm = compiled(CRBM(4, visible="gaussian", seed=0, **kwargs))
        fitted(crbm, *data, batch_size=20 if len(data) > 1 else None)


@pytest.mark.parametrize(
    ("kwargs", "rule"),
    [
        ({"hidden_units": 8, "visible": "gaussian"}, MaximumLikelihood),
        ({"hidden_units": 9, "visible": "gaussian"}, ContrastiveDivergence),
        (
            {"hidden_units": 9, "visible": Joined([("gaussian", 1)])},
            ContrastiveDivergence,
        ),
        ({"hidden_units": 9, "visible": Categorical(3)}, MaximumLikelihood),
        ({"hidden_units": 9, "inference": "mean_field"}, MaximumLikelihood),
    ],
)
def test_the_rule_of_real_numbers_samples(kwargs, rule):
    """By mean field a layer of 32 learned means that no chain has."""
    for sizes in ({}, {"num_visible": 1, "num_features": 2}):
        assert type(compiled(CRBM(**kwargs, **sizes)).rule) is rule


def pairs_of_labels(bent):
    """Returns features, and two pairs of labels, of which either is on.

    Which one follows from a feature, or from whether it is far from 0.
    """
    x = RNG.normal(size=(300, 3 if bent else 20)).astype("float32")
    sums = 3.0 * (np.abs(x[:, :2]) - 0.7) if bent else x[:, :2]
    on = sums + 0.3 * RNG.normal(size=sums.shape) > 0.0
    return x, np.concatenate([on, ~on], 1).astype("float32")


@pytest.mark.parametrize("bent", [False, True])
def test_hidden_units_of_labels_read_features_where_that_helps(bent):
    """Of twenty features and 250 rows they learned noise: labels lost by coupling."""
    x, y = pairs_of_labels(bent)
    crbm = fitted(compiled(CRBM(8, seed=0)), x[:250], y[:250], epochs=40)
    assert (crbm.hidden_kernel.regularizer.stddev > 1.0) is bent
    nats = np.mean(crbm.log_likelihood(x[250:], y[250:]))
    alone = compiled(CRBM(1, seed=0, hidden="bernoulli"))
    fitted(alone, x[:250], y[:250], epochs=1)
    assert nats > np.mean(alone.log_likelihood(x[250:], y[250:])) + 0.3


def test_a_choice_of_labels_is_part_of_files(tmp_path):
    x, y = pairs_of_labels(False)
    weights = np.ones((len(x), 1), "float32")
    y[-1, 0] = y[-2] = np.nan  # nothing was chosen where a last row had a gap
    crbm = compiled(CRBM(8, seed=0, missing="latent"))
    fitted(crbm, x, y, epochs=30, sample_weight=weights)
    loaded = reloaded(crbm, tmp_path)
    assert loaded.hidden_kernel.regularizer.stddev == 0.05
    assert loaded.kernel.regularizer.stddev == 3.0


def test_no_trial_of_labels_for_another_loss(monkeypatch):
    """It would be judged by a likelihood that is not what is learned."""
    monkeypatch.setattr(Trial, "_fit", None)
    x, y = pairs_of_labels(False)
    crbm = CRBM(8, seed=0)
    crbm.compile(loss="binary_crossentropy")
    crbm.fit(x, y, epochs=1, verbose=0)
