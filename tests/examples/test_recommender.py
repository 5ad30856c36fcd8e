"""The recommender runs from end to end on ratings of two tastes."""

import re

import numpy as np
import pytest


@pytest.fixture
def folder(tmp_path):
    """A folder like MovieLens 100K: 60 users, of whom each likes half of 20 films."""
    rng = np.random.default_rng(0)
    users, films = np.nonzero(rng.random((60, 20)) < 0.6)
    likes = (users % 2) == (films % 2)
    stars = np.where(
        likes, rng.integers(4, 6, len(users)), rng.integers(1, 3, len(users))
    )
    triples = np.stack([users + 1, films + 1, stars, stars], 1)
    np.savetxt(tmp_path / "u.data", triples, "%d", "\t")
    np.savetxt(tmp_path / "u1.test", triples[::5], "%d", "\t")
    lines = (f"{film}|Film {film}|1999" for film in range(1, 21))
    (tmp_path / "u.item").write_text("\n".join(lines), encoding="latin-1")
    return tmp_path


@pytest.mark.parametrize("unit", ["gaussian", "categorical"])
def test_tastes_beat_means(run_script, folder, unit):
    options = f"--files {folder} --unit {unit} --hidden 4 --epochs 60 --user 2"
    shown = run_script("recommender.py", options)
    errors = dict(re.findall(r"\| (\w+)[^|]* \| (\d\.\d+) \|", shown))
    assert float(errors["RBM"]) < 0.8 * float(errors["means"])
    recommended = re.findall(r"\d\.\d\d  Film (\d+)", shown)
    assert [int(film) % 2 for film in recommended[:2]] == [1, 1]


def test_means_are_what_minimizes_regularized_errors(import_example):
    """Squared errors plus 5 times the squares of all deviations are least there."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((30, 20)) < 0.4)
    stars = rng.integers(1, 6, len(users))
    rows = np.full((30, 20), np.nan)
    rows[users, items] = stars
    mean = stars.mean()
    design = np.zeros((len(stars), 50))
    design[np.arange(len(stars)), users] = design[np.arange(len(stars)), 30 + items] = 1
    both = np.linalg.solve(
        design.T @ design + 5 * np.eye(50), design.T @ (stars - mean)
    )
    expected = mean + both[:30, np.newaxis] + both[30:]
    means = import_example("recommender").Means(rows)
    np.testing.assert_allclose(means(rows), expected, atol=1e-4)
    # A new user who rated nothing, and one who rated as the first did.
    new = means(np.stack([np.full(20, np.nan), rows[0]]))
    np.testing.assert_allclose(new, [mean + both[30:], expected[0]], atol=1e-4)
