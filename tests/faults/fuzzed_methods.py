"""Every public method of the models with good arguments, to be spoilt one by one."""

import numpy as np
import tensorflow as tf
from hostile import DATA, ROWS, WIDTH

import keras_rbm as kr

_ROWS = {"x": DATA}
_PAIR = {"x": DATA, "y": DATA}
_XV = {"x": DATA, "v": DATA}
ANNEAL = {"num_chains": 10, "precision": 9.0, "seed": 0}
_SAMPLE = {"steps": 2, "initial_visible": None, "seed": 0}
_GAPS = np.where(np.arange(WIDTH) < 2, DATA, np.nan)

#: Keras' part of these are its own matter: `verbose`, `callbacks`, loaders' workers.
_FIT = {
    "batch_size": 5,
    "epochs": 1,
    "validation_split": 0.0,
    "validation_data": None,
    "shuffle": True,
    "class_weight": None,
    "sample_weight": None,
    "initial_epoch": 0,
}
_COMPILE = {
    "optimizer": "sgd",
    "rule": "cd",
    "metrics": None,
    "run_eagerly": True,
    "steps_per_execution": 1,
    "jit_compile": False,
}
_UNCONDITIONAL = {
    "adapt": {"data": DATA},
    "build": {"input_shape": (None, WIDTH)},
    "compile": _COMPILE,
    "fit": _ROWS | _FIT,
    "evaluate": _ROWS | {"batch_size": 5, "sample_weight": None},
    "predict": _ROWS | {"batch_size": 5},
    "predict_on_batch": _ROWS,
    "train_on_batch": _ROWS | {"sample_weight": None},
    "test_on_batch": _ROWS | {"sample_weight": None},
    "reconstruct": _ROWS,
    "marginals": _ROWS | {"steps": 2, "seed": 0},
    "impute": _ROWS | {"method": "mean", "steps": 2, "seed": 0},
    "anneal": ANNEAL,
    "log_partition": {"method": "exact"} | ANNEAL,
    "sample": {"num_samples": 3} | _SAMPLE,
    "sample, clamped": {"num_samples": ROWS} | _SAMPLE | {"initial_visible": _GAPS},
    "save": {"filepath": "model.keras"},
    "save_weights": {"filepath": "model.weights.h5"},
    "export": {"filepath": "served"},
    "summary": {},
}
_GENERATIVE = _UNCONDITIONAL | {
    "free_energy": _ROWS,
    "pseudo_log_likelihood": _ROWS,
    "log_likelihood": _ROWS | {"log_partition": 3.0},
    "distribution": {"log_partition": "exact", "steps": 1},
}
_NEW = {
    "num_visible": WIDTH,
    "seed": 0,
    "kernel_initializer": None,
    "visible_bias_initializer": None,
    "kernel_regularizer": None,
}


def _without(calls, *names):
    return {name: arguments for name, arguments in calls.items() if name not in names}


_GREEDY = {"batch_size": 5, "epochs": 1, "validation_data": None}
_GREEDY |= {"sample_weight": None, "callbacks": None}
_PAIRS = {"fit": _PAIR | _FIT, "compile": _COMPILE}
_PAIRS["evaluate"] = _PAIR | {"batch_size": 5, "sample_weight": None}
for _name in ("train_on_batch", "test_on_batch"):
    _PAIRS[_name] = _PAIR | {"sample_weight": None}

#: Of each class the methods, and arguments that they take.
METHODS = {
    "RBM": _GENERATIVE
    | {"RBM": {"hidden_units": 3, "visible": "gaussian", "hidden": "bernoulli"} | _NEW},
    "CRBM": _without(
        _UNCONDITIONAL, "adapt", "anneal", "reconstruct", "sample, clamped", "marginals"
    )
    | _PAIRS
    | {
        "CRBM": {"hidden_units": 3, "inference": "mean_field", "num_features": WIDTH}
        | _NEW,
        "predict_map": _ROWS | {"batch_size": 5},
        "impute": _XV | {"method": "mean", "steps": 2, "seed": 0},
        "sample": _ROWS | _SAMPLE,
        "sample, clamped": _ROWS | _SAMPLE | {"initial_visible": _GAPS},
        "free_energy": _XV,
        "log_partition": _ROWS | {"method": "mean_field"} | ANNEAL,
        "log_likelihood": _XV | {"log_partition": "exact"},
    },
    "DBN": _without(
        _UNCONDITIONAL,
        "train_on_batch",
        "test_on_batch",
        "anneal",
        "log_partition",
        "compile",
        "impute",
        "marginals",
    )
    | {
        "DBN": {"rbms": [3, 2], "seed": 0},
        "compile": {"optimizer": "sgd", "rule": "cd"},
        "fit": _ROWS | _GREEDY,
        "pretrain": _ROWS | _GREEDY,
        "evaluate": _ROWS,
        "sample": {"num_samples": 3, "steps": 2, "seed": 0},
        "sample, clamped": {"num_samples": 3, "method": "tempering", "betas": 3}
        | {"steps": 2, "seed": 0},
        "log_likelihood_bound": _ROWS
        | {"log_partition": 3.0, "num_samples": 2, "seed": 0},
        "to_classifier": {"num_classes": 3, "dropout": 0.1},
    },
    "DBM": _UNCONDITIONAL
    | {
        "DBM": {"hidden_units": [3, 2], "inference": "mean_field"} | _NEW,
        "variational_free_energy": _ROWS,
        "log_likelihood_bound": _ROWS | {"log_partition": 3.0},
        "pretrain": _ROWS
        | {"optimizer": "sgd", "rule": "cd", "epochs": 1, "batch_size": 6},
        "to_classifier": {"num_classes": 3, "dropout": 0.1},
        "posterior": {"visible": tf.constant(DATA)},
    },
    "InfiniteRBM": _GENERATIVE
    | {
        "InfiniteRBM": {"max_hidden_units": 3, "num_visible": WIDTH, "seed": 0},
        "compile": {"optimizer": "sgd", "rule": "frank_wolfe", "jit_compile": "auto"},
        "insert_unit": {"weights": np.ones(WIDTH), "bias": 0.5},
        "to_rbm": {},
    },
}
#: What Keras or a rule calls, which hands over what it has made.
HOOKS = {
    "backbone", "call", "compile_from_config", "compute_metrics",
    "compute_output_shape", "conditional", "from_config", "from_rbm",
    "get_compile_config", "get_config",
    "hidden_units", "inference", "is_full", "kernel", "load_own_variables",
    "make_predict_function", "make_test_function",
    "make_train_function", "max_hidden_units", "potentials", "save_own_variables",
    "predict_step", "quantize", "test_step", "train_step",
}  # fmt: skip


def _compiled(model, **kwargs):
    model.compile("sgd", run_eagerly=True, jit_compile=False, **kwargs)
    return model


def _grown():
    model = kr.InfiniteRBM(4, num_visible=WIDTH, seed=0)
    rule = kr.rules.FrankWolfe(num_samples=20)
    model.insert_unit(np.ones(WIDTH), -1.0)
    return _compiled(model, rule=rule)


def _dbn():
    rbms = [kr.RBM(3, num_visible=WIDTH, seed=0), kr.RBM(2, seed=1)]
    dbn = kr.DBN(rbms)
    dbn.compile("sgd", run_eagerly=True, jit_compile=False)
    return dbn


MODELS = {
    "RBM": lambda: _compiled(kr.RBM(3, num_visible=WIDTH, seed=0), rule="pcd"),
    "CRBM": lambda: _compiled(
        kr.CRBM(
            3, num_visible=WIDTH, num_features=WIDTH, inference="mean_field", seed=0
        )
    ),
    "DBN": _dbn,
    "DBM": lambda: _compiled(kr.DBM([3, 2], num_visible=WIDTH, seed=0), rule="pcd"),
    "InfiniteRBM": _grown,
}


def _saved(name):
    def write():
        MODELS[name]().save_weights("saved.weights.h5")
        return "saved.weights.h5"

    return write


for _name, _methods in METHODS.items():
    _methods["load_weights"] = {"filepath": _saved(_name)}
