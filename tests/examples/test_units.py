"""The examples of units other than binary run from end to end on tiny settings."""

import re

import pytest

pytestmark = pytest.mark.slow


def test_protein_family(run_script, tmp_path):
    pytest.importorskip("logomaker")
    options = "--hidden 5 --epochs 2 --pairs 10"
    shown = run_script("protein_family.py", options, tmp_path / "out")
    alone, train, held_out = map(
        float, re.findall(r"(?:alone|training|held out) +(-[\d.]+)", shown)
    )
    assert alone < held_out < train < 0
    assert len(re.findall(r"^  [A-Z-]{31}  \d+$", shown, re.MULTILINE)) == 5
    for name in ("motifs.png", "contacts.png"):
        assert (tmp_path / "out" / name).stat().st_size > 10_000


def test_mixed_table(run_script):
    shown = run_script("mixed_table.py", "--epochs 60")
    gain, error = map(float, re.search(r"gain +([\d.]+) ± ([\d.]+)", shown).groups())
    assert gain > 4 * error
    alone, rbm = map(float, re.findall(r"(?:alone|RBM) +(0\.\d\d)$", shown, re.M))
    assert abs(alone - 0.5) < 0.05 < rbm - alone
    assert shown.count("\n True") + shown.count("\nFalse") == 5
