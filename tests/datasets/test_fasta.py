"""Aligned sequences from FASTA files, good ones and malformed ones."""

import gzip

import numpy as np
import pytest

import keras_rbm
from keras_rbm.datasets import PROTEINS, fasta, sequence_weights


def read(tmp_path, text, **kwargs):
    path = tmp_path / "family.fasta"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return fasta(path, **kwargs)


def test_records_of_several_lines_and_of_other_systems(tmp_path):
    text = ">one first\r\nACD\r\n-E\r\n\r\n>two\r\nacd.e\r\n"
    sequences, names = read(tmp_path, text)
    assert names == ["one first", "two"]
    np.testing.assert_array_equal(sequences, [[0, 1, 2, 20, 3]] * 2)
    assert sequences.dtype == np.int32


def test_other_alphabets(tmp_path):
    sequences, _ = read(tmp_path, ">\nACGT\n>\nTGCA", alphabet="ACGT")
    assert sequences.tolist() == [[0, 1, 2, 3], [3, 2, 1, 0]]


FORMS = {
    "a2m": (">a\nACdD-\n>b\nC.C-A\n", ["ACD-", "CC-A"]),
    "a3m": (">a\nACdD-\n>b\nCC-\nA\n", ["ACD-", "CC-A"]),
    "capitals and dots": (">a\nAC.D\n", ["AC-D"]),
    "lower case": (">a\nac.d\n", ["AC-D"]),
    "masked": (">a\nACdd\n>b\nACCd\n", ["ACDD", "ACCD"]),
    "unknown": (">a\nACX-\n>b\nAC-B\n", ["AC--", "AC--"]),
    "rare": (">a\nLZJUO*X\n", ["L------"]),
    "byte order mark": (b"\xef\xbb\xbf>a\nACD-\n", ["ACD-"]),
    "gzip": (gzip.compress(b">a\nACD-\n"), ["ACD-"]),
}


@pytest.mark.parametrize("name", FORMS)
def test_files_as_people_have_them(tmp_path, name):
    """Insertions of an a2m were sites of their own."""
    text, want = FORMS[name]
    found, _ = read(tmp_path, text)
    letters = np.array([*PROTEINS])
    assert ["".join(letters[row]) for row in found] == want


def test_unknown_letters_of_an_alphabet(tmp_path):
    found, _ = read(tmp_path, ">a\nANRY-\n", alphabet="ACGU-")
    assert found.tolist() == [[0, 4, 4, 4, 4]]
    found, _ = read(tmp_path, ">a\nAXX-\n", alphabet=PROTEINS + "X")
    assert found.tolist() == [[0, 21, 21, 20]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one sequence"),
        ("\n\n", "at least one sequence"),
        (">only a name\n", "at least one sequence"),
        ("ACD\n", "begins with '>'.*line 1"),
        (">a\nA\n>b\nA+\n", r"Received: '\+' in the sequence at line 3"),
        (">an RNA\nGACUN\n", "Received: 'U' in the sequence at line 1"),
        (">a\nACD\n>b\nAC\n", "all of 3 sites. Received: one of 2 at line 3"),
        (">a\nACD\n>b\n", "Received: one of 0 at line 3"),
        (b">a\n\xff\xfe\n", "letters of"),
        (b"PK\x03\x04\x00", "begins with '>'"),
    ],
)
def test_malformed_files(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize("distance", [0.0, 0.1, 0.25, 0.3])
def test_weights_are_one_over_the_number_of_near_ones(distance):
    rng = np.random.default_rng(0)
    sequences = rng.integers(0, 3, (1100, 10))
    sequences[1:800:2] = sequences[0]
    sequences[3, 0] += 1
    some = slice(0, 40)
    differ = (sequences[some, np.newaxis] != sequences).mean(-1)
    want = 1.0 / (differ <= distance + 1e-9).sum(1)
    got = sequence_weights(sequences, distance)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got[some], want, rtol=1e-6)


def test_real_families(real_data):
    for name, count, sites in (("ww", 7503, 31), ("kunitz", 8062, 53)):
        sequences, names = fasta(real_data / "proteins" / f"{name}.fasta")
        assert sequences.shape == (count, sites) and len(names) == count
    weights = sequence_weights(sequences[:500])
    rbm = keras_rbm.RBM(3, visible=keras_rbm.units.Categorical(21), seed=0)
    rbm.compile(rule="pcd")
    history = rbm.fit(sequences[:500], sample_weight=weights, verbose=0).history
    assert np.isfinite(history["loss"]).all()
