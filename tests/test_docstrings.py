"""Runs the examples in the docstrings of all modules."""

import doctest
import importlib
import pkgutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rbm

#: Examples of more than a second. Tests of the same name call the same.
SLOW = {
    "keras_rbm.callbacks.likelihood",
    "keras_rbm.inference.annealing.both_ways",
    "keras_rbm.inference.annealing.replica_bridge",
    "keras_rbm.layers.rbm_prior",
    "keras_rbm.models.dbm",
    "keras_rbm.models.dbn",
    "keras_rbm.models.infinite_rbm",
    "keras_rbm.plots.estimates",
    "keras_rbm.rules.frank_wolfe",
    "keras_rbm._scoring",
    "keras_rbm.sklearn.crbm_classifier",
}


def _module_names():
    for module in pkgutil.walk_packages(keras_rbm.__path__, "keras_rbm."):
        if not module.name.endswith("_dataset_builder"):
            slow = pytest.mark.slow if module.name in SLOW else []
            yield pytest.param(module.name, marks=slow)


@pytest.mark.parametrize("name", [*_module_names()])
def test_examples(name):
    results = doctest.testmod(
        importlib.import_module(name),
        globs={"keras": keras, "keras_rbm": keras_rbm, "np": np, "tf": tf},
        optionflags=doctest.NORMALIZE_WHITESPACE,
    )
    assert not results.failed
