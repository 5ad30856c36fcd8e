"""The guides' Python blocks run, in order, as a reader would type them."""

import pathlib
import re

import keras
import pytest
import tensorflow as tf
from model_test_case import two_cpus

import keras_rbm as kr

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [
    "README.md",
    "docs/index.md",
    "docs/guides/train-score-sample-save.md",
    "docs/guides/trust-the-likelihood.md",
    "docs/guides/gaussian-units.md",
    "docs/guides/grow-the-hidden-layer.md",
    "docs/guides/stack-and-fine-tune.md",
    "docs/guides/deploy.md",
    "docs/guides/several-devices.md",
    "docs/guides/structured-prediction.md",
    "docs/guides/which-rule-for-an-rbm.md",
    "docs/guides/which-inference-which-rule.md",
    "docs/guides/write-your-own-rule.md",
]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("tfds")


@pytest.fixture
def in_brief(monkeypatch):
    """Ends each fit after two epochs, and anneals 20 chains: pages print worse."""
    fit = keras.Model.fit

    def short(self, *args, epochs=1, initial_epoch=0, **kwargs):
        epochs = min(epochs, initial_epoch + 2)
        return fit(self, *args, epochs=epochs, initial_epoch=initial_epoch, **kwargs)

    estimate = kr.inference.estimate_log_partition

    def few(*args, **kwargs):
        kwargs["num_chains"] = min(kwargs.get("num_chains", 100), 20)
        return estimate(*args, **kwargs)

    monkeypatch.setattr(kr.inference, "estimate_log_partition", few)
    monkeypatch.setattr(keras.Model, "fit", short)


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page, data_dir, tmp_path, monkeypatch, in_brief):
    """Blocks of a page share one namespace; files land in a folder of the test's."""
    _run(page, data_dir, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_page_runs_whole(page, data_dir, tmp_path, monkeypatch, auto_jit):
    _run(page, data_dir, tmp_path, monkeypatch)


def _run(page, data_dir, tmp_path, monkeypatch):
    text = (ROOT / page).read_text(encoding="utf-8")
    monkeypatch.setenv("TFDS_DATA_DIR", str(data_dir))
    monkeypatch.chdir(tmp_path)
    strategy = two_cpus()  # one for all tests of a process
    monkeypatch.setattr(tf.distribute, "MirroredStrategy", lambda: strategy)
    namespace = {"__name__": "guide"}
    blocks = list(_BLOCK.finditer(text))
    assert blocks
    for block in blocks:
        first_line = text.count("\n", 0, block.start(1))
        code = "\n" * first_line + block[1]  # tracebacks name the page's own lines
        exec(compile(code, page, "exec"), namespace)
