"""Pictures of chains, of free energies and of hidden units."""

import re

import numpy as np
import pytest

import keras_rbm
from keras_rbm import inference, plots

CRBM = keras_rbm.CRBM(3, num_visible=16, num_features=16)


@pytest.fixture
def rbm():
    model = keras_rbm.RBM(5, num_visible=16, seed=0)
    model.kernel.assign(np.random.default_rng(0).normal(size=(16, 5)))
    return model


@pytest.fixture
def data():
    return np.random.default_rng(1).integers(0, 2, (60, 16)).astype("float32")


def pictures(axes, rows, columns):
    """Returns the images of a grid, (rows, columns, 16)."""
    grid = np.ma.filled(axes.images[0].get_array(), np.nan)[1:, 1:]
    grid = grid.reshape(rows, 5, columns, 5)[:, :4, :, :4]
    return grid.transpose(0, 2, 1, 3).reshape(rows, columns, 16)


def test_chains_draw_the_start_and_then_reconstructions(rbm):
    figure = plots.chains(rbm, 3, sweeps=(0, 1, 7), seed=5)
    shown = pictures(figure.axes[0], 3, 3)
    for row, steps in enumerate((0, 1, 7)):
        states = rbm.sample(3, steps=steps, seed=5)
        expected = rbm.reconstruct(states) if steps else states
        np.testing.assert_allclose(shown[row], expected, rtol=1e-5)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["0 sweeps", "1 sweep", "7 sweeps"]


def test_rows_are_moments_of_one_chain(rbm):
    before, after = (rbm.sample(3, steps=steps, seed=5) for steps in (6, 7))
    fresh = keras_rbm.random.fold_in(keras_rbm.random.as_seed(5), 6)
    step = inference.gibbs_chain  # its first sweep is that of another seed
    assert not np.array_equal(step(rbm.potentials(), before, 5, num_sweeps=1), after)
    moved = inference.gibbs_sweep(rbm.potentials(), before, fresh)
    np.testing.assert_array_equal(getattr(moved, "visible", moved), after)


def test_chains_from_data_as_states(rbm, data):
    figure = plots.chains(rbm, 4, (0, 2), initial_visible=data[:4])
    shown = pictures(figure.axes[0], 2, 4)
    np.testing.assert_array_equal(shown[0], data[:4])


def test_chains_of_categories_are_states():
    """Their means are a number for each category, which makes no picture."""
    rbm = keras_rbm.RBM(3, visible=keras_rbm.units.Categorical(3), num_visible=16)
    shown = pictures(plots.chains(rbm, 2, (0, 1)).axes[0], 2, 2)
    assert set(np.unique(shown)) <= {0.0, 1.0, 2.0}


def test_chains_of_deep_models():
    for model in (keras_rbm.DBM([4, 3], num_visible=16), keras_rbm.DBN([4, 3])):
        model.build((None, 16))
        assert pictures(plots.chains(model, 2, (0, 1)).axes[0], 2, 2).shape[2] == 16


def test_free_energies_of_data_held_out_and_noise(rbm, data):
    train, held_out = data[:40], data[40:]
    figure = plots.free_energies(rbm, train, held_out, seed=3)
    axes = figure.axes[0]
    noise = rbm.sample(40, steps=0, seed=3)
    energies = [rbm.free_energy(x).numpy() for x in (train, held_out, noise)]
    means = [line.get_xdata()[0] for line in axes.lines]
    np.testing.assert_allclose(means, [own.mean() for own in energies], rtol=1e-5)
    for patch, own in zip(axes.patches, energies, strict=True):
        corners = patch.get_xy()[:, 0]
        assert corners.min() <= own.min() + 1e-4 and own.max() - 1e-4 <= corners.max()
    train, held_out, _ = energies
    gap = held_out.mean() - train.mean()
    error = np.hypot(train.std() / np.sqrt(40), held_out.std() / np.sqrt(20))
    assert axes.get_title() == f"Free-energy gap {gap:.2f} ± {error:.2f} nats"


def test_free_energies_of_a_dbm_are_its_bound(data):
    dbm = keras_rbm.DBM([4, 3], num_visible=16, seed=0)
    axes = plots.free_energies(dbm, data).axes[0]
    expected = dbm.variational_free_energy(data).numpy().mean()
    assert axes.lines[0].get_xdata()[0] == pytest.approx(expected, rel=1e-5)
    assert axes.get_title() == "Free energies"


def drawn_units(axes):
    """Returns dicts of kind to points (n, 2) and to bars (n, 2), in order."""
    points, bars = {}, {}
    lines, scatters = axes.collections[::2], axes.collections[1::2]
    for line, scatter in zip(lines, scatters, strict=True):
        kind = scatter.get_label()
        points[kind] = np.asarray(scatter.get_offsets())
        bars[kind] = np.array([segment[:, 1] for segment in line.get_segments()])
    return points, bars


def test_activations_of_binary_units(data):
    rbm = keras_rbm.RBM(6, num_visible=16, seed=0)
    rbm.kernel.assign(np.random.default_rng(0).normal(size=(16, 6)))
    rbm.hidden_bias.assign([0.0, -30.0, 0.0, 30.0, -30.0, 0.0])
    axes = plots.activations(rbm, data).axes[0]
    assert axes.get_title() == "6 hidden units: 2 dead, 1 saturated"
    points, bars = drawn_units(axes)
    means = rbm(data).numpy()
    order = np.argsort(means.mean(0))
    assert points["dead"][:, 0].tolist() in ([0.0, 1.0], [1.0, 0.0])
    assert points["saturated"][:, 0] == 5.0
    alive = points["alive"]
    assert sorted(alive[:, 0]) == [2.0, 3.0, 4.0]
    by_place = alive[np.argsort(alive[:, 0])]
    np.testing.assert_allclose(by_place[:, 1], means.mean(0)[order[2:5]], rtol=1e-5)
    own = means[:, [0, 2, 5]]
    expected = np.quantile(own, (0.1, 0.9), axis=0).T
    np.testing.assert_allclose(bars["alive"], expected, rtol=1e-5)


def test_activations_of_other_units_are_dead_without_variance(data):
    rbm = keras_rbm.RBM(4, hidden="rectified", num_visible=16, seed=0)
    kernel = np.random.default_rng(0).normal(size=(16, 4))
    kernel[:, 2] = 0.0
    rbm.kernel.assign(kernel)
    axes = plots.activations(rbm, data).axes[0]
    assert axes.get_title() == "4 hidden units: 1 dead"
    means = rbm(data).numpy().astype(float)
    points, bars = drawn_units(axes)
    assert points["dead"][0, 1] == pytest.approx(means[:, 2].mean())
    own = means[:, [0, 1, 3]]
    center, deviation = own.mean(0), own.std(0)
    expected = np.stack([center - deviation, center + deviation], 1)
    np.testing.assert_allclose(bars["alive"], expected, rtol=1e-4)


def test_activations_of_a_dbm_have_a_panel_for_each_layer(data):
    dbm = keras_rbm.DBM([4, 3], hidden=["bernoulli", "gaussian"], num_visible=16)
    figure = plots.activations(dbm, data)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[0] == "Layer 1, 4 hidden units: 0 dead, 0 saturated"
    assert titles[1].startswith("Layer 2, 3 hidden units:")
    points, _ = drawn_units(figure.axes[1])
    expected = np.sort(dbm(data).numpy()[:, 4:].mean(0))
    shown = np.sort(np.concatenate([*points.values()])[:, 1])
    np.testing.assert_allclose(shown, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda rbm, x: plots.chains(rbm, 0), "num_samples=0"),
        (lambda rbm, x: plots.chains(rbm, sweeps=(-1, 3)), "steps=-1"),
        (lambda rbm, x: plots.chains(rbm, sweeps=(0.5,)), "steps=0.5"),
        (lambda rbm, x: plots.chains(rbm, image_shape=(3, 5)), "16 pixels"),
        (lambda rbm, x: plots.chains(rbm, 2, initial_visible=x), "initial_visible"),
        (lambda rbm, x: plots.chains(rbm, seed="a"), "seed='a'"),
        (lambda rbm, x: plots.chains(keras_rbm.RBM(3)), "plots.chains"),
        (lambda rbm, x: plots.free_energies(rbm, x[:, :4]), "Expected data"),
        (lambda rbm, x: plots.free_energies(rbm, x, x + 0.5), "held_out"),
        (lambda rbm, x: plots.free_energies(keras_rbm.RBM(3), x), "free_energies"),
        (lambda rbm, x: plots.activations(rbm, x[:0]), "at least one example"),
        (lambda rbm, x: plots.activations(keras_rbm.RBM(3), x), "activations"),
        (lambda rbm, x: plots.chains(CRBM), "Received: CRBM"),
        (lambda rbm, x: plots.free_energies(CRBM, x), "Received: CRBM"),
        (lambda rbm, x: plots.free_energies(keras_rbm.DBN([3]), x), "Received: DBN"),
        (lambda rbm, x: plots.activations(CRBM, x), "Received: CRBM"),
    ],
)
def test_bad_values(rbm, data, draw, message):
    kind = TypeError if "Received" in message else ValueError
    with pytest.raises(kind, match="(?s)Expected.*Received") as error:
        draw(rbm, data)
    assert re.search(message, str(error.value))


def test_free_energies_of_a_diverged_model(rbm, data):
    rbm.hidden_bias.assign(np.full(5, np.nan))
    with pytest.raises(ValueError, match="Expected finite free energies"):
        plots.free_energies(rbm, data)
