"""Every other public function with good arguments, to be spoilt one by one."""

import functools
import tempfile

import numpy as np
import tensorflow as tf
from fuzzed_methods import ANNEAL, MODELS
from hostile import DATA, ROWS, WIDTH

import keras_rbm as kr
from keras_rbm import inference


@functools.cache
def _potentials():
    rng = np.random.default_rng(0)
    shapes = (WIDTH, 3), (WIDTH,), (3,)
    values = (tf.constant(rng.normal(size=s), tf.float32) for s in shapes)
    return inference.Potentials(*values)


def _with(**arguments):
    return {"potentials": _potentials()} | arguments


_STATES = tf.constant(DATA)
_HIDDEN = tf.constant(DATA[:, :3])
_MESSAGES = {"max_iterations": 3, "weights": None, "pairwise": "mean"}
_DAMPED = _MESSAGES | {"tolerance": 1e-3, "damping": 0.0}
_TEMPERED = {"betas": 3, "steps": 5, "base": None, "initial_visible": None, "seed": 0}
_AIS = ANNEAL | {"base": None}

#: Functions of `keras_rbm.inference`, and arguments that they take.
INFERENCE = {
    "Potentials": {
        "kernel": np.zeros((WIDTH, 3), "float32"),
        "visible": [0.0] * WIDTH,
        "hidden": [0.0] * 3,
    },
    "annealed_importance_sampling": _with(**_AIS),
    "reverse_annealed_importance_sampling": _with(
        visible=_STATES, base=None, betas=5, seed=0
    ),
    "annealed_log_likelihood": _with(visible=_STATES, **_AIS),
    "tempered_log_partition": _with(num_chains=5, ancestors=None, **_TEMPERED),
    "parallel_tempering": _with(num_samples=5, adapt=0, clamp=None, **_TEMPERED),
    "find_starting_point": _with(base=None, chains=None, num_chains=10, seed=0),
    "anneal": _with(
        chains=None, steps=None, initial_visible=None, search=False, **_AIS
    ),
    "estimate_log_partition": _with(
        method="exact",
        chains=None,
        steps=None,
        initial_visible=None,
        search=True,
        **_AIS,
    ),
    "temperatures": {"betas": 3},
    "equalized_betas": {"betas": [0.0, 0.5, 1.0], "swap_rates": [0.4, 0.8]},
    "exact_log_partition": _with(),
    "exact_moments": _with(),
    "gibbs_chain": _with(visible=_STATES, seed=0, num_sweeps=2, clamp=None),
    "gibbs_sweep": _with(visible=_STATES, seed=0),
    "sample_hidden_given_visible": _with(visible=_STATES, seed=0),
    "sample_visible_given_hidden": _with(hidden=_HIDDEN, seed=0),
    "BeliefPropagation": {
        "method": "sum_product",
        "max_iterations": 3,
        "tolerance": 1e-3,
        "damping": 0.0,
    },
    "MeanField": {"max_iterations": 3, "tolerance": 1e-3, "damping": 0.0},
    "get": {"identifier": "exact"},
    "max_product": _with(**_DAMPED),
    "sum_product": _with(**_DAMPED),
    "mean_field": _with(**_DAMPED),
    "mixed_product": _with(**_MESSAGES),
    "conditional_moments": _with(visible=_STATES, weights=tf.fill([ROWS], 1 / ROWS)),
    "zero_sum_gauge": _with(),
    "effective_couplings": _with(visible=_STATES, weights=tf.ones(ROWS)),
    "contact_scores": {"couplings": np.eye(12), "num_units": 4},
    "pseudo_log_likelihood": _with(visible=_STATES),
    "reconstruction_log_likelihood": _with(visible=_STATES),
    "stochastic_pseudo_log_likelihood": _with(visible=_STATES, seed=0, observed=None),
}

#: What the functions return, not called by users.
RECORDS = {
    "Annealing", "Beliefs", "Exact", "Inference", "LogPartition",
    "METHODS", "Moments", "StartingPoint", "TemperedChains", "TemperedPath",
}  # fmt: skip


def _consumed(dataset):
    return list(dataset.take(2))


def _corrupted(corruption, dataset, **options):
    return _consumed(kr.datasets.corrupt(dataset, corruption, **options))


def _vectors():
    return tf.data.Dataset.from_tensor_slices(DATA)


def _loaded(**arguments):
    with tempfile.TemporaryDirectory() as folder:
        return _consumed(kr.datasets.load(data_dir=folder, **arguments))


def _metric(cls, threshold, y_true, y_pred, sample_weight):
    metric = cls(threshold)
    metric.update_state(y_true, y_pred, sample_weight)
    return float(metric.result())


_BATCHES = {"seed": 0, "iterations": None}
_METRIC = {"threshold": 0.5, "y_true": DATA, "y_pred": DATA, "sample_weight": None}

#: Other public functions: `(function, arguments)`; values that are functions are made.
OTHERS = {
    "datasets.binarize": (
        lambda **k: _consumed(kr.datasets.binarize(**k)),
        {"dataset": _vectors, "method": "sample", "redraw": True} | _BATCHES,
    ),
    "datasets.shuffled_batches": (
        lambda **k: _consumed(kr.datasets.shuffled_batches(**k)),
        {"data": DATA, "batch_size": 5, "seed": 0, "iterations": 0}
        | {"drop_remainder": False},
    ),
    "datasets.corrupt": (
        lambda **k: _corrupted(kr.datasets.flip(0.1), **k),
        {"dataset": _vectors} | {"redraw": False} | _BATCHES,
    ),
    "datasets.flip": (
        lambda probability: _corrupted(kr.datasets.flip(probability), _vectors()),
        {"probability": 0.1},
    ),
    "datasets.occlude": (
        lambda **k: _corrupted(kr.datasets.occlude(**k), _vectors()),
        {"size": 1, "value": 0.5, "image_shape": (2, 2)},
    ),
    "datasets.load": (
        _loaded,
        {"name": "shifting_bar", "split": "train", "binarize": None, "redraw": True}
        | {"seed": 0, "with_labels": False, "size": 5, "length": 1},
    ),
    "quality_report": (
        kr.quality_report,
        {"model": MODELS["RBM"], "train": DATA, "held_out": DATA}
        | {"steps": 2, "seed": 0},
    ),
    "score_report": (
        kr.score_report,
        {"model": MODELS["RBM"], "x": DATA, "v": None, "methods": ["exact"]}
        | {"num_chains": 10, "steps": 2, "seed": 0},
    ),
    "metrics.PixelError": (
        functools.partial(_metric, kr.metrics.PixelError),
        _METRIC,
    ),
    "InfiniteRBM.from_rbm": (
        kr.InfiniteRBM.from_rbm,
        {"rbm": lambda: kr.RBM(3, num_visible=WIDTH), "max_hidden_units": 4},
    ),
}
