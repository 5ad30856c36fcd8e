"""The guides' Python blocks run, in order, as a reader would type them."""

import inspect
import pathlib

import keras
import numpy as np
import outputs
import pytest
import tensorflow as tf
from model_test_case import two_cpus

import keras_rbm as kr
from keras_rbm.models.boltzmann_machine import BoltzmannMachine

ROOT = pathlib.Path(__file__).parents[1]
#: The first tour fetches MNIST; how much of a kind chains hold turns with the last bit.
NOT_COMPARED = ("train-score-sample-save", "do-the-samples-mix")
PAGES = ["README.md"] + [
    f"docs/guides/{path.name}"
    for path in sorted((ROOT / "docs/guides").glob("*.md"))
    if path.stem not in NOT_COMPARED
]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("tfds")


@pytest.fixture
def in_brief(monkeypatch):
    """100 examples, two epochs of three batches, 20 chains: pages print worse."""
    fit = BoltzmannMachine.fit

    def short(self, *args, **kwargs):
        given = inspect.signature(fit).bind(self, *args, **kwargs)
        given.apply_defaults()
        arguments = given.arguments
        arguments["epochs"] = min(arguments["epochs"], arguments["initial_epoch"] + 2)
        rows = 3 * (arguments["batch_size"] or 32)
        for name in ("x", "y"):
            if isinstance(arguments[name], np.ndarray | tf.Tensor):
                arguments[name] = arguments[name][:rows]
        return fit(*given.args, **given.kwargs)

    load = kr.datasets.load
    keras_fit = keras.Model.fit

    def short_network(self, *args, **kwargs):
        kwargs["epochs"] = min(kwargs.get("epochs", 1), 2)
        return keras_fit(self, *args, **kwargs)

    monkeypatch.setattr(BoltzmannMachine, "fit", short)
    monkeypatch.setattr(keras.Sequential, "fit", short_network)

    def few(*args, as_numpy=False, **kwargs):
        data = load(*args, **kwargs).take(100)
        if not as_numpy:
            return data
        return tf.nest.map_structure(np.asarray, data.batch(100).get_single_element())

    monkeypatch.setattr(kr.datasets, "load", few)


#: The first pages, and one for each kind of work; `PAGES` are the slow tests'.
IN_BRIEF = [
    "README.md",
    "docs/index.md",
    "docs/guides/coming-from.md",
    "docs/guides/gaussian-units.md",
    "docs/guides/write-your-own-rule.md",
    pytest.param("docs/guides/train-score-sample-save.md", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("page", IN_BRIEF)
def test_page_runs(page, data_dir, tmp_path, monkeypatch, in_brief):
    """Blocks of a page share one namespace; files land in a folder of the test's."""
    for _ in _outputs(page, data_dir, tmp_path, monkeypatch):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_page_prints_what_it_shows(page, data_dir, tmp_path, monkeypatch, as_users_run):
    """`python docs/outputs.py` writes it; numbers may differ as machines do."""
    for block, output in _outputs(page, data_dir, tmp_path, monkeypatch):
        assert outputs.alike(output, block["output"] or ""), block["code"]


def _outputs(page, data_dir, tmp_path, monkeypatch):
    text = (ROOT / page).read_text(encoding="utf-8")
    monkeypatch.setenv("TFDS_DATA_DIR", str(data_dir))
    monkeypatch.chdir(tmp_path)
    strategy = two_cpus()  # one for all tests of a process
    monkeypatch.setattr(tf.distribute, "MirroredStrategy", lambda: strategy)
    assert outputs.BLOCK.search(text)
    yield from outputs.outputs(text, page)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("-23.43 nats", "-23.40 nats", True),
        ("-23.43 nats", "-29.40 nats", False),
        ("(200, 9)", "(161, 9)", False),
        ("holds", "misses", False),
        ("gain: [0.26 0.2  0.22]", "gain: [0.26 0.21 0.25]", True),
    ],
)
def test_which_outputs_are_alike(one, other, alike):
    assert outputs.alike(one, other) == alike
