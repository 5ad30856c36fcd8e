"""Arguments of models that are given in the wrong place, or by another's name."""

import inspect
import json

import keras
import numpy as np
import pytest

import keras_rbm


def test_signatures_are_those_that_are_documented():
    assert [*inspect.signature(keras_rbm.RBM).parameters][:2] == [
        "hidden_units",
        "visible",
    ]
    assert "rule" in inspect.signature(keras_rbm.RBM.compile).parameters


def test_a_subclass_has_arguments_of_its_own():
    class Named(keras_rbm.RBM):
        def __init__(self, width, seed):
            super().__init__(width, seed=seed)

    assert Named(3, 4).seed == 4
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Named(3)


def test_quantize_is_refused_as_by_other_layers():
    rbm = keras_rbm.RBM(8, num_visible=6)
    with pytest.raises(NotImplementedError, match="quantize"):
        rbm.quantize("int8")
    network = keras.Sequential([keras.Input((6,)), rbm, keras.layers.Dense(2)])
    with pytest.warns(UserWarning, match="quantize"):
        network.quantize("int8")


def test_an_estimate_of_one_model_is_a_number():
    rbm = keras_rbm.RBM(3, num_visible=4, seed=0)
    z = rbm.log_partition("ais", num_chains=12)
    assert json.loads(json.dumps(z.upper)) == z.upper
    assert json.dumps(z.is_finite) == "true"
    assert round(z.value, 2) == np.round(z.value, 2) and f"{z.lower:.1f}"


def test_a_rule_in_the_place_of_a_loss():
    for rule in ("cd", keras_rbm.rules.MaximumLikelihood()):
        with pytest.raises(ValueError, match="which is a learning rule"):
            keras_rbm.CRBM(8).compile("adam", rule)
