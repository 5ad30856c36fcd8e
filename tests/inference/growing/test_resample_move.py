"""Samples of one model that become those of another, and the ratio of Zs."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import random_potentials
from growing_models import counted, drawn, law_of, log_partition, states_of, two_modes

from keras_rbm import inference
from keras_rbm.inference.growing.resample_move import Descended, resample_move

OLD = random_potentials(6, 4, seed=1)
#: Near enough for a single step, which keeps two thirds of the samples.
NEW = inference.Potentials(0.7 * OLD.kernel, OLD.visible_bias - 0.4, OLD.hidden_bias)
STATES = states_of(OLD)
MODES = two_modes(-6.0), two_modes(-5.8)
SAMPLES = Descended.independent(tf.constant(STATES))


def with_units_of_both(old, new):
    """Returns two models with the units of both; the other's count 0 times."""
    kernel = tf.concat([old.kernel, new.kernel], 1)
    bias = tf.concat([old.hidden_bias, new.hidden_bias], 0)
    sizes = old.num_hidden, new.num_hidden
    return [
        counted(
            inference.Potentials(kernel, model.visible_bias, bias),
            np.repeat(counts, sizes),
        )
        for model, counts in ((old, [1.0, 0.0]), (new, [0.0, 1.0]))
    ]


def moved(samples, old, new, seed, num_sweeps=1):
    """Returns samples of one model as those of another."""

    def change(visible):
        return old.free_energy(visible) - new.free_energy(visible)

    both = with_units_of_both(old, new)
    return resample_move(samples, change, *both, seed, num_sweeps=num_sweeps)


def moving(old=OLD, new=NEW, sweeps=1):
    """Returns a function of a number of samples and a seed that moves them."""

    @tf.function(autograph=False)
    def moved_ones(visible, seed):
        return moved(Descended.independent(visible), old, new, seed, sweeps)

    return lambda count, seed: moved_ones(
        drawn(old, count, seed), tf.constant([seed, 0])
    )


def assert_honest(log_ratios, errors, truth, low, high):
    """Compares the spread of errors, in units of what was said of them, with 1."""
    scores = (np.array(log_ratios) - truth) / np.array(errors)
    assert low < np.sqrt(np.mean(np.square(scores))) < high
    return scores


def test_samples_become_the_new_models():
    visible = moving()(200_000, 0).samples.visible.numpy()
    index = (visible @ 2.0 ** np.arange(6)).astype(int)
    order = (STATES @ 2.0 ** np.arange(6)).astype(int)
    share = np.bincount(index, minlength=64)[order] / len(visible)
    np.testing.assert_allclose(share, law_of(NEW), atol=0.005)


@pytest.mark.parametrize("models", [(OLD, NEW), MODES], ids=["mixing", "two modes"])
def test_the_ratio_is_right_and_its_error_honest(models):
    """Where no sweep leaves its mode the samples after are copies of those before."""
    old, new = map(log_partition, models)
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
    both = inference.Potentials(kernel, OLD.visible_bias, bias)
    old, new = (counted(both, [1.0] * 4 + [t] * 6) for t in (0.0, 1.0))

    def change(visible):
        return old.free_energy(visible) - new.free_energy(visible)

    @tf.function(autograph=False)
    def moved_ones(visible, seed):
        start = Descended.independent(visible)
        return resample_move(start, change, old, new, seed, num_sweeps=5)

    results = [moved_ones(drawn(old, 200, n), tf.constant([n, 0])) for n in range(60)]
    assert all(float(result.ess) < 0.2 for result in results)
    truth = log_partition(new) - log_partition(old)
    ratios, errors = zip(*((r.log_ratio, r.error) for r in results), strict=True)
    scores = assert_honest(ratios, errors, truth, 0.7, 1.4)
    assert np.max(np.abs(scores)) < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("mixing", [False, True])
def test_copies_count_as_one_where_sweeps_do_not_mix(mixing):
    """Gains were off by 7 of their errors: many chains still were copies of others."""
    old, new = (OLD, NEW) if mixing else MODES

    @tf.function(autograph=False)
    def moved_ones(visible, lineages, seed):
        # The copies mix before, or do not.
        visible = inference.gibbs_chain(old, visible, seed, num_sweeps=30)
        return moved(Descended(visible, lineages), old, new, seed, num_sweeps=5)

    ratios, errors = [], []
    for seed in range(100):
        visible = tf.repeat(drawn(old, 100, seed), 4, 0)
        lineages = tf.repeat(tf.range(0, 400, 4), 4)
        result = moved_ones(visible, lineages, tf.constant([seed, 0]))
        ratios.append(float(result.log_ratio))
        errors.append(float(result.error))
    assert_honest(ratios, errors, log_partition(new) - log_partition(old), 0.8, 1.25)
    alone = moved_ones(visible, tf.range(400), tf.constant([0, 0]))
    share = np.mean(errors) / float(alone.error)
    assert share == pytest.approx(1.0 if mixing else 2.0, rel=0.2)


def test_few_lineages_begin_again():
    lineages = tf.repeat(tf.constant([3, 40]), 32)
    result = moved(Descended(tf.constant(STATES), lineages), OLD, OLD, 0)
    assert len(np.unique(result.samples.lineages)) == 64


def test_the_same_model():
    both = with_units_of_both(OLD, OLD)
    result = resample_move(SAMPLES, lambda v: 0 * v[:, 0] + 3, *both, 0, num_sweeps=1)
    got = result.log_ratio, result.error, result.ess
    np.testing.assert_allclose(got, (3.0, 0.0, 1.0), atol=1e-5)
    # None counts where the change is not a number.
    result = resample_move(SAMPLES, lambda v: v[:, 0] + np.nan, *both, 0, num_sweeps=1)
    assert float(result.ess) == 0.0


def test_one_state_may_have_all_the_weight():
    bias = 40.0 * (2.0 * STATES[-1] - 1.0)
    peaked = inference.Potentials(np.zeros((6, 2), "float32"), bias, [0.0, 0.0])
    flat = inference.Potentials(np.zeros((6, 2), "float32"), 0 * bias, [0.0, 0.0])
    result = moved(SAMPLES, flat, peaked, 0)
    np.testing.assert_array_equal(result.samples.visible, np.repeat(STATES[-1:], 64, 0))
    assert float(result.ess) == pytest.approx(1 / 64, rel=1e-5)
    assert np.isfinite([result.log_ratio, result.error]).all()
