import numpy as np
import pytest
import tensorflow as tf

from keras_rbm.inference import LogPartition


def test_weights_that_behave_have_three_standard_errors():
    log_weights = np.random.default_rng(0).normal(5, 0.1, 200)
    z = LogPartition.from_log_weights(log_weights)
    weights = np.exp(log_weights)
    stderr = weights.std(ddof=1) / weights.mean() / np.sqrt(200)
    np.testing.assert_allclose(z.stderr, stderr, rtol=1e-5)
    np.testing.assert_allclose(z.lower, z.value + np.log(1 - 3 * stderr), rtol=1e-6)
    np.testing.assert_allclose(z.upper, z.value + np.log(1 + 3 * stderr), rtol=1e-6)
    assert z.is_finite and not z.note


def test_weights_that_do_not_have_markovs_end_alone():
    """The lower end was -inf and the upper finite: the wrong way round."""
    log_weights = np.random.default_rng(0).normal(5, 6, 100)
    z = LogPartition.from_log_weights(log_weights)
    np.testing.assert_allclose(z.lower, z.value - np.log(20))
    assert z.upper == z.stderr == np.inf and not z.is_finite
    back = LogPartition.from_log_weights(-log_weights, reverse=True)
    np.testing.assert_allclose(back.value, -z.value)
    np.testing.assert_allclose(back.upper, -z.lower)
    assert back.lower == -np.inf
    two = LogPartition.from_log_weights(tf.constant([0.0, 50.0]))
    np.testing.assert_allclose(two.ess, 1.0, rtol=1e-6)


def test_markovs_end_holds_in_19_of_20():
    """Heavy weights of known mean: E[w] = 1."""
    rng = np.random.default_rng(0)
    runs = rng.normal(-2, 2, (2000, 40))
    ends = [LogPartition.from_log_weights(run).lower for run in runs[:300]]
    assert np.mean(np.array(ends) > 0) < 0.05
    means = np.log(np.exp(runs).mean(1))
    for a in (0.5, 1.0, 2.0):
        assert (means >= a).mean() <= np.exp(-a) + 3 * np.sqrt(np.exp(-a) / 2000)


def test_refuted_by_a_lower_bound():
    z = LogPartition.from_log_weights(np.zeros(50))
    for bound, refuted in ((-1.0, False), (1.0, True)):
        result = z.without_refuted_upper_end(bound)
        assert (result.upper == np.inf) == refuted == (result.stderr == np.inf)
        assert not refuted or result.lower == bound


def test_rounding_is_a_part_of_the_error():
    z = LogPartition.from_log_weights(np.full(50, 1000.0))
    assert 5e-5 < z.stderr < 5e-4


def test_as_a_number():
    z = LogPartition.exact(3.0)
    assert float(z) == float(z.as_numbers()) == 3.0
    with pytest.raises(TypeError):
        float(LogPartition.exact(np.ones(2)))


def test_joined():
    parts = [
        LogPartition.from_log_weights(np.random.default_rng(i).normal(size=(30, n)))
        for i, n in enumerate((2, 3))
    ]
    joined = LogPartition.joined([parts[0], parts[1]._replace(note="a word")])
    assert joined.value.shape == (5,) and joined.log_weights.shape == (30, 5)
    np.testing.assert_array_equal(joined.lower[2:], parts[1].lower)
    assert joined.note == "Rows 2 to 4: a word"
    joined = LogPartition.joined([part._replace(note="a word") for part in parts])
    assert joined.note == "Rows 0 to 1: a word (1 later parts have remarks, too.)"
    assert LogPartition.joined(parts[:1]) is parts[0]


@pytest.mark.parametrize("note", ["", "Take more."])
def test_repr_is_a_line(note):
    z = LogPartition.from_log_weights(np.zeros(50))._replace(note=note)
    text = "LogPartition(0.000 ± 0 nats, [0.000, 0.000], ess 50)"
    assert repr(z) == text + (": " + note if note else "")
    many = LogPartition.from_log_weights(np.zeros((50, 3)))
    assert repr(many).startswith("LogPartition of 3 models")
    traced = []
    tf.function(lambda w: traced.append(repr(LogPartition.exact(w))))(tf.zeros(()))
    assert "Tensor" in traced[0]


def test_the_tail_of_nearly_equal_weights_is_chance():
    """100 chains with an effective sample size of 99.995 had an open interval."""
    for seed in range(200):
        log_weights = np.random.default_rng(seed).standard_t(2, (100, 1)) * 1e-3
        assert LogPartition.from_log_weights(log_weights).is_finite.numpy().all()
