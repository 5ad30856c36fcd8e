"""A broken file gives a clear error, or exactly the model that was saved."""

import re
import warnings

import keras
import mutations
import numpy as np
import pytest
from forked import start
from killed_fit import DATA, state
from small_models import compiled, fitted as after_fit

from keras_rbm import CRBM, DBM, DBN, RBM, InfiniteRBM, rules

pytestmark = pytest.mark.faults

#: What no reader of a file is told by: errors in the code that reads it.
UNCLEAR = (AttributeError, IndexError, AssertionError, RecursionError, MemoryError)
#: Seconds that no file takes to be read.
LIMIT = 60.0


def _trained(model, rule=None):
    return compiled(model, keras.optimizers.Adam(0.01), rule=rule, jit_compile=False)


SIZES = {"num_visible": 6, "seed": 1}
MODELS = {
    "RBM": lambda: _trained(RBM(4, **SIZES), "pcd"),
    "CRBM": lambda: _trained(CRBM(4, num_features=6, inference="mean_field", **SIZES)),
    "DBM": lambda: _trained(DBM([4, 3], **SIZES), "pcd"),
    "InfiniteRBM": lambda: compiled(
        InfiniteRBM(4, **SIZES), rule=rules.FrankWolfe(num_samples=50)
    ),
    "DBN": lambda: _trained(DBN([RBM(4, **SIZES), RBM(3, seed=2)]), "pcd"),
}


def fitted(name, times=1):
    model = MODELS[name]()
    for _ in range(times):
        after_fit(model, *([DATA, DATA] if name == "CRBM" else [DATA]))
    return model


def everything(model):
    """Returns all that a file holds of a model: its config, and a dict of arrays."""
    found = {"config": re.sub(r"'name': '[^']*'", "", str(model.get_config()))}
    for number, part in enumerate(getattr(model, "rbms", [model])):
        found |= {f"{number} {key}": value for key, value in state(part).items()}
        found[f"{number} start"] = part.fit_state
        found[f"{number} rule"] = str(part.rule)
    return found


def differences(found, expected):
    """Returns the names of what is not the same, bit for bit."""
    return [
        name
        for name in found.keys() | expected.keys()
        if not np.array_equal(found.get(name), expected.get(name))
    ]


def complaint(error):
    """Returns what is wrong with an error, or `None`."""
    if isinstance(error, UNCLEAR) or len(str(error)) < 10:
        return f"an unclear {type(error).__name__}: {error}"
    return None


def outcome_of(read):
    """Returns what is wrong with how a file is read, whether it failed, and a model."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return None, False, read()
    except Exception as error:
        return complaint(error), True, None


def loaded(path, expected):
    """Loads a model; returns what is wrong with the outcome, or `None`."""
    wrong, failed, model = outcome_of(lambda: keras.saving.load_model(path))
    return wrong if failed else differences(everything(model), expected) or None


def weights_loaded(path, expected, target):
    """Loads weights into a model; returns what is wrong with the outcome, or `None`."""
    before = everything(target)
    wrong, failed, _ = outcome_of(lambda: target.load_weights(path))
    if failed:
        changed = differences(everything(target), before)
        return wrong or (changed and f"changed: {changed}") or None
    if path.suffix == ".h5":  # HDF5 has no checksum of numbers
        return None
    return differences(everything(target), expected) or None


class Files:
    """The file of a fitted model, that of another one, and how to break and read it."""

    def __init__(self, name, suffix, folder):
        self.path, self.suffix = folder / f"file{suffix}", suffix
        self.of_weights = suffix == ".weights.h5"
        model, other = fitted(name), fitted("DBM" if name == "RBM" else "RBM")
        self.expected = everything(model)
        self.data, self.other = (self._written(each) for each in (model, other))
        self.target = fitted(name, times=2)
        self.kinds = mutations.OF_WEIGHTS if self.of_weights else mutations.OF_MODELS

    def _written(self, model):
        (model.save_weights if self.of_weights else model.save)(self.path)
        return self.path.read_bytes()

    def outcome(self, number):
        """Breaks the file in a way that is a function of a number; returns a str."""
        rng = np.random.default_rng(number)
        kind = self.kinds[number % len(self.kinds)]
        # A new file each time: HDF5 goes on with one that an error has left open.
        self.path = self.path.with_name(f"{number}{self.suffix}")
        self.path.write_bytes(kind(self.data, rng, self.other))
        wrong = self._read()
        return wrong and f"{kind.__name__} {number}: {wrong}"

    def _read(self):
        wrong = weights_loaded(self.path, self.expected, self.target)
        return wrong or (not self.of_weights and loaded(self.path, self.expected))


@pytest.mark.parametrize("suffix", [".keras", ".weights.h5"])
def test_some_mutations(suffix, tmp_path):
    files = Files("RBM", suffix, tmp_path)
    wrong = [files.outcome(number) for number in range(len(files.kinds))]
    assert not any(wrong), [each for each in wrong if each]


def _read_many(pipe, name, suffix, folder, numbers):
    files = Files(name, suffix, folder)
    for number in numbers:
        pipe.send(files.outcome(number))
    pipe.send("end")


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.parametrize("suffix", [".keras", ".weights.h5"])
@pytest.mark.parametrize("name", MODELS)
def test_mutations(name, suffix, tmp_path):
    """In another process: one that hangs, or falls, would be an error, too."""
    numbers = range(100, 125)
    process, pipe = start(_read_many, name, suffix, tmp_path, numbers)
    wrong = []
    for number in numbers:
        assert pipe.poll(LIMIT), f"mutation {number} is not read within {LIMIT} s"
        wrong.append(pipe.recv())
    assert pipe.recv() == "end"
    process.join()
    assert not any(wrong), [each for each in wrong if each]


def test_weights_for_another_optimizer_still_load(tmp_path):
    model, path = fitted("RBM"), tmp_path / "file.weights.h5"
    model.save_weights(path)
    other = compiled(RBM(4, **SIZES), keras.optimizers.SGD(0.1), rule="pcd")
    with pytest.warns(UserWarning, match="Skipping variable loading for optimizer"):
        other.load_weights(path)
    np.testing.assert_array_equal(other.kernel, model.kernel)
    uncompiled = RBM(4, num_visible=6)
    uncompiled.load_weights(path)
    np.testing.assert_array_equal(uncompiled.kernel, model.kernel)
