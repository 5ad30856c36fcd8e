"""`load`: values, splits, labels, errors."""

import collections
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_rbm.datasets import load


def as_array(dataset):
    return np.concatenate(list(dataset.batch(1_000).as_numpy_iterator()))


def test_digits_are_those_of_scikit_learn(data_dir):
    sklearn_datasets = pytest.importorskip("sklearn.datasets")
    source = sklearn_datasets.load_digits()
    expected = collections.Counter(
        (tuple(x), int(y)) for x, y in zip(source.data, source.target, strict=True)
    )
    loaded = collections.Counter()
    for split, size in {"train": 1_197, "validation": 300, "test": 300}.items():
        dataset = load("digits", split, with_labels=True, data_dir=data_dir)
        assert dataset.cardinality() == size
        for x, y in dataset:
            loaded[tuple(x.numpy().astype(float) * 16), int(y)] += 1
    assert loaded == expected


def test_a_missing_package_is_named(data_dir, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    # An empty home and data_dir: nothing is prepared there.
    with pytest.raises(ImportError, match=r"pip install keras-rbm\[examples\]"):
        load("digits", data_dir=tmp_path)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_bars_and_stripes_has_the_exact_proportions(size, data_dir):
    given = {} if size == 3 else {"size": size}
    rows = as_array(load("bars_and_stripes", data_dir=data_dir, **given))
    assert rows.shape == (2 * 2**size, size**2)
    counts = collections.Counter(map(tuple, rows))
    empty, full = (0.0,) * size**2, (1.0,) * size**2
    if size == 1:
        assert counts == {empty: 2, full: 2}
        return
    assert counts.pop(empty) == counts.pop(full) == 2
    assert len(counts) == 2 * (2**size - 2) and set(counts.values()) == {1}
    for row in counts:
        image = np.reshape(row, (size, size))
        assert (image == image[0]).all() or (image == image[:, :1]).all()


@pytest.mark.parametrize("size, length", [(9, 1), (7, 3), (4, 4)])
def test_shifting_bar_is_every_cyclic_shift(size, length, data_dir):
    rows = as_array(load("shifting_bar", size=size, length=length, data_dir=data_dir))
    bar = np.arange(size) < length
    np.testing.assert_array_equal(rows, [np.roll(bar, i) for i in range(size)])


def test_caltech_is_upright_and_labeled_from_zero(dummy_data, tmp_path):
    """The source is column-major; row i of the made-up file has its first pixels on."""
    from keras_rbm.datasets import caltech101_silhouettes

    builder = caltech101_silhouettes.Builder(data_dir=tmp_path)
    path = dummy_data / "caltech101_silhouettes/caltech101_silhouettes_28_split1.mat"

    class Manager:
        def download(self, url):
            return path

    examples = dict(builder._split_generators(Manager())["train"])
    assert [example["label"] for example in examples.values()] == [0, 1, 100]
    for index, example in examples.items():
        np.testing.assert_array_equal(example["image"].ravel(), np.arange(784) <= index)


def test_omniglot_comes_from_a_manual_file(dummy_data, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_RBM_MANUAL_DIR", str(dummy_data / "omniglot28"))
    dataset = load("omniglot28", with_labels=True, data_dir=tmp_path)
    examples = {int(y): x.numpy() for x, y in dataset}
    for row, label in enumerate([0, 1, 49]):
        expected = 0.75 * (np.arange(784) <= row)
        np.testing.assert_array_equal(examples[label], expected)


@pytest.mark.parametrize("binarize", ["threshold", "sample"])
def test_binarize(binarize, data_dir):
    means = as_array(load("digits", "test", data_dir=data_dir))
    dataset = load("digits", "test", binarize=binarize, data_dir=data_dir)
    assert dataset.element_spec == tf.TensorSpec((64,), tf.float32)
    assert dataset.cardinality() == 300
    bits = as_array(dataset)
    assert set(np.unique(bits)) == {0, 1}
    if binarize == "threshold":
        np.testing.assert_array_equal(bits, means > 127 / 255)
    else:
        standard_error = np.sqrt((means * (1 - means)).sum()) / means.size
        assert abs(bits.mean() - means.mean()) < 5 * standard_error


def test_samples_are_a_function_of_seed_and_epoch(data_dir):
    def epochs(**kwargs):
        dataset = load("digits", "test", binarize="sample", data_dir=data_dir, **kwargs)
        return as_array(dataset), as_array(dataset)

    first, second = epochs(seed=1)
    assert (first != second).any()
    np.testing.assert_array_equal(epochs(seed=1), (first, second))
    assert (epochs(seed=2)[0] != first).any()
    np.testing.assert_array_equal(epochs(seed=1, redraw=False), (first, first))
    options = {"as_numpy": True, "seed": 1, "data_dir": data_dir}
    np.testing.assert_array_equal(
        load("digits", "test", binarize="sample", **options), first
    )


def test_labels_stay_with_their_vectors(data_dir):
    kwargs = {"with_labels": True, "data_dir": data_dir}
    plain = [int(y) for _, y in load("digits", "test", **kwargs)]
    images, labels = load("digits", "test", as_numpy=True, **kwargs)
    assert images.shape == (300, 64) and labels.tolist() == plain
    sampled = load("digits", "test", binarize="sample", **kwargs)
    assert [int(y) for _, y in sampled] == plain
    assert sampled.element_spec[1] == tf.TensorSpec((), tf.int64)


@pytest.mark.multiprocess
def test_importing_a_folder_registers_its_builder(data_dir):
    import tensorflow_datasets as tfds

    import keras_rbm.datasets.shifting_bar  # noqa: F401

    dataset = tfds.load("shifting_bar", split="train", data_dir=data_dir)
    assert dataset.cardinality() == 9


@pytest.mark.slow
def test_mnist(real_data):
    kwargs = {"data_dir": real_data / "tfds"}
    train, validation = (
        as_array(load("mnist", split, **kwargs)) for split in ("train", "validation")
    )
    assert train.shape == (50_000, 784) and validation.shape == (10_000, 784)
    assert load("mnist", "test", **kwargs).cardinality() == 10_000
    assert train.dtype == np.float32 and train.min() == 0 and train.max() == 1
    # The mean intensity of the 60,000 images that TFDS calls train is 0.1307.
    mean = (5 * train.mean(dtype=float) + validation.mean(dtype=float)) / 6
    assert mean == pytest.approx(0.1307, abs=5e-5)
    # The division is part of the interface.
    labeled = load("mnist", with_labels=True, **kwargs)
    assert [int(y) for _, y in labeled.take(10)] == [7, 9, 2, 7, 6, 2, 3, 0, 1, 7]


def test_binarized_mnist_is_binary(real_data):
    images = as_array(load("binarized_mnist", "test", data_dir=real_data / "tfds"))
    assert images.shape == (10_000, 784)
    assert set(np.unique(images)) == {0, 1}


def test_caltech(real_data, tmp_path):
    """Read through a manual folder, with its recorded checksum."""
    kwargs = {"data_dir": tmp_path, "with_labels": True}
    kwargs["manual_dir"] = real_data / "caltech101_silhouettes"
    images, labels = {}, {}
    for split, size in {"train": 4_100, "validation": 2_264, "test": 2_307}.items():
        dataset = load("caltech101_silhouettes", split, **kwargs)
        ((images[split], labels[split]),) = dataset.batch(size + 1).as_numpy_iterator()
        assert len(images[split]) == size
        assert set(labels[split]) == set(range(101))
    assert images["train"].mean() == pytest.approx(0.55, abs=0.01)
    seen = set(map(bytes, images["train"]))
    assert sum(bytes(image) in seen for image in images["test"]) == 11
