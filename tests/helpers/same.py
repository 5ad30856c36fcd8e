"""What a model is, and that it stays so."""

import contextlib

import numpy as np
import pytest


def state(model):
    """Lists all that a step may change, as arrays: also chains, optimizer, seeds."""
    variables = []
    for part in getattr(model, "rbms", [model]):
        variables += part.variables
        for owner in ("learner", "optimizer"):
            variables += getattr(getattr(part, owner, None), "variables", [])
    return [np.array(variable) for variable in variables]


def assert_same(one, other, **tolerance):
    """Compares two models or two lists of arrays, by default bit for bit."""
    pair = [
        state(each) if hasattr(each, "variables") else each for each in (one, other)
    ]
    for a, b in zip(*pair, strict=True):
        if tolerance:
            np.testing.assert_allclose(a, b, **tolerance)
        else:
            np.testing.assert_array_equal(a, b)


@contextlib.contextmanager
def unchanged(*models):
    """Asserts that models are what they were before."""
    before = [state(model) for model in models]
    yield
    for model, values in zip(models, before, strict=True):
        assert_same(state(model), values)


@contextlib.contextmanager
def refused(words, *models, error=ValueError):
    """Asserts that an error has words, and that it leaves models as they were."""
    with unchanged(*models), pytest.raises(error, match=words):
        yield


def assert_descends(model, gradients, *data, **tolerance):
    """Asserts that one step by SGD(1) goes down given gradients of all variables."""
    before = [variable.numpy() for variable in model.trainable_variables]
    model.fit(*data, batch_size=len(data[0]), verbose=0)
    pairs = zip(before, model.trainable_variables, strict=True)
    steps = [old - variable.numpy() for old, variable in pairs]
    assert_same(steps, gradients, **tolerance)
