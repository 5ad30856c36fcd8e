import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states, random_potentials

from keras_rbm import inference
from keras_rbm.inference.growing.fractional import FractionalParameters
from keras_rbm.inference.growing.resample_move import Descended, resample_move
from keras_rbm.inference.resampling import effective_sample_size

OLD = random_potentials(6, 4, seed=1)
#: Near enough for a single step, which keeps two thirds of the samples.
NEW = inference.Potentials(0.7 * OLD.kernel, OLD.visible_bias - 0.4, OLD.hidden_bias)
STATES = binary_states(6).astype("float32")
SAMPLES = Descended.independent(tf.constant(STATES))


def law(potentials):
    return tf.nn.softmax(-potentials.free_energy(STATES)).numpy().astype(float)


def with_units_of_both(old, new):
    """Returns two models with the units of both; the other's count 0 times."""
    kernel = tf.concat([old.kernel, new.kernel], 1)
    bias = tf.concat([old.hidden_bias, new.hidden_bias], 0)

    def counting(visible_bias, *coefficients):
        sizes = old.num_hidden, new.num_hidden
        counts = tf.constant(np.repeat(np.float32(coefficients), sizes))
        hidden = FractionalParameters(bias, counts)
        return inference.Potentials(kernel, visible_bias, hidden)

    return counting(old.visible_bias, 1, 0), counting(new.visible_bias, 0, 1)


def moved(samples, old, new, seed, num_sweeps=1):
    """Returns samples of one model as those of another."""

    def change(visible):
        return old.free_energy(visible) - new.free_energy(visible)

    both = with_units_of_both(old, new)
    return resample_move(samples, change, *both, seed, num_sweeps=num_sweeps)


def moving(old=OLD, new=NEW, sweeps=1):
    """Returns a function of a number of samples and a seed that moves them."""
    probabilities = law(old) / law(old).sum()

    @tf.function(autograph=False)
    def moved_ones(visible, seed):
        return moved(Descended.independent(visible), old, new, seed, sweeps)

    def run(count, seed):
        rng = np.random.default_rng(seed)
        rows = rng.choice(len(STATES), count, p=probabilities)
        return moved_ones(tf.constant(STATES[rows]), tf.constant([seed, 0]))

    return run


def two_modes(bias):
    """Returns a model of all on or all off, between which no sweep moves."""
    kernel = np.full((6, 1), 12.0, "float32")
    return inference.Potentials(kernel, np.full(6, bias, "float32"), [-36.0])


def test_samples_become_the_new_models():
    visible = moving()(200_000, 0).samples.visible.numpy()
    index = (visible @ 2.0 ** np.arange(6)).astype(int)
    order = (STATES @ 2.0 ** np.arange(6)).astype(int)
    share = np.bincount(index, minlength=64)[order] / len(visible)
    np.testing.assert_allclose(share, law(NEW), atol=0.005)


@pytest.mark.parametrize(
    "models",
    [(OLD, NEW), (two_modes(-6.0), two_modes(-5.8))],
    ids=["mixing", "two modes"],
)
def test_the_ratio_is_right_and_its_error_honest(models):
    """Where no sweep leaves its mode the samples after are copies of those before."""
    old, new = (inference.exact_log_partition(p).numpy() for p in models)
    run = moving(*models, sweeps=5)
    results = [run(500, seed) for seed in range(200)]
    ratios = np.array([float(result.log_ratio) for result in results])
    spread = ratios.std()
    assert abs(ratios.mean() - (new - old)) < 4 * spread / np.sqrt(len(ratios)) + 0.005
    errors = np.array([float(result.error) for result in results])
    assert errors.mean() == pytest.approx(spread, rel=0.25)


@pytest.mark.slow
def test_large_changes_go_by_models_in_between():
    """Gains of README's growing model were off by 8 of their errors."""
    kernel = np.concatenate([OLD.kernel, np.full((6, 6), 4.0)], 1).astype("float32")
    bias = np.append(OLD.hidden_bias, [-14.0] * 6).astype("float32")
    old, new = (
        inference.Potentials(
            kernel,
            OLD.visible_bias,
            FractionalParameters(tf.constant(bias), tf.constant([1.0] * 4 + [t] * 6)),
        )
        for t in (0.0, 1.0)
    )
    truth, before = (
        float(tf.reduce_logsumexp(-model.free_energy(STATES))) for model in (new, old)
    )
    law_of_old = law(old)

    def change(visible):
        return old.free_energy(visible) - new.free_energy(visible)

    @tf.function(autograph=False)
    def moved_ones(start, seed):
        return resample_move(start, change, old, new, seed, num_sweeps=5)

    scores = []
    for seed in range(60):
        rows = np.random.default_rng(seed).choice(
            64, 200, p=law_of_old / sum(law_of_old)
        )
        result = moved_ones(
            Descended.independent(tf.constant(STATES[rows])), tf.constant([seed, 0])
        )
        scores.append((float(result.log_ratio) - truth + before) / float(result.error))
        assert float(result.ess) < 0.2
    assert 0.7 < np.sqrt(np.mean(np.square(scores))) < 1.4
    assert np.max(np.abs(scores)) < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("mixing", [False, True])
def test_copies_count_as_one_where_sweeps_do_not_mix(mixing):
    """Gains were off by 7 of their errors: many chains still were copies of others."""
    old, new = (OLD, NEW) if mixing else (two_modes(-6.0), two_modes(-5.8))
    probabilities = law(old) / law(old).sum()
    truth = float(
        inference.exact_log_partition(new) - inference.exact_log_partition(old)
    )

    @tf.function(autograph=False)
    def moved_ones(visible, lineages, seed):
        # The copies mix before, or do not.
        visible = inference.gibbs_chain(old, visible, seed, num_sweeps=30)
        return moved(Descended(visible, lineages), old, new, seed, num_sweeps=5)

    scores, errors = [], []
    for seed in range(100):
        rows = np.random.default_rng(seed).choice(64, 100, p=probabilities)
        visible = tf.constant(np.repeat(STATES[rows], 4, 0))
        lineages = tf.repeat(tf.range(0, 400, 4), 4)
        result = moved_ones(visible, lineages, tf.constant([seed, 0]))
        scores.append((float(result.log_ratio) - truth) / float(result.error))
        errors.append(float(result.error))
    assert 0.8 < np.sqrt(np.mean(np.square(scores))) < 1.25
    alone = moved_ones(visible, tf.range(400), tf.constant([0, 0]))
    assert np.mean(errors) / float(alone.error) == pytest.approx(
        1.0 if mixing else 2.0, rel=0.2
    )


def test_few_lineages_begin_again():
    lineages = tf.repeat(tf.constant([3, 40]), 32)
    result = moved(Descended(tf.constant(STATES), lineages), OLD, OLD, 0)
    assert len(np.unique(result.samples.lineages)) == 64


def test_the_same_model():
    both = with_units_of_both(OLD, OLD)
    result = resample_move(
        SAMPLES, lambda v: 0.0 * v[:, 0] + 3.0, *both, 0, num_sweeps=1
    )
    assert float(result.log_ratio) == pytest.approx(3.0, abs=1e-5)
    assert float(result.error) == pytest.approx(0.0, abs=1e-6)
    assert float(result.ess) == pytest.approx(1.0, abs=1e-5)


def test_one_state_may_have_all_the_weight():
    bias = 40.0 * (2.0 * STATES[-1] - 1.0)
    peaked = inference.Potentials(np.zeros((6, 2), "float32"), bias, [0.0, 0.0])
    flat = inference.Potentials(np.zeros((6, 2), "float32"), 0 * bias, [0.0, 0.0])
    result = moved(SAMPLES, flat, peaked, 0)
    np.testing.assert_array_equal(result.samples.visible, np.repeat(STATES[-1:], 64, 0))
    assert float(result.ess) == pytest.approx(1 / 64, rel=1e-5)
    assert np.isfinite([result.log_ratio, result.error]).all()


def test_none_counts_where_the_change_is_not_a_number():
    both = with_units_of_both(OLD, OLD)
    result = resample_move(SAMPLES, lambda v: v[:, 0] + np.nan, *both, 0, num_sweeps=1)
    assert float(result.ess) == 0.0


def test_effective_sample_size():
    np.testing.assert_allclose(effective_sample_size(tf.zeros(10)), 10.0, 1e-5)
    one = tf.constant([50.0] + 9 * [0.0])
    np.testing.assert_allclose(effective_sample_size(one), 1.0, 1e-5)
