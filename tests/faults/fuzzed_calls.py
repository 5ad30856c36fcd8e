"""Every public method and function with good arguments, to be spoilt one by one.

What they take is read from their signatures; only values without a default, and some
of those that take long, are listed here.
"""

import functools
import inspect

import numpy as np
import tensorflow as tf
from hostile import DATA, ROWS, WIDTH
from small_models import compiled

import keras_rbm as kr
from keras_rbm import inference

_EAGER = {"run_eagerly": True, "jit_compile": False}
_GAPS = np.where(np.arange(WIDTH) < 2, DATA, np.nan)


def _rbm():
    return kr.RBM(3, num_visible=WIDTH, seed=0)


def _crbm():
    sizes = {"num_visible": WIDTH, "num_features": WIDTH}
    return compiled(
        kr.CRBM(3, inference="mean_field", seed=0, **sizes), "sgd", **_EAGER
    )


def _dbm():
    dbm = kr.DBM([3, 2], num_visible=WIDTH, seed=0)
    return compiled(dbm, "sgd", rule="pcd", **_EAGER)


def _grown():
    model = kr.InfiniteRBM(4, num_visible=WIDTH, seed=0)
    model.insert_unit(np.ones(WIDTH), -1.0)
    rule = kr.rules.FrankWolfe(num_samples=20)
    return compiled(model, "sgd", rule=rule, **_EAGER)


MODELS = {
    "RBM": lambda: compiled(_rbm(), "sgd", rule="pcd", **_EAGER),
    "CRBM": _crbm,
    "DBN": lambda: compiled(kr.DBN([_rbm(), kr.RBM(2, seed=1)]), "sgd", **_EAGER),
    "DBM": _dbm,
    "InfiniteRBM": _grown,
}

#: What Keras or a rule calls, which hands over what it has made.
HOOKS = {
    "call", "compile_from_config", "compute_metrics", "compute_output_shape",
    "from_config", "from_rbm", "get_compile_config", "get_config",
    "load_own_variables", "make_predict_function", "make_test_function",
    "make_train_function", "potentials", "save_own_variables", "predict_step",
    "quantize", "test_step", "train_step",
}  # fmt: skip
#: What is Keras' own matter, and what is passed by the library itself.
LEFT_OUT = {
    "self", "verbose", "callbacks", "loss", "format", "overwrite", "zipped",
    "max_shard_size", "line_length", "positions", "print_fn", "dtype", "data_dir",
    "manual_dir", "known", "hidden_natural", "starts",
}  # fmt: skip


def _vectors():
    return tf.data.Dataset.from_tensor_slices(DATA)


@functools.cache
def _potentials():
    rng = np.random.default_rng(0)
    shapes = (WIDTH, 3), (WIDTH,), (3,)
    values = (tf.constant(rng.normal(size=s), tf.float32) for s in shapes)
    return inference.Potentials(*values)


#: Good values by the name of an argument; functions make one.
GOOD = {
    "x": DATA, "v": DATA, "data": DATA, "train": DATA, "held_out": DATA,
    "visible": tf.constant(DATA), "hidden": tf.constant(DATA[:, :3]),
    "weights": tf.fill([ROWS], 1 / ROWS), "couplings": np.eye(12), "num_units": 4,
    "potentials": _potentials, "model": MODELS["RBM"], "dataset": _vectors,
    "input_shape": (None, WIDTH), "num_samples": 3, "num_classes": 3, "num_sweeps": 2,
    "hidden_units": 3, "max_hidden_units": 4, "rbms": [3, 2], "rbm": _rbm,
    "bias": 0.5, "identifier": "exact", "probability": 0.1, "batch_size": 5, "seed": 0,
    "log_partition": 3.0, "num_visible": WIDTH,
}  # fmt: skip
#: Those of them that are better than the default.
BETTER = {"x", "batch_size", "log_partition", "num_visible", "seed"}
#: Where other values are good.
SPECIAL = {
    "DBM": {"hidden_units": [3, 2]},
    "CRBM.log_partition": {"method": "mean_field"},
    "CRBM.log_likelihood": {"log_partition": "exact"},
    "InfiniteRBM.insert_unit": {"weights": np.ones(WIDTH)},
    "inference.Potentials": {
        "kernel": np.zeros((WIDTH, 3), "float32"),
        "visible": [0.0] * WIDTH,
        "hidden": [0.0] * 3,
    },
    "inference.temper": {"num_chains": 10},
    "score_report": {"methods": ["exact"]},
    "datasets.load": {"name": "shifting_bar", "size": 5, "length": 1},
    "datasets.binarize": {"method": "sample"},
    "datasets.shuffled_batches": {"iterations": 0},
    "datasets.corrupt": {"corruption": lambda: kr.datasets.flip(0.1)},
    "datasets.occlude": {"size": 1, "value": 0.5, "image_shape": (2, 2)},
}
for _name in MODELS:
    SPECIAL[f"{_name}.save"] = {"filepath": "model.keras"}
    SPECIAL[f"{_name}.save_weights"] = {"filepath": "model.weights.h5"}
    SPECIAL[f"{_name}.export"] = {"filepath": "served"}
    SPECIAL[f"{_name}.distribution"] = {"log_partition": "exact"}
for _name in ("fit", "evaluate", "train_on_batch", "test_on_batch"):
    SPECIAL[f"CRBM.{_name}"] = {"y": DATA}
#: A second call of a method, of other good values.
AGAIN = {
    f"{name}.sample, clamped": {"num_samples": ROWS, "initial_visible": _GAPS}
    for name in ("RBM", "DBM", "InfiniteRBM")
} | {
    "CRBM.sample, clamped": {"initial_visible": _GAPS},
    "DBN.sample, tempered": {"method": "tempering", "betas": 3},
}


_REST = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


def _saved(name):
    def write():
        MODELS[name]().save_weights("saved.weights.h5")
        return "saved.weights.h5"

    return write


def _good(call, name, default):
    """Returns a good value of an argument of a call."""
    if name in SPECIAL.get(call, {}):
        return SPECIAL[call][name]
    if name == "filepath":
        return _saved(call.partition(".")[0])
    if name == "method" and default is None:
        return "exact"
    if default is inspect.Parameter.empty or name in BETTER:
        return GOOD[name]
    is_large = type(default) is int and default > 5
    return 5 if is_large else default


def _arguments(call, *functions):
    """Returns good arguments of a function, with those of others it hands on to."""
    found = {}
    for function in functions:
        parameters = inspect.signature(function).parameters.values()
        for parameter in parameters:
            name, is_rest = parameter.name, parameter.kind in _REST
            if not is_rest and name not in LEFT_OUT | found.keys():
                found[name] = _good(call, name, parameter.default)
        if all(parameter.kind != _REST[1] for parameter in parameters):
            break
    return found | SPECIAL.get(call, {}) | AGAIN.get(call, {})


def _methods(name):
    """Yields calls of a model's methods as `(name, (model, method, arguments))`."""
    cls = getattr(kr, name)
    yield name, (name, name, _arguments(name, cls))
    bases = [base for base in cls.__mro__ if base.__module__.startswith("keras_rbm")]
    public = {key for base in bases for key in vars(base) if not key.startswith("_")}
    public |= {call.partition(".")[2] for call in AGAIN if call.startswith(f"{name}.")}
    for key in sorted(public - HOOKS):
        method = key.partition(",")[0]
        own = [vars(base)[method] for base in bases if method in vars(base)]
        if inspect.isfunction(own[0]):
            if (name, method) == ("DBN", "fit"):
                own.append(cls.pretrain)
            call = f"{name}.{key}"
            yield call, (name, method, _arguments(call, *own))


def _pixel_error(threshold=0.5, y_true=DATA, y_pred=DATA, sample_weight=None):
    metric = kr.metrics.PixelError(threshold)
    metric.update_state(y_true, y_pred, sample_weight)
    return float(metric.result())


#: What functions of `keras_rbm.inference` return, not called by users.
RECORDS = {
    "Annealing", "Beliefs", "BlockGibbs", "Exact", "Inference", "LogPartition",
    "Moments", "TemperedChains",
}  # fmt: skip
_DATASETS = "binarize", "shuffled_batches", "corrupt", "flip", "occlude"
FUNCTIONS = {f"datasets.{name}": getattr(kr.datasets, name) for name in _DATASETS} | {
    "datasets.load": functools.partial(kr.datasets.load, data_dir="data"),
    "quality_report": kr.quality_report,
    "score_report": kr.score_report,
    "metrics.PixelError": _pixel_error,
    "InfiniteRBM.from_rbm": kr.InfiniteRBM.from_rbm,
}
FUNCTIONS |= {
    f"inference.{name}": getattr(inference, name)
    for name in dir(inference)
    if name[0] != "_" and name not in RECORDS and callable(getattr(inference, name))
}

#: A dict of name to `(model or None, method or function, arguments)`.
CALLS = {call: parts for name in MODELS for call, parts in _methods(name)}
CALLS |= {
    name: (None, function, _arguments(name, function))
    for name, function in FUNCTIONS.items()
}


def used(result):
    """Uses what a call returns, where it has not done its work yet."""
    if callable(result) and type(result).__name__ == "function":
        result = kr.datasets.corrupt(_vectors(), result)
    if isinstance(result, tf.data.Dataset):
        list(result.take(2))
