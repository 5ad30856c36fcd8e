"""Pictures: the shapes of their grids, what they show, and their messages."""

import sys

import numpy as np
import pytest

import keras_rbm
from keras_rbm import plots
from keras_rbm._images import image_grid

SAID = "(?s)Expected.*Received"
ZEROS, SQUARE = np.zeros((7, 16)), np.zeros((12, 12))


@pytest.fixture
def rbm():
    return keras_rbm.RBM(10, num_visible=12, seed=0)


def drawn(figure):
    """The array that a figure of images shows."""
    return np.ma.filled(figure.axes[0].images[0].get_array(), np.nan)


@pytest.mark.parametrize(
    ("package", "draw"),
    [
        ("matplotlib.figure", lambda rbm: plots.filters(rbm, image_shape=(3, 4))),
        ("logomaker", lambda rbm: plots.logos([np.zeros((3, 21))])),
    ],
)
def test_without_a_package_says_what_to_install(package, draw, rbm, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install keras-rbm\[examples\]"):
        draw(rbm)


def test_grid_puts_each_image_in_its_place():
    states = np.arange(5 * 6.0).reshape(5, 6)
    grid = image_grid(states, (2, 3), num_columns=2)
    assert grid.shape == (3 * 3 + 1, 2 * 4 + 1)
    np.testing.assert_array_equal(grid[1:3, 1:4], states[0].reshape(2, 3))
    np.testing.assert_array_equal(grid[1:3, 5:8], states[1].reshape(2, 3))
    np.testing.assert_array_equal(grid[7:9, 1:4], states[4].reshape(2, 3))
    assert np.isfinite(grid).sum() == states.size


def test_filters_shows_the_kernel_with_zero_in_the_middle(rbm):
    figure = plots.filters(rbm, image_shape=(3, 4), max_units=9)
    grid = drawn(figure)
    assert grid.shape == (3 * 4 + 1, 3 * 5 + 1)
    np.testing.assert_array_equal(
        grid[1:4, 6:10], np.asarray(rbm.kernel)[:, 1].reshape(3, 4)
    )
    low, high = figure.axes[0].images[0].get_clim()
    assert low == -high < 0.0
    assert figure.axes[0].get_title() == "Filters of 9 of 10 hidden units"
    # A notebook showed `<Figure size …>` where nobody had imported pyplot.
    picture = figure._repr_png_()
    assert picture.startswith(b"\x89PNG") and len(picture) > 1000
    rbm.kernel.assign(np.zeros((12, 10)))
    assert plots.filters(rbm, (3, 4)).axes[0].images[0].get_clim() == (-1.0, 1.0)


def test_samples_infer_a_square_and_use_their_range(tmp_path):
    figure = plots.samples(np.zeros((7, 16)), title="Samples")
    assert drawn(figure).shape == (3 * 5 + 1, 3 * 5 + 1)
    assert figure.axes[0].images[0].get_clim() == (0.0, 1.0)
    figure.savefig(tmp_path / "samples.png")
    figure = plots.samples(np.linspace(-2.0, 3.0, 16)[None])
    assert figure.axes[0].images[0].get_clim() == (-2.0, 3.0)


def test_history_pairs_metrics_and_draws_the_interval(tmp_path):
    metrics = {
        "loss": [4.0, 3.0, 2.0, 1.0],
        "val_loss": [4.0, 3.5, 3.0, 3.0],
        "log_likelihood": [-9.0, -8.0],
        "log_likelihood_lower": [-9.5, -8.5],
        "log_likelihood_upper": [-8.5, -7.5],
    }
    figure = plots.history(metrics, title="Training")
    assert [axes.get_title() for axes in figure.axes] == ["loss", "log likelihood"]
    loss, likelihood = figure.axes
    assert len(loss.lines) == 2 and len(loss.collections) == 0
    assert band(likelihood) == {(1, -9.5), (1, -8.5), (2, -8.5), (2, -7.5)}
    assert likelihood.lines[0].get_xdata().tolist() == [1, 2]
    labels = loss.get_xlabel(), likelihood.get_xlabel()
    assert labels == ("epoch", "measurement")
    figure.savefig(tmp_path / "history.png")


def band(axes):
    """The corners of the band around a line."""
    (path,) = axes.collections[0].get_paths()
    return set(map(tuple, path.vertices))


def test_history_marks_intervals_that_are_open_and_shows_single_ones(tmp_path):
    """A band between open neighbors had no width: the interval was not to be seen."""
    likelihood = {
        "log_likelihood": [-9.0, -8.0, -7.0],
        "log_likelihood_lower": [-9.5, -8.5, -np.inf],
        "log_likelihood_upper": [np.inf, -7.5, -6.5],
    }
    figure = plots.history(likelihood)
    figure.savefig(tmp_path / "history.png")
    (axes,) = figure.axes
    (segment,) = axes.collections[1].get_segments()
    np.testing.assert_array_equal(segment, [[2, -8.5], [2, -7.5]])
    marks = {
        line.get_marker(): (line.get_xdata().tolist(), line.get_ydata().tolist())
        for line in axes.lines[1:]
    }
    assert marks == {"^": ([1], [-9.0]), "v": ([3], [-7.0])}


def test_history_takes_what_fit_returns(rbm):
    rbm.compile("sgd")
    history = rbm.fit(np.zeros((4, 12)), epochs=4, initial_epoch=2, verbose=0)
    line = plots.history(history).axes[0].lines[0]
    assert line.get_xdata().tolist() == [3, 4]


def test_history_of_sweeps_and_convergence(tmp_path):
    """Ticks stood at 7.5 sweeps, at epoch 0.96 and at a share of 1.04."""
    metrics = {"max_iterations": [7, 8, 9, 10], "bp_converged": [1.0] * 4}
    for count in (4, 1):
        figure = plots.history({k: values[:count] for k, values in metrics.items()})
        figure.savefig(tmp_path / "history.png")
        sweeps, share = figure.axes
        assert share.get_title() == "bp converged"
        assert share.get_ylim() == pytest.approx((0.0, 1.0), abs=0.1)
        for ticks in (sweeps.get_xticks(), sweeps.get_yticks(), share.get_xticks()):
            assert (ticks == ticks.round()).all()
        assert set(metrics["max_iterations"][:count]) <= set(sweeps.get_yticks())


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda rbm: plots.filters(rbm), "image_shape=None for 12 units"),
        (lambda rbm: plots.filters(rbm, (5, 3)), r"image_shape=\(5, 3\)"),
        (lambda rbm: plots.filters(rbm, 12), "image_shape=12"),
        (lambda rbm: plots.filters(rbm, (3, 4), max_units=0), "max_units=0"),
        (lambda rbm: plots.filters(keras_rbm.RBM(3)), "Expected a built model"),
        (lambda rbm: plots.samples(np.zeros(16)), r"states.shape=\(16,\)"),
        (lambda rbm: plots.samples(np.zeros((0, 16))), r"states.shape=\(0, 16\)"),
        (lambda rbm: plots.samples(np.zeros((2, 16)), num_columns=0), "num_columns=0"),
        (lambda rbm: plots.history({}), "history={}"),
        (lambda rbm: plots.samples(ZEROS, image_shape=["a", "b"]), SAID),
        (lambda rbm: plots.samples(ZEROS, image_shape=[None, 4]), SAID),
        (lambda rbm: keras_rbm.score_report(ZEROS, ZEROS), SAID),
        (lambda rbm: keras_rbm.score_report(rbm, ZEROS, methods={"exact"}), SAID),
        (lambda rbm: plots.comparison({"a": ZEROS, "b": ZEROS[:2]}), "one shape"),
        (lambda rbm: plots.contact_map(SQUARE, SQUARE[:5]), "one size"),
        (lambda rbm: plots.contact_map(SQUARE, distance=12), "distance=12"),
        (lambda rbm: plots.contact_map(np.triu(SQUARE + 1.0)), "symmetric, finite"),
    ],
)
def test_bad_input(rbm, draw, message):
    with pytest.raises((TypeError, ValueError), match=message):
        draw(rbm)


def test_comparison_has_a_row_of_pictures_each():
    rows = {name: np.full((3, 16), value) for name, value in (("a", 0.0), ("b", 1.0))}
    figure = plots.comparison(rows, title="Two")
    image = figure.axes[0].images[0].get_array()
    half = image.shape[0] // 2
    assert image[:half].min() < image[half:].max()


def test_contact_map_counts_what_is_right():
    scores, contacts = np.zeros((12, 12)), np.zeros((12, 12))
    for pair in ((0, 6), (1, 9), (2, 8)):
        scores[pair] = 3.0
    scores[3, 4] = 9.0  # too near
    contacts[0, 6] = contacts[6, 0] = contacts[2, 8] = contacts[8, 2] = 1
    figure = plots.contact_map(scores + scores.T, contacts, num_pairs=3)
    assert figure.axes[0].get_title() == "3 pairs of highest score, 2 right"
    known, right, wrong = (
        set(map(tuple, c.get_offsets())) for c in figure.axes[0].collections
    )
    assert right == {(7, 1), (9, 3)} and wrong == {(10, 2)}
    assert known == {(7, 1), (1, 7), (9, 3), (3, 9)}


def test_logos_stack_the_letters():
    pytest.importorskip("logomaker")
    weights = np.array([[0.5, -1.0, 0.0], [2.0, 0.0, -0.5]])
    figure = plots.logos([weights, -weights], "AC-", ["one", "two"])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two"]
    assert figure.axes[0].get_ylim() == pytest.approx((-1.0, 2.0))
    assert figure.axes[1].get_ylim() == pytest.approx((-2.0, 1.0))
    with pytest.raises(ValueError, match="arrays \\(sites, 3\\)"):
        plots.logos([weights[:, :2]], "AC-")


def test_acids_and_bases_have_their_own_colors():
    """An alphabet of the 20 amino acids, without a gap, had the colors of bases."""
    pytest.importorskip("logomaker")

    def colors(alphabet):
        figure = plots.logos([np.ones((1, len(alphabet)))], alphabet)
        return {tuple(patch.get_facecolor()) for patch in figure.axes[0].patches}

    acids = colors("ACDEFGHIKLMNPQRSTVWY")
    assert acids == colors("ACDEFGHIKLMNPQRSTVWY-") - {(0.5, 0.5, 0.5, 1.0)}
    assert len(acids) > 3 and acids != colors("ACGT")


def test_contact_map_takes_one_side_of_the_contacts():
    """Those below the diagonal only counted as none."""
    scores = np.ones((12, 12))
    for contacts in (np.tril(scores), np.triu(scores)):
        figure = plots.contact_map(scores, contacts, num_pairs=4)
        assert figure.axes[0].get_title().endswith("4 right")
