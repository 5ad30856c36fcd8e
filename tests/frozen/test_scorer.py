"""A frozen scorer gives what its model gives, for all units, without TensorFlow."""

import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import keras_rbm as kr
from keras_rbm_frozen import Scorer, scorer as module

RNG = np.random.default_rng(0)
CATEGORY = kr.units.Categorical(3)
VISIBLE = {
    "bernoulli": RNG.integers(0, 2, (40, 6)),
    "spin": 2 * RNG.integers(0, 2, (40, 6)) - 1,
    kr.units.Binomial(5): RNG.integers(0, 6, (40, 6)),
    CATEGORY: RNG.integers(0, 3, (40, 6)),
    "gaussian": RNG.normal(3.0, 2.0, (40, 6)),
    kr.units.Joined([("bernoulli", 2), (CATEGORY, 2), ("gaussian", 2)]): np.c_[
        RNG.integers(0, 2, (40, 2)),
        RNG.integers(0, 3, (40, 2)),
        RNG.normal(1.0, 2.0, (40, 2)),
    ],
}
HIDDEN = [
    *("bernoulli", "spin", kr.units.Binomial(3), CATEGORY, "gaussian"),
    *("rectified", "double_rectified"),
    kr.units.Joined([("bernoulli", 3), ("gaussian", 2)]),
]


def drawn(model, *names):
    """Gives variables of a model random values."""
    rng = np.random.default_rng(1)
    for name in names:
        if (variable := getattr(model, name, None)) is not None:
            variable.assign(rng.normal(0.0, 0.4, variable.shape))
    return model


@pytest.mark.parametrize("hidden", HIDDEN, ids=repr)
def test_scores_and_features_are_those_of_the_model(hidden):
    for visible, rows in VISIBLE.items():
        if hidden != "bernoulli" and not isinstance(visible, kr.units.Joined):
            continue  # its parts are of each kind
        rbm = kr.RBM(5, visible=visible, hidden=hidden, seed=0)
        rbm.adapt(rows)
        drawn(rbm, "kernel", "hidden_bias", "hidden_threshold", "hidden_log_precision")
        scorer = pickle.loads(pickle.dumps(rbm.scorer(2.5)))
        energies = rbm.free_energy(rows).numpy()
        np.testing.assert_allclose(scorer.free_energy(rows), energies, 2e-6, 2e-6)
        np.testing.assert_allclose(scorer.score(rows), -energies - 2.5, 2e-6, 2e-6)
        means = rbm.predict(rows, verbose=0)
        np.testing.assert_allclose(scorer.features(rows), means, 3e-6, 2e-6)


@pytest.mark.parametrize(
    ("visible", "hidden", "units"),
    [
        ("bernoulli", "bernoulli", 4),
        (CATEGORY, "spin", 3),
        ("bernoulli", "gaussian", 2),
    ],
)
def test_log_p_of_rows_given_x(visible, hidden, units, monkeypatch):
    """By enumeration of hidden states, or of visible ones if hidden units have none."""
    crbm = kr.CRBM(units, visible=visible, hidden=hidden, seed=0)
    rows, x = VISIBLE[visible][:, :4], RNG.normal(size=(40, 3))
    crbm.compile("sgd")
    crbm.fit(x, rows, verbose=0)
    drawn(crbm, "kernel", "visible_kernel", "hidden_kernel", "visible_bias")
    expected = crbm.log_likelihood(x, rows, "exact")
    monkeypatch.setattr(module, "_AT_ONCE", 100)  # several parts
    scorer = crbm.scorer()
    np.testing.assert_allclose(scorer.score(rows, x=x), expected, 1e-5, 1e-5)
    with pytest.raises(ValueError, match=r"x of shape \(40, 3\). Received: no x"):
        scorer.score(rows)
    monkeypatch.setattr(module, "_MOST_STATES", 2)
    with pytest.raises(ValueError, match="at most 2 states"):
        crbm.scorer().score(rows, x=x)


@pytest.mark.parametrize("hidden", HIDDEN, ids=repr)
def test_what_is_drawn_has_the_distribution_of_the_model(hidden):
    """p(v_0 | the others), from free energies, beside shares of 4,000 chains."""
    units = 5 if isinstance(hidden, kr.units.Joined) else 3
    rbm = kr.RBM(units, num_visible=4, hidden=hidden, seed=0)
    rbm.build((None, 4))
    drawn(rbm, "kernel", "hidden_bias", "visible_bias", "hidden_threshold")
    scorer = rbm.scorer(0.0)
    row = np.array([[np.nan, 1.0, 0.0, np.nan]])
    both = np.array([[a, 1.0, 0.0, b] for a in (0.0, 1.0) for b in (0.0, 1.0)])
    shares = np.exp(scorer.score(both))
    shares /= shares.sum()
    states = scorer.sample_conditional(np.repeat(row, 4000, 0), steps=30, seed=0)
    assert (states[:, 1:3] == [1.0, 0.0]).all()
    found = np.bincount((2 * states[:, 0] + states[:, 3]).astype(int), minlength=4)
    errors = np.sqrt(shares * (1.0 - shares) / 4000)
    assert (np.abs(found / 4000 - shares) < 5.0 * errors).all()


@pytest.fixture
def scorer():
    rbm = kr.RBM(3, num_visible=4, seed=0)
    rbm.build((None, 4))
    return drawn(rbm, "kernel", "visible_bias").scorer()


def test_a_file_is_read_where_tensorflow_is_not(scorer, tmp_path):
    path = tmp_path / "scorer.npz"
    scorer.save(path)
    script = (
        "import sys, numpy as np; from keras_rbm_frozen import Scorer;"
        f"print(Scorer.load({str(path)!r}).score(np.eye(4)).tolist());"
        "assert not {'tensorflow', 'keras', 'scipy'} & set(sys.modules)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == str(scorer.score(np.eye(4)).tolist())
    assert len(pickle.dumps(scorer)) < 1000


def test_other_files_are_refused(scorer, tmp_path, monkeypatch):
    path = tmp_path / "other.npz"
    np.savez(path, kernel=np.eye(2))
    with pytest.raises(ValueError, match="file that Scorer.save has written"):
        Scorer.load(path)
    pathlib.Path(path).write_text("no archive")
    with pytest.raises(ValueError, match="file that Scorer.save has written"):
        Scorer.load(path)
    monkeypatch.setattr(module, "VERSION", 2)
    scorer.save(path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="version 1 at most. Received: 2"):
        Scorer.load(path)


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (np.zeros((2, 5)), r"shape \(N, 4\). Received: \(2, 5\)"),
        (np.zeros(4), r"Received: \(4,\)"),
        ([[0, 1, 0, 1], [0, 1, 255, 0]], "Received: 255 in row 1"),
        ([[0, 1, 0, np.nan]], "Received: nan in row 0"),
    ],
)
def test_rows_that_are_no_states(scorer, rows, word):
    with pytest.raises(ValueError, match=word):
        scorer.score(rows)
    with pytest.raises(ValueError, match="model without"):
        scorer.score(np.eye(4), x=np.eye(4))


def test_models_without_one_log_z():
    with pytest.raises(ValueError, match="one log Z"):
        kr.RBM(2, num_visible=3, missing="absent").scorer()


def test_a_log_z_of_other_weights_is_refused():
    rbm = kr.RBM(3, num_visible=4, seed=0)
    rbm.build((None, 4))
    z = rbm.log_partition()
    rbm.kernel.assign(rbm.kernel + 1.0)
    with pytest.raises(ValueError, match="weights"):
        rbm.scorer(z)
    with pytest.raises(ValueError, match="finite"):
        rbm.scorer(np.nan)
    assert rbm.scorer("exact").log_partition == rbm.scorer().log_partition


def test_damaged_files_and_inputs(scorer, tmp_path):
    path = tmp_path / "scorer.npz"
    scorer.save(path)
    whole = path.read_bytes()
    for part in (b"", whole[: len(whole) // 2], whole[:200] + b"x" + whole[201:]):
        path.write_bytes(part)
        with pytest.raises(ValueError, match="file that Scorer.save has written"):
            Scorer.load(path)
    assert [each.name for each in tmp_path.iterdir()] == ["scorer.npz"]
    with pytest.raises(TypeError, match="masked or sparse"):
        scorer.score(np.ma.masked_array(np.eye(4), np.eye(4)))
    with pytest.raises(ValueError, match="steps=0|steps as an int"):
        scorer.sample_conditional(np.eye(4), steps=0)
    assert scorer.score(np.eye(4)[:0]).shape == (0,)
    scorer.log_partition = None
    with pytest.raises(ValueError, match="scorer with log Z"):
        scorer.score(np.eye(4))
