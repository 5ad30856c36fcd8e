"""Pictures of estimates of log Z: what their chains say."""

import numpy as np
import pytest
import tensorflow as tf

from keras_rbm import inference, plots
from keras_rbm.inference.annealing.both_ways import bidirectional


def annealed(log_weights, **kwargs):
    return inference.LogPartition.from_log_weights(tf.constant(log_weights), **kwargs)


def bars(axes, label):
    """Returns centers and heights of a histogram."""
    container = next(c for c in axes.containers if c[0].get_label() == label)
    boxes = [(p.get_x() + p.get_width() / 2, p.get_height()) for p in container]
    return np.array(boxes).T


@pytest.mark.parametrize("reverse", [False, True])
def test_annealing_draws_chains_and_their_part_in_the_estimate(reverse):
    rng = np.random.default_rng(0)
    log_weights = 50.0 + 0.5 * rng.normal(size=60)
    z = annealed(log_weights, reverse=reverse)
    axes = plots.annealing(z).axes[0]
    centers, heights = bars(axes, "chains")
    assert heights.sum() == pytest.approx(1.0)
    assert (centers * heights).sum() == pytest.approx(log_weights.mean(), abs=0.1)
    outline = axes.patches[-1].get_xy()
    assert axes.patches[-1].get_label() == "their part in Z"
    heaviest = outline[outline[:, 1].argmax(), 0]
    weights = np.exp(-log_weights if reverse else log_weights)
    mean = (log_weights * weights).sum() / weights.sum()
    assert abs(heaviest - mean) < 0.7 and (mean < log_weights.mean()) == reverse
    band = axes.patches[0]
    ends = band.get_x(), band.get_x() + band.get_width()
    assert ends == pytest.approx((float(z.lower), float(z.upper)))
    assert axes.lines[0].get_xdata()[0] == pytest.approx(float(z.value))
    assert axes.get_title().endswith(f"effective sample size {z.ess:.4g} of 60")


def test_annealing_reaches_the_edge_where_an_end_is_open(tmp_path):
    z = annealed(np.linspace(0.0, 9.0, 30))._replace(note="few chains count")
    assert np.isinf(z.upper)
    figure = plots.annealing(z)
    figure.savefig(tmp_path / "annealing.png")
    axes = figure.axes[0]
    band = axes.patches[0]
    assert band.get_x() + band.get_width() == pytest.approx(axes.get_xlim()[1])
    assert axes.get_xlim()[1] > 9.0
    assert axes.get_title().splitlines()[1] == "few chains count"


def test_annealing_both_ways_draws_the_halves():
    forward, backward = np.linspace(4.0, 5.0, 20), np.linspace(4.5, 5.5, 20)
    z = bidirectional(*map(tf.constant, (forward, backward)))
    axes = plots.annealing(z, both_ways=True).axes[0]
    for name, own in (("forwards", forward), ("back", backward)):
        centers, heights = bars(axes, f"annealed {name}")
        assert (centers * heights).sum() == pytest.approx(own.mean(), abs=0.05)
    assert axes.get_title().endswith("of 20")


def test_annealing_of_one_condition():
    z = annealed(np.linspace(4.0, 5.0, 20)[:, np.newaxis])
    title = plots.annealing(z).axes[0].get_title()
    assert title.startswith(f"log Z = {z.value[0]:.2f}, [")


def test_annealing_of_tempering_has_no_weights_and_counts_states():
    parts = tf.constant(np.linspace(-1.0, 1.0, 20))
    value, error, ess = (tf.constant(x, tf.float64) for x in (4.0, 0.1, 512.0))
    z = inference.LogPartition.of_error(value, error, ess, value + parts)
    axes = plots.annealing(z).axes[0]
    assert axes.get_title() == "log Z = 4.00, [3.70, 4.30], effective sample size 512"
    labels = axes.get_legend_handles_labels()[1]
    assert sorted(labels) == ["chains", "estimate", "interval"]


@pytest.mark.parametrize(
    ("z", "both_ways", "message"),
    [
        (inference.LogPartition.exact(3.0), False, "at least two chains"),
        (annealed(np.zeros((20, 3))), False, "of 3 models"),
        (annealed(np.zeros(21)), True, "for 21 chains"),
    ],
)
def test_annealing_of_what_has_no_such_chains(z, both_ways, message):
    with pytest.raises(ValueError, match="(?s)Expected.*Received") as error:
        plots.annealing(z, both_ways=both_ways)
    assert message in str(error.value)
