"""Aligned sequences of letters, as whole numbers for categorical units."""

import gzip
import os
import pathlib
import string

import numpy as np
from numpy.typing import ArrayLike

#: Amino acids and the gap, numbered in this order.
PROTEINS = "ACDEFGHIKLMNPQRSTVWY-"
#: What stands for several nucleotides or any; for several, any or rare amino acids.
_NOT_NUCLEOTIDES, _NOT_AMINO_ACIDS = "BDHKMNRSVWXY*", "BJOUXZ*"
#: In an a2m, what is not in its columns.
_INSERTIONS = string.ascii_lowercase + "."
_ROWS_AT_ONCE = 1000


def fasta(
    path: str | os.PathLike, alphabet: str = PROTEINS
) -> tuple[np.ndarray, list[str]]:
    r"""Reads a FASTA, a2m or a3m file of aligned sequences.

    A record is a line that begins with `>`, followed by lines of letters. All sequences
    have the same length. `.` is read as the gap `-`; the case of letters is ignored.

    In an a2m or a3m, lower-case letters and `.` are insertions, which are left out. A
    file is one if it has letters of both cases, and all sequences have equally many
    capitals and `-`. Write letters that are lower-case for another reason, such as
    masked repeats, as capitals first.

    What stands for several letters, any or a rare one is read as a gap, unless the
    alphabet has it: X, B, Z, J, U, O and `*` of proteins, N, R, Y and the like of
    nucleotides. To make it unknown instead (`RBM(missing="latent")`), read it by
    `alphabet=PROTEINS + "X"`, and put NaN where the number is 21.

    Args:
        path: str or `pathlib.Path`; the file may be compressed by gzip.
        alphabet: str, the letters, in the order of their numbers.

    Returns:
        `(sequences, names)`: int32 array (N, sites), numbers from 0 to
        `len(alphabet) - 1`; list of str, the text after `>` in each header.

    Raises:
        ValueError: if the file has no sequence, a letter that is not in the alphabet,
            or sequences of several lengths. The error names the sequence's line.

    Example:

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "family.fasta"
    >>> _ = path.write_text(">first\nACD-\n>second\nCC-A\n")
    >>> keras_rbm.datasets.fasta(path)[0].tolist()
    [[0, 1, 2, 20], [1, 1, 20, 0]]
    """
    if not isinstance(alphabet, str) or len(set(alphabet)) < max(2, len(alphabet)):
        raise ValueError(
            "Expected an alphabet of at least two letters, each once. Received: "
            f"alphabet={alphabet!r:.200}."
        )
    data = pathlib.Path(path).read_bytes()
    data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    names, lines, rows = [], [], []
    text = data.decode("utf-8-sig", errors="replace")
    for line, content in enumerate(text.splitlines(), 1):
        content = content.strip()
        if content.startswith(">"):
            names.append(content[1:].strip())
            lines.append(line)
            rows.append("")
        elif content:
            if not rows:
                raise ValueError(
                    "Expected a FASTA file, whose first line begins with '>'. "
                    f"Received: {content[:40]!r} in line {line}."
                )
            rows[-1] += content
    if not rows or not rows[0]:
        raise ValueError(f"Expected at least one sequence. Received: none in {path}.")
    letters = "".join(rows)
    if letters.upper() != letters != letters.lower():
        insertions = {ord(each): None for each in _INSERTIONS if each not in alphabet}
        columns = [row.translate(insertions) for row in rows]
        rows = columns if len({*map(len, columns)}) == 1 else rows
    numbers = _numbers(alphabet, letters)
    for row, line in zip(rows, lines, strict=True):
        wrong = [letter for letter in row if letter not in numbers]
        if wrong:
            raise ValueError(
                f"Expected letters of {alphabet!r}. Received: {wrong[0]!r} in the "
                f"sequence at line {line}. Pass an alphabet that has it, or leave the "
                "sequence out."
            )
        if len(row) != len(rows[0]):
            raise ValueError(
                f"Expected aligned sequences, all of {len(rows[0])} sites. Received: "
                f"one of {len(row)} at line {line}. Align them first."
            )
    return np.array([[numbers[each] for each in row] for row in rows], np.int32), names


def _numbers(alphabet, letters):
    """Returns a dict of what may be among letters, in either case, to its number."""
    numbers = {letter: number for number, letter in enumerate(alphabet)}
    for letter in alphabet:
        numbers.setdefault(letter.lower(), numbers[letter])
        numbers.setdefault(letter.upper(), numbers[letter])
    # U of an RNA that is read as a protein is no rare amino acid.
    nucleotides = {*"ACGTU-.", *_NOT_NUCLEOTIDES}
    of_nucleotides = any({*each.upper()} <= nucleotides for each in (alphabet, letters))
    unknown = _NOT_NUCLEOTIDES if of_nucleotides else _NOT_AMINO_ACIDS
    if "-" in numbers:
        for letter in "." + unknown + unknown.lower():
            numbers.setdefault(letter, numbers["-"])
    return numbers


def sequence_weights(sequences: ArrayLike, distance: float = 0.1) -> np.ndarray:
    """Computes 1 / the number of sequences near each sequence, itself included.

    Protein families contain many near copies. With these weights a group of near
    copies counts as one sequence.

    Args:
        sequences: int array (N, sites).
        distance: float in [0, 1), the largest share of sites in which two near
            sequences differ.

    Returns:
        float32 array (N,), for `sample_weight`.

    Raises:
        ValueError: if an argument is out of range.

    Example:

    >>> sequences = np.array([[0, 1, 2], [0, 1, 2], [2, 0, 0]])
    >>> keras_rbm.datasets.sequence_weights(sequences).tolist()
    [0.5, 0.5, 1.0]
    """
    sequences = np.asarray(sequences)
    if not isinstance(distance, (int, float)) or not 0.0 <= distance < 1.0:
        raise ValueError(f"Expected 0 ≤ distance < 1. Received: distance={distance!r}.")
    count, sites = sequences.shape
    letters = np.eye(sequences.max() + 1, dtype=np.float32)
    rows = letters[sequences].reshape(count, -1)
    least = sites - np.floor(distance * sites + 1e-9)  # sites that agree
    near = [
        (rows[start : start + _ROWS_AT_ONCE] @ rows.T >= least - 0.5).sum(1)
        for start in range(0, count, _ROWS_AT_ONCE)
    ]
    return (1.0 / np.concatenate(near)).astype(np.float32)
