"""What many tests compare: weights, moments of samples, what is saved and restored."""

import contextlib

import numpy as np
import pytest

#: What is no positive int.
BAD_COUNTS = 0, -1, 1.5, 2.0, True, "3", None


def assert_equal(got, want, **tolerance):
    """Compares arrays in order, exactly or within a tolerance."""
    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        if tolerance:
            np.testing.assert_allclose(a, b, err_msg=str(index), **tolerance)
        else:
            np.testing.assert_array_equal(a, b, err_msg=str(index))


def assert_close(got, want, atol=1e-5, **tolerance):
    """Compares arrays by name."""
    assert set(got) == set(want)
    for name, value in want.items():
        np.testing.assert_allclose(
            got[name], value, atol=atol, err_msg=name, **tolerance
        )


def assert_same_weights(one, other, **tolerance):
    """Compares the weights of two models, exactly or within a tolerance."""
    assert_equal(one.weights, other.weights, **tolerance)


@contextlib.contextmanager
def unchanged(model):
    """Asserts that a block leaves the weights of a model as they are."""
    before = [weight.numpy() for weight in model.weights]
    yield
    assert_equal(model.weights, before)


def refused(model, call, word, error=ValueError):
    """Asserts that a call is refused before anything changes in a model."""
    with unchanged(model), pytest.raises(error, match=word):
        call()


def assert_mean(rows, expected, slack=0.0, errors=5.0):
    """Asserts that rows have a mean, within some of its own standard errors."""
    rows = np.asarray(rows)
    error = rows.std(0) / np.sqrt(len(rows))
    assert (abs(rows.mean(0) - np.asarray(expected)) < errors * error + slack).all()


def assert_moments(moments, expected, slack=1e-6):
    """Compares `Moments` of many chains with the means of v h', v and h."""
    v, h = moments.visible.bias.numpy(), moments.hidden.bias.numpy()
    products = v[:, :, None] * h[:, None, :]
    for rows, mean in zip((products, v, h), expected, strict=True):
        assert_mean(rows, mean, slack)
    np.testing.assert_allclose(moments.kernel, products.mean(0), rtol=1e-3, atol=1e-5)


def assert_restored(module, instance):
    """Returns what `serialize` and `deserialize` of a module make of an object."""
    again = module.deserialize(module.serialize(instance))
    assert type(again) is type(instance)
    assert again.get_config() == instance.get_config()
    return again
