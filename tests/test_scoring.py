import numpy as np
import pytest
from scipy.stats import norm

import keras_rbm
from keras_rbm import plots
from keras_rbm._scoring import _quote

DATA = (np.random.default_rng(0).random((60, 6)) < 0.3).astype("float32")
METHODS = ["exact", "ais", "bidirectional"]


def fitted(model, *data):
    model.compile("sgd")
    model.fit(*data, verbose=0)
    return model


@pytest.mark.parametrize(
    ("make", "methods"),
    [
        (lambda: fitted(keras_rbm.RBM(4, seed=0), DATA), None),
        pytest.param(
            lambda: fitted(keras_rbm.RBM(3, visible="gaussian", seed=0), DATA),
            None,
            marks=pytest.mark.slow,
        ),
        (lambda: fitted(keras_rbm.DBM([4, 3], seed=0), DATA), ["exact", "ais"]),
    ],
    ids=["rbm", "gaussian", "dbm"],
)
def test_estimates_side_by_side(make, methods):
    model = make()
    report = keras_rbm.score_report(model, DATA, methods=methods, steps=50)
    assert list(report.scores) == (methods or METHODS)
    exact, *_ = report.scores["exact"]
    for method, (value, low, high) in report.scores.items():
        assert low <= value <= high and low - 1e-4 <= exact <= high + 1e-4, method
    z = report.log_partitions["ais"]
    np.testing.assert_allclose(
        report.scores["ais"][0], -np.mean(report.free_energies["data"]) - z.value, 1e-5
    )
    assert [len(x) for x in report.free_energies.values()] == [60, 60, 60]
    _, base, data = report.free_energies.values()
    assert (base != data).any()  # chains of one seed were one chain after a while
    assert report.quote.startswith(f"Quote {exact:.3f} nats: log Z is enumerated.")
    assert f"over these 60 examples: {report.stderr:.3f}" in report.quote
    assert "| ais " in str(report) and str(report).endswith(report.quote)
    assert len(plots.score_report(report).axes) == 2


def test_methods_are_those_that_the_units_allow():
    """Enumeration, and the Bethe estimate, were asked for: an error, not a report."""
    rbm = keras_rbm.RBM(2, num_visible=3, visible="gaussian", hidden="gaussian")
    assert "exact" not in keras_rbm._scoring._methods(rbm, conditional=False)
    crbm = keras_rbm.CRBM(3, visible="gaussian", num_visible=2, num_features=3)
    methods = keras_rbm._scoring._methods(crbm, conditional=True)
    assert list(methods) == ["exact", "bidirectional", "mean_field"]


@pytest.mark.slow
def test_of_a_growing_model():
    grown = keras_rbm.InfiniteRBM(3, num_visible=6, seed=0)
    grown.insert_unit(np.ones(6), -3.0)
    grown.insert_unit(-np.ones(6), 1.0)
    report = keras_rbm.score_report(grown, DATA, methods=["ais", "bidirectional"])
    low, high = report.scores["bidirectional"][1:]
    assert low < report.scores["ais"][0] < high + 0.1


def test_of_a_conditional_model():
    x = DATA[:, :2]
    crbm = keras_rbm.CRBM(3, seed=0)
    crbm.compile("sgd")
    crbm.fit(x, DATA, verbose=0)
    report = keras_rbm.score_report(crbm, x[:10], DATA[:10])
    assert list(report.scores) == ["exact", "bidirectional", "mean_field", "bethe"]
    exact = report.scores["exact"][0]
    _, low, high = report.scores["bidirectional"]
    assert low < exact < high and exact < report.scores["mean_field"][2]
    assert not report.free_energies and len(plots.score_report(report).axes) == 1


@pytest.mark.parametrize(
    ("scores", "quote"),
    [
        ({"bidirectional": (-1, -2, 0.0), "ais": (-1.1, -2, 0.0)}, "Quote -1.000 nats"),
        ({"bidirectional": (-1, -2, 0.0), "ais": (-5, -6, -4)}, "contradict"),
        ({"ais": (-1, -np.inf, 2.0)}, "at most 2.00 nats, by 'ais'"),
        ({"bethe": (-1, np.nan, np.nan)}, "no estimate has a known error"),
        ({"ais": (-3, -4, -2), "bidirectional": (-1, -np.inf, 2)}, "Quote -3.000 nats"),
    ],
)
def test_what_to_quote(scores, quote):
    assert quote in _quote(scores)[0]


def test_open_intervals_end_in_arrows():
    report = keras_rbm._scoring.ScoreReport(
        {"ais": (-1.0, -np.inf, 2.0)}, {}, {}, "none"
    )
    markers = [line.get_marker() for line in plots.score_report(report).axes[0].lines]
    assert markers == ["None", "o", "<", "|"]


@pytest.mark.parametrize("conditional", [False, True])
def test_gray_values_have_no_likelihood(conditional):
    model = keras_rbm.CRBM(3, seed=0) if conditional else keras_rbm.RBM(3, seed=0)
    pair = (DATA, DATA) if conditional else (DATA,)
    fitted(model, *pair)
    with pytest.warns(UserWarning, match="the result is not a log-likelihood"):
        keras_rbm.score_report(model, *pair[:-1], DATA * 0.5, methods="exact", steps=2)


def test_the_bound_of_a_deep_model_is_called_one():
    model = fitted(keras_rbm.DBM([4, 3], seed=0), DATA)
    report = keras_rbm.score_report(model, DATA, methods="exact", steps=2)
    assert "It is a lower bound" in report.quote


def test_baseline_is_of_columns_on_their_own():
    """Shares of ones and normal distributions, by hand; unknown values do not count."""
    train = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    found = keras_rbm.baseline_log_likelihood(train, [[1.0, 0.0], [0.0, np.nan]])
    np.testing.assert_allclose(found, np.log([0.5 * 0.25, 0.5]), rtol=1e-5)
    numbers = np.random.default_rng(0).normal(2.0, 3.0, (100, 2))
    expected = norm(numbers.mean(0), numbers.std(0)).logpdf(numbers[:5]).sum(1)
    found = keras_rbm.baseline_log_likelihood(numbers, numbers[:5], "gaussian")
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    with pytest.raises(ValueError, match="states of Bernoulli"):
        keras_rbm.baseline_log_likelihood(train, [[2.0, 0.0]])
