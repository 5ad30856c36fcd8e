"""What SECURITY.md promises of files from others: one test for each promise."""

import ast
import io
import json
import os
import pathlib
import pickle
import warnings

import h5py
import keras
import numpy as np
import pytest
from mutations import members_of, zipped
from same import refused
from small_models import compiled

import keras_rbm
from keras_rbm import CRBM, DBM, DBN, RBM, InfiniteRBM

pytestmark = pytest.mark.faults

ROOT = pathlib.Path(keras_rbm.__file__).parent
RUN_CODE = {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
EITHER = ValueError, TypeError


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


def rbm():
    return RBM(3, num_visible=4, seed=0)


def edited(path, edit=lambda members: {}):
    """Saves a model whose archive has the members that `edit(members)` returns, too."""
    model = compiled(rbm())
    model.save(path)
    contents = members_of(path.read_bytes())
    contents |= edit(contents)
    path.write_bytes(zipped(contents))
    return model


def with_config(path, edit):
    """Saves a model whose config `edit(config)` has changed."""

    def changed(contents):
        config = json.loads(contents["config.json"])
        return {"config.json": json.dumps(edit(config) or config)}

    edited(path, changed)


def is_refused(path, words):
    with refused(words, error=EITHER):
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


def function(module, name):
    return {"class_name": "function", "module": module, "config": name}


FOREIGN = {
    "a function": function("os", "mkdir"),
    "a class": {"class_name": "Popen", "module": "subprocess"},
    "a builtin": function("builtins", "eval"),
    "of Keras, no model part": function("keras.utils", "get_file"),
}


def place(part, name):
    return lambda config, foreign: config[part].update({name: foreign})


PLACES = {
    "the model": lambda config, foreign: foreign,
    "its initializer": place("config", "kernel_initializer"),
    "its units": place("config", "visible"),
    "its optimizer": place("compile_config", "optimizer"),
    "its rule": place("compile_config", "rule"),
}


@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_classes_are_refused(kind, at, tmp_path, mark):
    foreign = {"config": {"path": str(mark), "args": ["mkdir", str(mark)]}}
    foreign |= {"registered_name": None} | FOREIGN[kind]
    path = tmp_path / "model.keras"
    with_config(path, lambda config: PLACES[at](config, foreign))
    is_refused(path, ".")


def lambda_that_makes(mark):
    """Returns the config of a function that makes a folder."""
    path = str(mark)
    layer = keras.layers.Lambda(lambda x: os.mkdir(path) or x)
    return keras.saving.serialize_keras_object(layer)["config"]["function"]


def test_lambda_layers_are_refused(tmp_path, mark):
    path, value = tmp_path / "model.keras", lambda_that_makes(mark)
    double = keras.layers.Lambda(lambda x: 2 * x, output_shape=(3,))
    keras.Sequential([keras.Input((4,)), rbm(), double]).save(path)
    is_refused(path, "lambda")
    for put in PLACES.values():
        with_config(path, lambda config, put=put: put(config, value))
        is_refused(path, "lambda")


@pytest.mark.parametrize(
    "take",
    [
        keras_rbm.units.get,
        keras_rbm.rules.get,
        keras_rbm.inference.get,
        keras_rbm.rules.deserialize,
        lambda value: RBM.from_config({"hidden_units": 3, "visible": value}),
        lambda value: DBN.from_config({"rbms": [value]}),
        lambda value: RBM(3).compile_from_config({"optimizer": value}),
    ],
)
def test_lambdas_are_refused_in_all_that_takes_a_config(take, mark):
    with refused("lambda"):
        take(lambda_that_makes(mark))


@pytest.mark.parametrize("suffix", [".keras", ".weights.h5"])
def test_pickles_are_refused(suffix, tmp_path, mark):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(pickle.dumps(Bomb(mark)))
    load = keras.saving.load_model if suffix == ".keras" else rbm().load_weights
    with pytest.raises((OSError, ValueError)):
        load(path)


def test_pickles_inside_of_an_archive_are_refused(tmp_path, mark):
    path, file = tmp_path / "model.keras", io.BytesIO()
    np.savez(file, x=np.array([Bomb(mark)], object))
    edited(path)
    contents = members_of(path.read_bytes())
    del contents["model.weights.h5"]
    path.write_bytes(zipped(contents | {"model.weights.npz": file.getvalue()}))
    with pytest.raises(ValueError):
        keras.saving.load_model(path)


@pytest.mark.parametrize("name", ["../outside", "a/../../outside", "/{}/outside"])
def test_paths_outside_of_the_archive_are_refused(name, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    path, more = folder / "model.keras", {name.format(tmp_path): b"x"}
    model = edited(path, lambda contents: more | {"assets/fine": b"y"})
    with pytest.warns(UserWarning, match="Skipping invalid path"):
        loaded = keras.saving.load_model(path)
    np.testing.assert_array_equal(loaded.kernel, model.kernel)
    assert [file.name for file in tmp_path.rglob("*")] == ["models", "model.keras"]
    assert not pathlib.Path("outside").exists()


@pytest.mark.parametrize("kind", ["external link", "soft link", "external data"])
def test_weights_that_point_elsewhere_are_refused(kind, tmp_path):
    secret, raw = tmp_path / "secret.h5", tmp_path / "raw"
    with h5py.File(secret, "w") as file:
        file["kernel"] = np.full((4, 3), 7.0, "float32")
    raw.write_bytes(np.full((4, 3), 7.0, "float32").tobytes())
    path, model = tmp_path / "model.weights.h5", rbm()
    model.save_weights(path)
    with h5py.File(path, "r+") as file:
        group = file["vars"]
        del group["kernel"]
        if kind == "external link":
            group["kernel"] = h5py.ExternalLink(str(secret), "kernel")
        elif kind == "soft link":
            group["kernel"] = h5py.SoftLink("/vars/hidden_bias")
        else:
            parts = [(str(raw), 0, 48)]
            group.create_dataset("kernel", (4, 3), "float32", external=parts)
    with refused("Not allowed: H5 file with", model):
        model.load_weights(path)


@pytest.mark.parametrize("name", ["os", "../os", "keras_rbm.models", "digits.digits"])
def test_data_sets_are_imported_by_known_names_only(name):
    with refused("Expected the name of a data set"):
        keras_rbm.datasets.load(name)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RBM(3, num_visible=4, visible="gaussian"),
        lambda: CRBM(3, num_visible=4, num_features=4),
        lambda: DBM([3, 2], num_visible=4),
        lambda: DBN([rbm(), RBM(2)]),
        lambda: InfiniteRBM(3, num_visible=4),
    ],
)
def test_good_files_load_in_safe_mode(make, tmp_path):
    model, path = compiled(make()), tmp_path / "model.keras"
    model.save(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert type(keras.saving.load_model(path)) is type(model)
