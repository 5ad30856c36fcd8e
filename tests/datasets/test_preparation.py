"""Where data are looked for, and what is said when there are none."""

import numpy as np
import pytest
from tensorflow_datasets.core.download.download_manager import (
    NonMatchingChecksumError,
)

from keras_rbm.datasets import load, loading


@pytest.fixture
def no_network(monkeypatch):
    probed = []

    def can_connect(url):
        probed.append(url)
        return False

    monkeypatch.setattr(loading, "can_connect", can_connect)
    return probed


CALTECH = "caltech101_silhouettes"
TORONTO = "http://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/"
STORAGE = "https://storage.googleapis.com/cvdf-datasets/mnist/"


@pytest.mark.parametrize(
    ("name", "url", "file"),
    [
        (
            CALTECH,
            "https://people.cs.umass.edu/~marlin/data/",
            f"{CALTECH}_28_split1.mat",
        ),
        ("mnist", STORAGE, "train-images-idx3-ubyte.gz"),
        ("binarized_mnist", TORONTO, "binarized_mnist_test.amat"),
    ],
)
def test_no_network(name, url, file, no_network, tmp_path):
    """TFDS would try for more than three minutes before it gives up."""
    with pytest.raises(ConnectionError) as error:
        load(name, data_dir=tmp_path)
    for words in (f"{file}  from  {url}{file}", str(tmp_path), "manual_dir="):
        assert words in str(error.value)
    assert "KERAS_RBM_MANUAL_DIR" in str(error.value) and len(no_network) == 1


def test_the_probe_gives_up(monkeypatch):
    """An unreachable address: port 9 of this machine, where nothing listens."""
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    assert not loading.can_connect("http://127.0.0.1:9/file")


def test_a_manual_file_needs_no_network(no_network, dummy_data, tmp_path):
    """The made-up file is found, and then refused for its checksum."""
    with pytest.raises(NonMatchingChecksumError, match="has wrong checksum"):
        load(
            "caltech101_silhouettes",
            data_dir=tmp_path,
            manual_dir=dummy_data / "caltech101_silhouettes",
        )
    assert not no_network


def test_what_is_installed_is_prepared_in_silence(tmp_path, capfd):
    """TFDS printed 13 lines of a download for a set that comes with scikit-learn."""
    load("bars_and_stripes", data_dir=tmp_path)
    printed = capfd.readouterr()
    assert printed.out == "" and "ownloading" not in printed.err


@pytest.mark.parametrize("make_folder", [False, True])
def test_omniglot_says_how_to_get_its_file(make_folder, no_network, tmp_path):
    manual_dir = tmp_path if make_folder else None
    (tmp_path / "other.mat").touch()
    with pytest.raises(FileNotFoundError, match=r"iwae/raw/master.*chardata\.mat") as e:
        load("omniglot28", data_dir=tmp_path / "data", manual_dir=manual_dir)
    assert "KERAS_RBM_MANUAL_DIR" in str(e.value)
    assert not no_network


def test_a_prepared_copy_is_found_behind_an_empty_data_dir(tmp_path, monkeypatch):
    prepared, empty = tmp_path / "prepared", tmp_path / "empty"
    expected = [x.numpy() for x in load("shifting_bar", data_dir=prepared)]
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    found = [x.numpy() for x in load("shifting_bar", data_dir=empty)]
    np.testing.assert_array_equal(found, expected)
    assert not empty.exists()


def test_sets_are_prepared_in_the_first_writable_directory(tmp_path, monkeypatch):
    """A shared, read-only TFDS_DATA_DIR serves what it has; the rest goes home."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o555)
    monkeypatch.setenv("TFDS_DATA_DIR", str(shared))
    load("shifting_bar")
    assert not any(shared.iterdir())
    assert (tmp_path / "home/tensorflow_datasets/shifting_bar").is_dir()


def test_no_writable_directory(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o555)
    monkeypatch.setenv("HOME", str(shared))
    with pytest.raises(PermissionError, match="Pass data_dir= or set TFDS_DATA_DIR"):
        load("shifting_bar", data_dir=shared)
