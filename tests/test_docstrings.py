"""Runs the examples in the docstrings of all modules."""

import doctest
import importlib
import pkgutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rbm


def _module_names():
    for module in pkgutil.walk_packages(keras_rbm.__path__, "keras_rbm."):
        if not module.name.endswith("_dataset_builder"):
            yield module.name


@pytest.mark.parametrize("name", sorted(_module_names()))
def test_examples(name):
    results = doctest.testmod(
        importlib.import_module(name),
        globs={"keras": keras, "keras_rbm": keras_rbm, "np": np, "tf": tf},
        optionflags=doctest.NORMALIZE_WHITESPACE,
    )
    assert not results.failed
