"""What SECURITY.md promises of files from others: one test for each promise."""

import ast
import io
import json
import os
import pathlib
import pickle
import warnings
import zipfile

import h5py
import keras
import numpy as np
import pytest

import keras_rbm
from keras_rbm import CRBM, DBM, DBN, RBM, InfiniteRBM

pytestmark = pytest.mark.faults

ROOT = pathlib.Path(keras_rbm.__file__).parent
RUN_CODE = {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def mark(tmp_path):
    """Returns a path that foreign code would make, and checks that none has run."""
    path = tmp_path / "it ran"
    yield path
    assert not path.exists()


def saved(path, model=None):
    model = model or RBM(3, num_visible=4, seed=0)
    if not model.compiled and not isinstance(model, DBN):
        model.compile()
    model.save(path)
    return model


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, contents):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def edited(path, edit):
    """Saves a model whose config `edit(config)` has changed."""
    saved(path)
    contents = members(path)
    config = json.loads(contents["config.json"])
    config = edit(config) or config
    write(path, contents | {"config.json": json.dumps(config)})


def is_refused(path, match):
    with pytest.raises((ValueError, TypeError), match=match):
        keras.saving.load_model(path)


def test_no_pickle_and_no_eval_in_the_package():
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {name.split(".")[0] for name in names} & RUN_CODE, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "__import__"}, path
            if isinstance(node, ast.keyword):
                assert node.arg not in {"allow_pickle", "safe_mode", "shell"}, path


FOREIGN = {
    "a function": {"class_name": "function", "module": "os", "config": "mkdir"},
    "a class": {"class_name": "Popen", "module": "subprocess"},
    "a builtin": {"class_name": "function", "module": "builtins", "config": "eval"},
    "of Keras, no model part": {
        "class_name": "function",
        "module": "keras.utils",
        "config": "get_file",
    },
}
PLACES = {
    "the model": lambda config, foreign: foreign,
    "its initializer": lambda config, foreign: config["config"].update(
        kernel_initializer=foreign
    ),
    "its units": lambda config, foreign: config["config"].update(visible=foreign),
    "its optimizer": lambda config, foreign: config["compile_config"].update(
        optimizer=foreign
    ),
    "its rule": lambda config, foreign: config["compile_config"].update(rule=foreign),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_classes_are_refused(kind, place, tmp_path, mark):
    foreign = {"config": {"path": str(mark), "args": ["mkdir", str(mark)]}}
    foreign |= {"registered_name": None} | FOREIGN[kind]
    path = tmp_path / "model.keras"
    edited(path, lambda config: PLACES[place](config, foreign))
    is_refused(path, ".")


def test_lambda_layers_are_refused(tmp_path, mark):
    path = str(mark)
    layer = keras.layers.Lambda(lambda x: os.mkdir(path) or x)
    model = keras.Sequential([keras.Input((4,)), RBM(3, num_visible=4)])
    model.add(keras.layers.Lambda(lambda x: 2 * x, output_shape=(3,)))
    model.save(tmp_path / "model.keras")
    is_refused(tmp_path / "model.keras", "lambda")
    value = keras.saving.serialize_keras_object(layer)["config"]["function"]
    for place in PLACES.values():
        path = tmp_path / "other.keras"
        edited(path, lambda config, place=place: place(config, value))
        is_refused(path, "lambda")


def test_lambdas_are_refused_in_all_that_takes_a_config(mark):
    path = str(mark)
    layer = keras.layers.Lambda(lambda x: os.mkdir(path))
    value = keras.saving.serialize_keras_object(layer)["config"]["function"]
    for take in (
        keras_rbm.units.get,
        keras_rbm.rules.get,
        keras_rbm.inference.get,
        keras_rbm.rules.deserialize,
        lambda value: RBM.from_config({"hidden_units": 3, "visible": value}),
        lambda value: DBN.from_config({"rbms": [value]}),
        lambda value: RBM(3).compile_from_config({"optimizer": value}),
    ):
        with pytest.raises(ValueError, match="lambda"):
            take(value)


@pytest.mark.parametrize("suffix", [".keras", ".weights.h5"])
def test_pickles_are_refused(suffix, tmp_path, mark):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises((OSError, ValueError)):
        if suffix == ".keras":
            keras.saving.load_model(path)
        else:
            RBM(3, num_visible=4).load_weights(path)


def test_pickles_inside_of_an_archive_are_refused(tmp_path, mark):
    path, file = tmp_path / "model.keras", io.BytesIO()
    np.savez(file, x=np.array([Bomb(mark)], object))
    saved(path)
    contents = members(path)
    del contents["model.weights.h5"]
    write(path, contents | {"model.weights.npz": file.getvalue()})
    with pytest.raises(ValueError):
        keras.saving.load_model(path)


@pytest.mark.parametrize("name", ["../outside", "a/../../outside", "/{}/outside"])
def test_paths_outside_of_the_archive_are_refused(name, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    path = folder / "model.keras"
    model = saved(path)
    name = name.format(tmp_path)
    write(path, members(path) | {name: b"x", "assets/fine": b"y"})
    with pytest.warns(UserWarning, match="Skipping invalid path"):
        loaded = keras.saving.load_model(path)
    np.testing.assert_array_equal(loaded.kernel, model.kernel)
    assert [file.name for file in tmp_path.rglob("*")] == ["models", "model.keras"]
    assert not pathlib.Path("outside").exists()


@pytest.mark.parametrize("kind", ["external link", "soft link", "external data"])
def test_weights_that_point_elsewhere_are_refused(kind, tmp_path):
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["kernel"] = np.full((4, 3), 7.0, "float32")
    (tmp_path / "raw").write_bytes(np.full((4, 3), 7.0, "float32").tobytes())
    path, model = tmp_path / "model.weights.h5", RBM(3, num_visible=4, seed=0)
    model.save_weights(path)
    with h5py.File(path, "r+") as file:
        group = file["vars"]
        del group["kernel"]
        if kind == "external link":
            group["kernel"] = h5py.ExternalLink(str(secret), "kernel")
        elif kind == "soft link":
            group["kernel"] = h5py.SoftLink("/vars/hidden_bias")
        else:
            raw = [(str(tmp_path / "raw"), 0, 48)]
            group.create_dataset("kernel", (4, 3), "float32", external=raw)
    before = np.array(model.kernel)
    with pytest.raises(ValueError, match="Not allowed: H5 file with"):
        model.load_weights(path)
    np.testing.assert_array_equal(model.kernel, before)


@pytest.mark.parametrize("name", ["os", "../os", "keras_rbm.models", "digits.digits"])
def test_data_sets_are_imported_by_known_names_only(name):
    with pytest.raises(ValueError, match="Expected the name of a data set"):
        keras_rbm.datasets.load(name)


def test_good_files_load_in_safe_mode(tmp_path):
    models = [
        RBM(3, num_visible=4, visible="gaussian"),
        CRBM(3, num_visible=4, num_features=4),
        DBM([3, 2], num_visible=4),
        DBN([RBM(3, num_visible=4), RBM(2)]),
        InfiniteRBM(3, num_visible=4),
    ]
    for model in models:
        path = tmp_path / f"{type(model).__name__}.keras"
        saved(path, model)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            assert type(keras.saving.load_model(path)) is type(model)
