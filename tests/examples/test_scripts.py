"""Scripts run from end to end on tiny settings, and print and save what they say."""

import json
import pathlib
import re
import subprocess
import sys

import keras
import numpy as np
import pytest
import scipy.io
import scipy.sparse

import keras_rbm as kr

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
SLOW = pytest.mark.slow


@pytest.fixture
def run(run_script, tmp_path):
    """Returns a function that runs a script, whose files are in `out`."""
    return lambda script, options: run_script(script, options, tmp_path / "out")


def numbers(pattern, shown):
    """Returns the groups of the first match as floats."""
    return [*map(float, re.search(pattern, shown, re.MULTILINE).groups())]


def assert_saved(folder, figures, name="model", kind=kr.RBM, hidden_units=8):
    for figure in figures.split():
        assert (folder / "out" / f"{figure}.png").stat().st_size > 1000
    model = keras.saving.load_model(folder / "out" / f"{name}.keras")
    assert isinstance(model, kind)
    np.testing.assert_array_equal(model.hidden_units, hidden_units)


def test_train_rbm(run, tmp_path):
    options = "--hidden 8 --epochs 2 --batch-size 400 --gibbs-steps 1 "
    shown = run("train_rbm.py", options + "--precision 9 --rule cd")
    assert "free_energy_gap" in shown
    score = r"(-\d+\.\d\d)  \[(-\d+\.\d\d), (-\d+\.\d\d|inf)\]  AIS"
    value, lower, upper = numbers(score, shown)
    assert lower <= value <= upper
    assert_saved(tmp_path, "filters samples history")


@SLOW
def test_grow_rbm(run, tmp_path):
    shown = run("grow_rbm.py", "--units 2 --samples 100 --precision 9")
    rows = re.findall(r"^ +([12]) +\S+ +\S+ +(-\d+\.\d\d)$", shown, re.M)
    assert [units for units, _ in rows] == ["1", "2"]
    assert "Found: 2 units, with a test log-likelihood of -" in shown
    assert_saved(tmp_path, "growth filters samples", "rbm", hidden_units=2)


@SLOW
def test_dbm_generate(run, tmp_path):
    options = "--layers 8 6 --epochs 1 --batch-size 400 --precision 9"
    shown = run("dbm_generate.py", options)
    scores = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert f"{scores['bound']:.2f}  [{scores['lower']:.2f}, " in shown
    assert scores["lower"] <= scores["bound"] <= scores["upper"] < 0
    assert_saved(tmp_path, "samples", kind=kr.DBM, hidden_units=[8, 6])


@SLOW
@pytest.mark.parametrize("task", ["complete", "flip", "occlude"])
def test_restore(run, tmp_path, task):
    options = f"--task {task} --hidden 8 --epochs 3 --batch-size 100"
    shown = run("restore.py", options)
    for name in ("pixels on their own", "conditional RBM"):
        row = r" +(\d+\.\d+)% +(\d+\.\d+)% +-(\d+\.\d+)"
        every, changed, nats = numbers(name + row, shown)
        assert 0 < every < 50 and 0 < changed < 100 and nats > 0
    assert_saved(tmp_path, "restored history", kind=kr.CRBM)


@SLOW
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("annealed_importance", "--temperatures 3 --repeats 1"),
        ("belief_propagation", "--batch-size 2 --sweeps 1 --repeats 1"),
        ("gibbs_training", "--steps 24 --repeats 1"),
        ("sparse_rows", "--rows 300 --batch-size 50 --density 0.2"),
    ],
)
def test_benchmarks_print_a_table(run_script, name, options):
    options += " --visible 12 --hidden 6"
    assert "| --- |" in run_script(f"benchmarks/{name}.py", options)


@SLOW
def test_many_labels(run_script):
    options = "--rows 60 --features 5 --labels 12 --predicted 10"
    assert "| predict, f1 |" in run_script("benchmarks/many_labels.py", options)


@SLOW
def test_averaged_weights_are_seen_by_the_callbacks_that_follow(run_script):
    shown = run_script("averaged_weights.py", "--hidden 8 --epochs 4")
    rows = [line.split() for line in shown.splitlines()[-4:]]
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    weights, averages = ([float(row[column]) for row in rows] for column in (1, 2))
    assert all(-64 * 0.7 < value < 0 for value in weights + averages)
    assert weights[:2] != averages[:2]


@SLOW
def test_dbn_classifier(run, tmp_path):
    options = "--layers 8 6 --epochs 1 1 --tuning 2 --labels 100 --batch-size 50 "
    shown = run("dbn_classifier.py", options + "--least-steps 10")
    errors = json.loads((tmp_path / "out" / "scores.json").read_text())["errors"]
    error = errors["pretrained, 100 labels"]
    spread = (error * (100 - error) / 300) ** 0.5
    assert f"{error:.2f} ± {spread:.2f} % pretrained" in shown
    assert 0 < errors["random, 100 labels"] < 100 and len(errors) == 2
    assert (tmp_path / "out" / "filters.png").stat().st_size > 1000


@SLOW
def test_serve(run):
    shown = run("serve.py", "--hidden 8 --epochs 1 --calls 2")
    assert numbers(r"from predict's: (\S+)", shown)[0] < 1e-6
    assert "ms served" in shown


@SLOW
@pytest.mark.multiprocess
def test_train_on_two_devices(tmp_path):
    """In a process of its own: it divides the CPU before TensorFlow starts."""
    options = "--devices 2 --hidden 8 --epochs 1 --out out".split()
    run = [sys.executable, EXAMPLES / "train_distributed.py", *options]
    result = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    shown = r"2 replicas, 1 epochs: log-likelihood -\d+\.\d\d ± \d"
    assert re.search(shown, result.stdout)


@SLOW
def test_discrete_vae(run, tmp_path):
    shown = run("discrete_vae.py", "--dataset digits --epochs 3 --rates 0.003")
    assert "independent" in shown
    runs = json.loads((tmp_path / "out" / "scores.json").read_text())["runs"]
    assert len(runs) == 2
    assert all(own["elbo"] <= own["importance"] < 0.0 for own in runs.values())
    assert (tmp_path / "out" / "digits.png").stat().st_size > 1000


@SLOW
def test_multi_label(run_script):
    shown = run_script("multi_label.py", "--epochs 1 --seeds 0")
    assert shown.count("\n| network, ") == 3


@SLOW
def test_structured_head(run_script, tmp_path, real_data, monkeypatch):
    """Goes on from its record: a second call adds a method."""
    monkeypatch.setenv("TFDS_DATA_DIR", str(real_data / "tfds"))
    record = tmp_path / "record.json"
    options = "--images 100 --epochs 1 --validation 20 --likelihoods 2 --record "
    for methods in ("independent", "independent likelihood"):
        run_script("structured_head.py", f"{options}{record} --methods {methods}")
    runs = json.loads(record.read_text())["runs"]
    assert set(runs) == {"occluded_independent", "occluded_likelihood"}
    own = runs["occluded_likelihood"]
    low, high = own["test"]["interval"]
    assert low <= own["test"]["log_likelihood"][0] <= high
    assert "pixel_error" in own["difference"]


@SLOW
def test_protein_family(run, tmp_path):
    pytest.importorskip("logomaker")
    shown = run("protein_family.py", "--hidden 5 --epochs 2 --pairs 10")
    alone, train, held_out = map(
        float, re.findall(r"(?:alone|training|held out) +(-[\d.]+)", shown)
    )
    assert alone < held_out < train < 0
    assert len(re.findall(r"^  [A-Z-]{112}  \d+$", shown, re.MULTILINE)) == 5
    for name in ("motifs.png", "contacts.png"):
        assert (tmp_path / "out" / name).stat().st_size > 10_000


@SLOW
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
    (alone,), (rbm,) = (
        numbers(rf"^{name} (-[\d.]+)", shown) for name in ("independent words", "RBM")
    )
    assert rbm > alone + 0.5
    assert len(re.findall(r"^\| [ab]\d", shown, re.M)) == 2


@SLOW
@pytest.mark.usefixtures("as_users_run")
def test_sklearn_pipeline(run_script):
    shown = run_script("sklearn_pipeline.py", "--search")
    rows = re.findall(r"\| (\w[\w ]+) \| (0\.\d+) \| [\d.]+ \|", shown)
    raw, theirs, ours = (float(accuracy) for _, accuracy in rows)
    assert [name for name, _ in rows] == ["raw pixels", "BernoulliRBM", "RBMEstimator"]
    assert shown.count("rbm__rule") == 6
    assert ours > raw + 0.1
    assert ours > theirs - 0.02  # two standard errors of 360 digits are 0.026
