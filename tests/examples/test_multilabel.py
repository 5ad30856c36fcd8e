"""Several labels: files, what is compared, and the page's tables."""

import numpy as np
import pytest
import scipy.sparse


@pytest.fixture
def multilabel(import_example):
    """Returns a function that imports a module of the experiment."""
    return lambda name: import_example(f"papers.multilabel.{name}")


@pytest.fixture
def folder(tmp_path):
    """Returns a folder with one set: two labels of words, the third is on if not."""
    rng, fields = np.random.default_rng(0), {"features": 6, "labels": 3}
    for part, rows in (("train", 120), ("test", 80)):
        x = scipy.sparse.random(rows, 6, 0.3, "csr", random_state=rng)
        y = np.stack([x.toarray()[:, 0] > 0, x.toarray()[:, 1] > 0], 1)
        y = np.concatenate([y, ~y.any(1, keepdims=True)], 1)
        fields |= {f"x_{part}_{key}": getattr(x, key) for key in ("data", "indices")}
        fields |= {f"x_{part}_indptr": x.indptr, f"y_{part}": np.packbits(y, 1)}
    np.savez(tmp_path / "words.npz", **fields)
    return tmp_path


def test_files(multilabel, folder):
    data = multilabel("data")
    assert data.names(folder) == ["words", *data.BLOCKS]
    x, y, test, _ = data.load(folder, "words")
    assert scipy.sparse.issparse(x) and x.shape == (120, 6) and test.shape == (80, 6)
    np.testing.assert_array_equal(y[:, 0], x.toarray()[:, 0] > 0)
    np.testing.assert_array_equal(y.any(1), True)


def test_blocks(multilabel):
    x, y, test, labels = multilabel("data").in_blocks(300)
    assert x.shape == (300, 64) and len(test) == len(labels) == 5000
    np.testing.assert_array_equal(y.reshape(-1, 4, 4).sum(2), 1)


def test_what_is_compared(multilabel, folder, call_main, monkeypatch):
    experiment, results = multilabel("experiment"), multilabel("results")
    monkeypatch.setattr(experiment, "CHAINS", 2)
    records = folder / "records"
    options = ["words", "--data", folder, "--records", records, "--epochs", "40"]
    call_main(experiment.main, *map(str, options))
    monkeypatch.setattr(results, "SETS", {"words": "words"})
    monkeypatch.setattr(results, "REAL", ["words"])
    found = results.read(records)
    assert found["words"].keys() == results.METHODS.keys()
    for method in results.METHODS:
        exact = results.value(found, "words", method, "exact")
        wrong = results.value(found, "words", method, "hamming")
        assert exact <= 100.0 - wrong <= 100.0
    nats = {name: record["log_likelihood"] for name, record in found["words"].items()}
    assert nats["crbm"] > nats["regressions"]
    couplings = np.array(found["words"]["crbm"]["couplings"])
    np.testing.assert_allclose(couplings, couplings.T, atol=1e-4)
    assert couplings[0, 2] < -1.0 and couplings[1, 2] < -1.0
    assert call_main(experiment.main, *map(str, options)) == ""  # nothing again
    for rows in (results.rows(found, "f1"), results.costs(found)):
        assert all(all(cells) for cells in rows)


def test_the_regressions_decide_for_f1(multilabel):
    """Two labels of probability 0.4 that exclude none: both are better than none."""
    p = np.array([[0.4, 0.4, 0.01], [0.9, 0.1, 0.01]])
    got = multilabel("experiment").best_for_f1(p, some=False)
    np.testing.assert_array_equal(got, [[1, 1, 0], [1, 0, 0]])
