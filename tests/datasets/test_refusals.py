"""What data sets and pipelines refuse, before anything is drawn or written."""

import numpy as np
import pytest
import tensorflow as tf

from keras_rbm.datasets import (
    binarize,
    corrupt,
    fasta,
    flip,
    load,
    occlude,
    sequence_weights,
    shuffled_batches,
)

VECTORS = tf.data.Dataset.from_tensor_slices(np.zeros((6, 12), "float32"))
OF_WORDS = tf.data.Dataset.from_tensors({"image": [0.5]})
NUMBERS = tf.data.Dataset.range(3)
NAN = float("nan")


def shuffled(data, batch_size=2, seed=0, iterations=0, **options):
    options |= {"seed": seed, "iterations": iterations}
    return shuffled_batches(data, batch_size, **options)


def rows(count):
    return np.zeros((count, 1))


def cover(size, value=0.0, image_shape=None):
    return corrupt(VECTORS, occlude(size, value, image_shape))


#: What is called, its arguments, options, and what is said.
REFUSED = [
    *((flip, (p,), {}, f"probability={p!r}") for p in (-0.1, 1.1, NAN, "0.1", None)),
    (cover, (0,), {}, "Received: size=0"),
    (cover, (2.0,), {}, "Received: size=2.0"),
    (cover, (2, 2), {}, "Received: value=2"),
    (cover, (2, NAN), {}, "Received: value=nan"),
    (cover, (2,), {}, "Received: image_shape=None for 12 units"),
    (cover, (2,), {"image_shape": (3, 5)}, r"Received: image_shape=\(3, 5\)"),
    (cover, (2,), {"image_shape": 12}, "Received: image_shape=12"),
    (cover, (4,), {"image_shape": (3, 4)}, "Received: size=4"),
    (corrupt, (np.zeros((2, 4)), flip(0.1)), {}, "from_tensor_slices"),
    (corrupt, (VECTORS, 0.1), {}, "Expected corruption as a function"),
    (corrupt, (VECTORS, flip(0.1)), {"seed": 0.5}, "Received: seed=0.5"),
    (corrupt, (VECTORS, flip(0.1)), {"redraw": "yes"}, "(?s)Expected.*Received"),
    (corrupt, (NUMBERS, flip(0.1)), {}, "begin with floats"),
    (corrupt, (OF_WORDS, flip(0.1)), {}, "begin with floats"),
    *((binarize, (VECTORS, "sample"), {"seed": s}, f"seed={s!r}") for s in (0.5, "0")),
    (binarize, (VECTORS, "sample"), {"seed": True}, "Received: seed=True"),
    (binarize, (VECTORS, "sample"), {"seed": 2**64}, "(?s)Expected.*Received"),
    (binarize, (VECTORS, "sample"), {"redraw": rows(3)}, "(?s)Expected.*Received"),
    (binarize, (VECTORS, "sample"), {"iterations": "step"}, "(?s)Expected.*Received"),
    (binarize, (VECTORS, "round"), {}, "Received: method='round'"),
    (binarize, (VECTORS, np.zeros(3)), {}, "(?s)Expected.*Received"),
    (binarize, ([0.0, 1.0], "sample"), {}, "(?s)Expected.*Received"),
    (shuffled, (rows(10), 0), {}, "Received: batch_size=0"),
    (shuffled, (rows(10), 2.5), {}, "Received: batch_size=2.5"),
    (shuffled, (rows(10), 11), {"drop_remainder": True}, "batch_size=11 for 10"),
    (shuffled, (rows(10),), {"drop_remainder": "no"}, "(?s)Expected.*Received"),
    (shuffled, (rows(10),), {"iterations": np.eye(2)}, "(?s)Expected.*Received"),
    (shuffled, (rows(0),), {}, r"shapes \[\(0, 1\)\]"),
    (shuffled, ((rows(3), rows(4)),), {}, r"shapes \[\(3, 1\), \(4, 1\)\]"),
    (shuffled, ([1.0, 2.0],), {}, "examples on their first axis"),
    (shuffled, (None,), {}, "examples on their first axis"),
    (shuffled, ({1, 2},), {}, "(?s)Expected.*Received"),
    (shuffled, (VECTORS.batch(4),), {}, "(?s)Expected.*Received"),
    (shuffled, (NUMBERS.repeat(),), {}, "Expected a finite dataset"),
    (shuffled, (NUMBERS.take(0),), {}, "Expected at least one example"),
    (load, ("mnsit",), {}, r"Expected the name .* Received: name='mnsit'"),
    (load, (np.zeros(3),), {}, "(?s)Expected.*Received"),
    (load, ("digits", np.zeros(3)), {}, "(?s)Expected.*Received"),
    (load, ("omniglot28", "validation"), {}, r"\('train', 'test'\).*'validation'"),
    (load, ("mnist", "train[:9]"), {}, r"split='train\[:9\]'"),
    (load, ("shifting_bar",), {"with_labels": True}, r"labels, one of \['caltech101"),
    (load, ("digits",), {"binarize": "median"}, "Received: method='median'"),
    (load, ("digits",), {"size": 3}, "Received: size=3"),
    (load, ("bars_and_stripes",), {"size": 0}, "from 1 to 12. Received: size=0"),
    (load, ("bars_and_stripes",), {"size": 13}, "from 1 to 12. Received: size=13"),
    (load, ("bars_and_stripes",), {"length": 1}, "Received: length=1"),
    (load, ("shifting_bar",), {"size": 0}, "Received: size=0, length=1"),
    (load, ("shifting_bar",), {"size": 3, "length": 4}, "Received: size=3, length=4"),
    (load, ("shifting_bar",), {"size": 3.5}, "Received: size=3.5"),
    *((sequence_weights, (rows(2), d), {}, "< 1") for d in (-0.1, 1.0, "a", None)),
]


@pytest.mark.parametrize(("call", "arguments", "options", "word"), REFUSED)
def test_what_is_refused(call, arguments, options, word, tmp_path):
    """Some ended in TensorFlow, or only when the first batch was drawn."""
    if call is load:
        options = options | {"data_dir": tmp_path}
    with pytest.raises((TypeError, ValueError), match=word):
        call(*arguments, **options)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("alphabet", ["", "A", "AAC", 3])
def test_alphabets_that_are_refused(alphabet, tmp_path):
    path = tmp_path / "family.fasta"
    path.write_text(">\nA")
    with pytest.raises(ValueError, match="alphabet of at least two"):
        fasta(path, alphabet=alphabet)
    with pytest.raises(FileNotFoundError):
        fasta(tmp_path / "none.fasta")
