"""Aligned sequences of letters, as whole numbers for categorical units."""

import os
import pathlib

import numpy as np
from numpy.typing import ArrayLike

#: Amino acids and the gap, numbered in this order.
PROTEINS = "ACDEFGHIKLMNPQRSTVWY-"
_ROWS_AT_ONCE = 1000


def fasta(
    path: str | os.PathLike, alphabet: str = PROTEINS
) -> tuple[np.ndarray, list[str]]:
    r"""Reads a FASTA file of aligned sequences.

    A record is a line that begins with `>`, followed by lines of letters. All sequences
    have the same length. `.` is read as the gap `-`; the case of letters is ignored.

    Args:
        path: str or `pathlib.Path`.
        alphabet: str, the letters, in the order of their numbers.

    Returns:
        `(sequences, names)`: int32 array (N, sites), numbers from 0 to
        `len(alphabet) - 1`; list of str, the text after `>` in each header.

    Raises:
        ValueError: if the file has no sequence, a letter that is not in the alphabet,
            or sequences of several lengths. The error names the line.

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
    numbers = {letter: number for number, letter in enumerate(alphabet)}
    if "-" in numbers:
        numbers.setdefault(".", numbers["-"])
    for letter in alphabet:
        numbers.setdefault(letter.lower(), numbers[letter])
        numbers.setdefault(letter.upper(), numbers[letter])
    names, lines, rows = [], [], []
    text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    for line, content in enumerate(text.splitlines(), 1):
        content = content.strip()
        if content.startswith(">"):
            names.append(content[1:].strip())
            lines.append(line)
            rows.append([])
        elif content:
            if not rows:
                raise ValueError(
                    "Expected a FASTA file, whose first line begins with '>'. "
                    f"Received: {content[:40]!r} in line {line}."
                )
            wrong = [letter for letter in content if letter not in numbers]
            if wrong:
                raise ValueError(
                    f"Expected letters of {alphabet!r}. Received: {wrong[0]!r} in line "
                    f"{line}. Pass an alphabet that has it, or leave the sequence out."
                )
            rows[-1] += [numbers[letter] for letter in content]
    if not rows or not rows[0]:
        raise ValueError(f"Expected at least one sequence. Received: none in {path}.")
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"Expected aligned sequences, all of {len(rows[0])} sites. Received: "
                f"one of {len(row)} at line {line}. Align them first."
            )
    return np.array(rows, np.int32), names


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
