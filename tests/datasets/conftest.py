"""Where the tests of data sets find, and put, data."""

import pathlib

import pytest

DUMMY_DATA = pathlib.Path(__file__).parent / "dummy_data"


@pytest.fixture(autouse=True)
def isolated_directories(tmp_path, monkeypatch):
    """Keeps the user's home and settings out of the tests."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TFDS_DATA_DIR", raising=False)
    monkeypatch.delenv("KERAS_RBM_MANUAL_DIR", raising=False)


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """A folder in which the session prepares its sets once."""
    return tmp_path_factory.mktemp("tensorflow_datasets")


@pytest.fixture
def dummy_data():
    """Made-up source files, one folder for each builder that reads a file."""
    return DUMMY_DATA
