"""`load`: one call from the name of a data set to a pipeline of vectors."""

import contextlib
import dataclasses
import importlib
import io
import os
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from keras_rbm.datasets import pipeline

MANUAL_DIR_VARIABLE = "KERAS_RBM_MANUAL_DIR"
PROBE_TIMEOUT = 5.0  # seconds


def prepared_builder(builder_cls, *, config=None, data_dir=None, manual_dir=None):
    """Returns a TFDS builder whose data are on disk.

    The copy may be in `data_dir`, in the folder named by the environment variable
    `TFDS_DATA_DIR` or in `~/tensorflow_datasets`. If there is none, the set is prepared
    in the first of these that can be written to.

    Args:
        builder_cls: subclass of `tfds.core.DatasetBuilder`.
        config: optional `tfds.core.BuilderConfig` or its name.
        data_dir: optional path of prepared data sets.
        manual_dir: optional path of a folder with source files downloaded by hand.
            Default: the environment variable `KERAS_RBM_MANUAL_DIR`, else
            `downloads/manual` in the data directory.

    Returns:
        `tfds.core.DatasetBuilder` that is ready for `as_dataset`.

    Raises:
        ConnectionError: if source files are missing and their host cannot be reached.
        FileNotFoundError: if the set must be downloaded by hand and no file is there.
        PermissionError: if the set must be prepared and no directory can be written to.
    """
    import tensorflow_datasets as tfds

    roots = _data_roots(data_dir)
    for root in roots:
        builder = builder_cls(data_dir=root, config=config)
        if (builder.data_path / "dataset_info.json").exists():
            return builder
    root = next((root for root in roots if _is_writable(root)), None)
    if root is None:
        raise PermissionError(
            f"Expected a writable directory to prepare {builder_cls.name!r} in. "
            f"Received: {', '.join(map(str, roots))}. Pass data_dir= or set "
            "TFDS_DATA_DIR to a folder that you may write to."
        )
    builder = builder_cls(data_dir=root, config=config)
    manual = pathlib.Path(
        manual_dir or os.environ.get(MANUAL_DIR_VARIABLE) or root / "downloads/manual"
    ).expanduser()
    _check_sources(builder, manual)
    options = tfds.download.DownloadConfig(
        manual_dir=manual, force_checksums_validation=True
    )
    with contextlib.ExitStack() as stack:
        is_downloaded = builder.url_infos or builder.MANUAL_DOWNLOAD_INSTRUCTIONS
        if not is_downloaded:  # TFDS speaks of a download nevertheless
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        builder.download_and_prepare(download_config=options)
    return builder


def can_connect(url):
    """Returns whether the host of `url` answers within `PROBE_TIMEOUT` seconds."""
    import requests  # As TFDS does, with the same proxies and certificates.

    try:
        requests.head(url, timeout=PROBE_TIMEOUT)
    except requests.RequestException:
        return False
    return True


def _data_roots(data_dir):
    candidates = [data_dir, os.environ.get("TFDS_DATA_DIR"), "~/tensorflow_datasets"]
    roots = [pathlib.Path(root).expanduser() for root in candidates if root]
    return list(dict.fromkeys(roots))


def _is_writable(root):
    existing = next(path for path in (root, *root.parents) if path.exists())
    # Check the mode too: os.access lets root write where the owner has forbidden it.
    writable = existing.stat().st_mode & 0o222 and os.access(existing, os.W_OK)
    return existing.is_dir() and bool(writable)


def _check_sources(builder, manual):
    """Raises an error at once where TFDS would try to download for minutes."""
    if builder.MANUAL_DOWNLOAD_INSTRUCTIONS:
        if not manual.is_dir() or not any(manual.iterdir()):
            raise FileNotFoundError(
                f"Expected the source file of {builder.name!r} in a manual folder. "
                f"Received: manual_dir={str(manual)!r}, missing or empty. "
                f"{' '.join(builder.MANUAL_DOWNLOAD_INSTRUCTIONS.split())}"
            )
        return
    missing = {
        url: info.filename or url.rpartition("/")[2]
        for url, info in (builder.url_infos or {}).items()
        if not info.filename or not (manual / info.filename).exists()
    }
    if missing and not can_connect(next(iter(missing))):
        sources = "".join(f"\n  {name}  from  {url}" for url, name in missing.items())
        raise ConnectionError(
            f"Expected a prepared copy of {builder.name!r}, its source files, or a "
            f"connection to download them. Received: no copy in data_dir="
            f"{str(builder.data_dir)!r}, no source files in manual_dir="
            f"{str(manual)!r}, no answer from the host. Where there is a connection, "
            f"download:{sources}\nSave them under these names in one folder, and pass "
            f"it as manual_dir= or set {MANUAL_DIR_VARIABLE} to it. Or copy a folder "
            f"that TFDS prepared and set TFDS_DATA_DIR to it."
        )


@dataclasses.dataclass(frozen=True)
class _Source:
    """What `load` knows about a data set before its builder is imported."""

    splits: tuple[str, ...]
    max_intensity: float
    has_labels: bool = False
    is_ours: bool = True
    options: tuple[str, ...] = ()


_ALL_SPLITS = ("train", "validation", "test")
_SOURCES = {
    "mnist": _Source(_ALL_SPLITS, 255, has_labels=True, is_ours=False),
    "binarized_mnist": _Source(_ALL_SPLITS, 1, is_ours=False),
    "caltech101_silhouettes": _Source(_ALL_SPLITS, 1, has_labels=True),
    "omniglot28": _Source(("train", "test"), 1, has_labels=True),
    "digits": _Source(_ALL_SPLITS, 16, has_labels=True),
    "bars_and_stripes": _Source(("train",), 1, options=("size",)),
    "shifting_bar": _Source(("train",), 1, options=("size", "length")),
}

_NUM_MNIST_TRAIN = 50_000
_MNIST_SPLIT_SEED = 0

# Examples binarized at once: ten times faster than one by one. The samples for a seed
# depend on this number.
_BLOCK_SIZE = 256


def load(
    name: str,
    split: str = "train",
    *,
    binarize: str | None = None,
    redraw: bool = True,
    seed: int = 0,
    with_labels: bool = False,
    as_numpy: bool = False,
    data_dir: str | os.PathLike | None = None,
    manual_dir: str | os.PathLike | None = None,
    **options: Any,
) -> Any:
    """Loads a split of a data set as flat vectors with values in [0, 1].

    | name | splits | values | labels |
    | --- | --- | --- | --- |
    | `mnist` | train 50,000, validation 10,000, test 10,000 | 784 intensities | 10 |
    | `binarized_mnist` | train 50,000, validation 10,000, test 10,000 | 784 bits | - |
    | `caltech101_silhouettes` | train 4,100, validation 2,264, test 2,307 | 784 bits, \
1 = background | 101 |
    | `omniglot28` | train 24,345, test 8,070 | 784 intensities | 50 alphabets |
    | `digits` | train 1,197, validation 300, test 300 | 64 intensities | 10 |
    | `bars_and_stripes` | train, `2 * 2**size` | `size**2` bits | - |
    | `shifting_bar` | train, `size` | `size` bits | - |

    `mnist` and `binarized_mnist` are TFDS's own. The 60,000 training images of MNIST,
    in the order of TFDS 3.0.1, are split by `numpy.random.RandomState(0)
    .permutation(60_000)`: the first 50,000 are `train`, the others `validation`, for
    any `seed`. `omniglot28` has been tested only with made-up files.

    The set is read from `data_dir`, from the folder named by the environment variable
    `TFDS_DATA_DIR` or from `~/tensorflow_datasets`, or prepared in the first of them
    that is writable. Source files in `manual_dir` replace the download; their checksums
    are verified like those of a download.

    Args:
        name: str, see above.
        split: str, see above.
        binarize: None for the values as they are, `"threshold"` for pixel > 127/255, or
            `"sample"` for pixel ~ Bernoulli(intensity); see `binarize`. To
            shuffle as well, binarize after `keras_rbm.datasets.shuffled_batches`.
        redraw: bool, whether `"sample"` draws again for every epoch. Pass False for
            validation and test data.
        seed: int, the key of the samples.
        with_labels: bool, whether elements are pairs of a vector and its class.
        as_numpy: bool, whether to return arrays, which are drawn once.
        data_dir: optional path of data sets prepared by TFDS.
        manual_dir: optional path of source files downloaded by hand. Default: the
            environment variable `KERAS_RBM_MANUAL_DIR`.
        **options: of the generated sets: `size=3` for `bars_and_stripes`, `size=9` and
            `length=1` for `shifting_bar`.

    Returns:
        `tf.data.Dataset` in a fixed order, of float32 vectors of shape `(V,)`, or of
        pairs of such a vector and an int64 scalar in `range(number of classes)`. Or an
        array (N, V), or a pair of it and one (N,).

    Raises:
        ValueError: if a name, split, method or option is unknown or does not fit the
            set.
        ConnectionError: if the set must be downloaded and the host cannot be reached.
        FileNotFoundError: if the source file of `omniglot28` is missing.
        ImportError: if a package that reads the source is missing.

    Example:
    ```python
    import keras_rbm as kr

    train = kr.datasets.load("digits", binarize="sample", seed=1).batch(100)
    test = kr.datasets.load("digits", "test", as_numpy=True)
    ```

    References:
        1. LeCun, Bottou, Bengio, Haffner. Gradient-based learning applied
           to document recognition. Proceedings of the IEEE, 1998.
        2. Larochelle, Murray. The neural autoregressive distribution estimator.
           AISTATS 2011.
        3. Marlin, Swersky, Chen, de Freitas. Inductive principles for
           restricted Boltzmann machine learning. AISTATS 2010.
        4. Burda, Grosse, Salakhutdinov. Importance weighted autoencoders. ICLR
           2016.
    """
    source = _check_request(name, split, binarize, with_labels, options)
    builder = _make_builder(name, source, options, data_dir, manual_dir)
    examples = _read(builder, name, split)
    images = examples["image"]
    vectors = images.reshape(len(images), -1).astype(np.float32)
    vectors /= np.float32(source.max_intensity)
    components = (vectors, examples["label"]) if with_labels else vectors
    dataset = tf.data.Dataset.from_tensor_slices(components)
    if binarize is not None:
        blocks = dataset.batch(_BLOCK_SIZE)
        blocks = pipeline.binarize(blocks, binarize, seed=seed, redraw=redraw)
        count = tf.data.experimental.assert_cardinality(len(vectors))
        dataset = blocks.unbatch().apply(count)
    if not as_numpy:
        return dataset
    arrays = dataset.batch(len(vectors)).get_single_element()
    return tf.nest.map_structure(lambda part: part.numpy(), arrays)


def _check_request(name, split, binarize, with_labels, options):
    if not isinstance(name, str) or name not in _SOURCES:
        raise ValueError(
            f"Expected the name of a data set among {sorted(_SOURCES)}. "
            f"Received: name={name!r}. For other sets use tfds.load."
        )
    source = _SOURCES[name]
    if not isinstance(split, str) or split not in source.splits:
        raise ValueError(
            f"Expected a split of {name!r} among {source.splits}. "
            f"Received: split={split!r}. For a part of a split use take and skip."
        )
    if with_labels and not source.has_labels:
        labeled = sorted(key for key, value in _SOURCES.items() if value.has_labels)
        raise ValueError(
            f"Expected a data set with labels, one of {labeled}. "
            f"Received: with_labels={with_labels} for name={name!r}. "
            "Leave with_labels out."
        )
    if unknown := sorted(set(options) - set(source.options)):
        raise ValueError(
            f"Expected options of {name!r} among {source.options}. "
            f"Received: {', '.join(f'{key}={options[key]!r}' for key in unknown)}. "
            "Leave them out."
        )
    if binarize is not None:
        pipeline.check_binarization_method(binarize)
    return source


def _make_builder(name, source, options, data_dir, manual_dir):
    import tensorflow_datasets as tfds

    if source.is_ours:
        builder_cls = importlib.import_module(f"keras_rbm.datasets.{name}").Builder
    else:
        builder_cls = tfds.builder_cls(name)
    return prepared_builder(
        builder_cls,
        config=builder_cls.make_config(**options) if source.options else None,
        data_dir=data_dir,
        manual_dir=manual_dir,
    )


def _read(builder, name, split):
    """Returns all examples of a split, as a dict of arrays."""
    import tensorflow_datasets as tfds

    stored = "train" if (name, split) == ("mnist", "validation") else split
    examples = tfds.as_numpy(builder.as_dataset(split=stored, batch_size=-1))
    if name != "mnist" or split == "test":
        return examples
    # RandomState, because NumPy has frozen its stream: the split will never change.
    order = np.random.RandomState(_MNIST_SPLIT_SEED).permutation(60_000)
    parts = {"train": order[:_NUM_MNIST_TRAIN], "validation": order[_NUM_MNIST_TRAIN:]}
    return {key: array[parts[split]] for key, array in examples.items()}
