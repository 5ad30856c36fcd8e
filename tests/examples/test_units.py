"""The examples of units other than binary run from end to end on tiny settings."""

import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse

pytestmark = pytest.mark.slow


def test_protein_family(run_script, tmp_path):
    pytest.importorskip("logomaker")
    options = "--hidden 5 --epochs 2 --pairs 10"
    shown = run_script("protein_family.py", options, tmp_path / "out")
    alone, train, held_out = map(
        float, re.findall(r"(?:alone|training|held out) +(-[\d.]+)", shown)
    )
    assert alone < held_out < train < 0
    assert len(re.findall(r"^  [A-Z-]{112}  \d+$", shown, re.MULTILINE)) == 5
    for name in ("motifs.png", "contacts.png"):
        assert (tmp_path / "out" / name).stat().st_size > 10_000


def test_mixed_table(run_script):
    shown = run_script("mixed_table.py", "--epochs 60")
    gain, error = map(float, re.search(r"gain +([\d.]+) ± ([\d.]+)", shown).groups())
    assert gain > 4 * error
    alone, rbm = map(float, re.findall(r"(?:alone|RBM) +(0\.\d\d)$", shown, re.M))
    assert abs(alone - 0.5) < 0.05 < rbm - alone
    assert shown.count("\n True") + shown.count("\nFalse") == 5


def test_words(run_script, tmp_path):
    """Two topics of words, in a file like that of the newsgroups."""
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 2, 500) == 1
    first = np.arange(20) < 10
    posts = rng.random((500, 20)) < np.where(topic[:, np.newaxis] == first, 0.4, 0.02)
    words = [f"{'ab'[int(i >= 10)]}{i}" for i in range(20)]
    file = {
        "documents": scipy.sparse.csc_matrix(posts.T.astype("uint8")),
        "wordlist": np.array([words], object),
    }
    scipy.io.savemat(tmp_path / "20news_w100.mat", file)
    options = f"--files {tmp_path} --hidden 4 --epochs 30 --topics 2"
    shown = run_script("words.py", options)
    alone, rbm = (
        float(re.search(rf"^{name} (-[\d.]+)", shown, re.M)[1])
        for name in ("independent words", "RBM")
    )
    assert rbm > alone + 0.5
    assert len(re.findall(r"^\| [ab]\d", shown, re.M)) == 2
