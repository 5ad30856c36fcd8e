"""The experiments with DC programming run from end to end on tiny settings."""

import json

import numpy as np
import pytest
import tensorflow as tf

import keras_rbm as kr


@pytest.fixture
def script(import_example):
    return import_example("papers.dc_programming.experiment")


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["PCD", "CS-DCP"])
def test_small_trials_go_on_where_they_were_cut(script, tmp_path, rule):
    settings = {"set": "shifting_bar", "rule": rule, "rate": 0.3}
    script.small.run(settings, 1, 20, tmp_path)
    path = tmp_path / f"shifting_bar.{rule}.0.3.json"
    (first,) = json.loads(path.read_text())["log_likelihood"]
    script.small.run(settings, 2, 20, tmp_path)
    record = json.loads(path.read_text())
    again, second = record["log_likelihood"]
    assert record["epochs"] == [0, 10, 20]
    assert first == again != second
    assert len(first) == 3
    with pytest.raises(ValueError, match="same --epochs"):
        script.small.run(settings, 2, 50, tmp_path)


@pytest.mark.slow
def test_trial_is_what_fit_gives(script, tmp_path):
    rows = kr.datasets.load("shifting_bar", "train").batch(9).get_single_element()
    settings = {"set": "shifting_bar", "rule": "CD", "rate": 0.3}
    train, score, model = script.small._compiled(settings, rows.numpy())
    train(tf.constant(10))
    fitted = script.small._new(settings, rows.numpy(), 0)
    fitted.fit(rows, batch_size=9, epochs=10, shuffle=False, verbose=0)
    expected = np.mean(fitted.log_likelihood(rows, "exact"))
    assert float(score()) == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
def test_large_runs_are_scored_and_reported(script, page_of, tmp_path):
    settings = {"set": "digits", "rule": "S-DCP", "rate": 0.3, "gibbs_steps": 4}
    settings |= {"inner_steps": 2, "batch_size": 100, "hidden_units": 5}
    settings |= {"start": "base", "epochs": 6, "seed": 0}
    records = tmp_path / "dc_programming"
    records.mkdir()
    script.large.run(settings, 4, 50, tmp_path, records)
    (path,) = records.glob("*.json")
    record = json.loads(path.read_text())
    assert record["epochs"] == [0, 4, 6] and record["temperatures"] == 50
    start, _, end = record["log_likelihood"]
    assert start + 0.1 < end < 0.0
    assert len(record["seconds"]) == 6
    changed = path.stat().st_mtime_ns
    script.large.run(settings, 4, 50, tmp_path, records)
    assert path.stat().st_mtime_ns == changed
    # A setting that only DCP was run with has no section.
    (records / "other.json").write_text(json.dumps(record | {"rule": "CD"}))
    text = page_of("dc_programming", records)
    assert f"| S-DCP | 1 | {end:.2f} | {max(start, end):.2f} |" in text


SETTINGS = {
    "set": "mnist",
    "rate": 0.01,
    "gibbs_steps": 24,
    "inner_steps": 6,
    "batch_size": 200,
    "hidden_units": 500,
    "start": "base",
    "temperatures": 1000,
}


def made_up(rule, seed, curve, upper=None, **settings):
    return (
        SETTINGS
        | settings
        | {
            "rule": rule,
            "seed": seed,
            "epochs": [0, 2, 4, 6],
            "log_likelihood": curve,
            "lower": [value - 1 for value in curve],
            "upper": upper or [value + 1 for value in curve],
        }
    )


def page_of_runs(page_of, folder, runs):
    records = folder / "dc_programming"
    records.mkdir()
    for index, run in enumerate(runs):
        (records / f"{index}.json").write_text(json.dumps(run))
    return page_of("dc_programming", records), records


def test_report_of_claims(page_of, tmp_path):
    """Runs of another size or of spectral descent at its own rate are told apart."""
    fast, slow = [-200.0, -110.0, -101.0, -100.0], [-200.0, -150.0, -120.0, -109.0]
    slower, ssd = [-200.0, -180.0, -160.0, -140.0], [-200.0, -120.0, -99.0, -98.0]
    open_end = [-199.0, None, -100.0, -99.0]
    runs = [made_up("CS-DCP", seed, fast, upper=open_end) for seed in range(2)]
    runs += [made_up("CG", seed, slow) for seed in range(2)]
    runs += [made_up("S-DCP", seed, fast) for seed in range(2)]
    runs += [made_up("CD", seed, slower) for seed in range(2)]
    runs += [made_up("CD", 0, fast, hidden_units=100), made_up("SSD", 0, ssd, rate=0.5)]
    text, _ = page_of_runs(page_of, tmp_path, runs)
    assert text.count("## MNIST") == 2
    small, large = sorted(text.split("## MNIST")[1:], key=lambda part: "\n500 " in part)
    assert "| CD | 1 | -100.00 | -100.00 | 2 |" in small.replace("2.00", "2")
    assert "| CS-DCP | 2 | -100.00 ± 0.00 | -100.00 ± 0.00 | 2.00 ± 0.00 |" in large
    assert "| SSD, rate 0.5 | 1 | -98.00 | -98.00 | 4.00 |" in large
    assert "| CS-DCP before CG | 4.0 ± 0.0 | 4.0 ± 0.0 |" in large
    late = "4.0 ± 0.0, or more: not reached in 6"
    assert f"| S-DCP before CD | {late} | {late} |" in large
    assert "Not run yet: PCD." in large


def test_report_of_one_setting_at_a_time(page_of, tmp_path):
    """Claims and a figure for each; spectral descent with batches of 1,000."""
    slow, fast = [-200.0, -150.0, -120.0, -100.0], [-200.0, -110.0, -101.0, -99.0]
    fell = [-200.0, -100.0, -99.0, -120.0]
    runs = [made_up("S-DCP", 0, slow), made_up("S-DCP", 0, fast, inner_steps=12)]
    runs += [made_up("CS-DCP", 0, fast), made_up("CS-DCP", 0, fell, start="zero")]
    runs += [made_up("S-DCP", 0, fell, inner_steps=12, start="zero")]  # not alone
    runs += [made_up(rule, 0, fast, batch_size=1000) for rule in ("CS-DCP", "S-DCP")]
    runs += [made_up("SSD", 0, fell, rate=0.1, batch_size=1000)]
    runs = [run | {"epochs": [0, 50, 100, 200]} for run in runs]
    text, records = page_of_runs(page_of, tmp_path, runs)
    ends = "S-DCP after 200 epochs: 6 -100.0, 12 -99.0"
    assert f"to the same end | figure 6(b) | {ends} | **holds** |" in text
    assert "CS-DCP after 200 epochs: base -99.0, zero -120.0 | fails |" in text
    assert "last -120.0 at 200; CS-DCP at rate 0.01 best -99.0 at epoch 200" in text
    assert "mnist: learning rate" not in text  # none was varied
    assert text.count("## MNIST") == 1  # settings that only DCP was run with
    names = ("inner_steps", "batch_size", "start")
    figures = {f"sensitivity_mnist_{name}.svg" for name in names}
    assert figures <= {path.name for path in records.glob("*.svg")}
