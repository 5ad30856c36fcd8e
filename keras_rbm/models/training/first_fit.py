"""The start of the visible units when a model is fitted for the first time."""

import warnings
from typing import Any

import keras
import numpy as np

from keras_rbm.models.data.rows import moments, row_chunks, some_rows
from keras_rbm.models.layer_variables import layer_parameters
from keras_rbm.models.training.resume import gradients_given

#: Number of rows of an array from which the start is computed, random ones.
_ROWS = 10_000


def is_new(model: keras.Model) -> bool:
    """Returns whether nothing has set or trained the visible units."""
    if not model.built:
        return True
    if gradients_given(model.optimizer):
        return False
    units = _variables(model).values()
    untouched = all(np.all(np.asarray(own) == start((1,))) for own, start in units)
    return not model._knows_data() and untouched and not _has_set_kernel(model)


def _has_set_kernel(model):
    """Returns whether a kernel is larger than what its initializer draws."""
    draw = getattr(model, "_kernel_initializer", None)
    if draw is None:
        return False
    drawn = draw(model.kernel.shape, dtype=model.kernel.dtype)
    largest, own = (np.abs(values).max(initial=0.0) for values in (drawn, model.kernel))
    return own > 2.0 * largest


class FirstFit(keras.callbacks.Callback):
    """Starts a new model at the data, after all checks have passed.

    Args:
        batches: list of `(x, y, sample_weight)`, checked.
    """

    def __init__(self, batches: list[Any]) -> None:
        super().__init__()
        self._batches = batches

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        _start_at_data(self.model, self._batches)


def _start_at_data(model, batches):
    """Fits the isolated visible units of a new model to data, as `adapt` does.

    The count of the examples that were seen does not change: it is of training.
    """
    if not model.trainable or not is_new(model):
        return
    unit, chunks, weights = model.visible, *_chunks(model, batches)
    if not chunks:
        return
    warned = [unit.data_warning(rows) for rows in chunks]
    if all(warned):
        warnings.warn(
            f"Expected states of {model.visible!r}. Received: {warned[0]}.",
            stacklevel=2,
        )
    mean, variance = moments(map(unit.encode, chunks), weights)
    fitted = unit.fitted(mean, variance)
    variables = _variables(model)
    free = [name for name in fitted if name in variables]
    for name in free:
        variables[name][0].assign(fitted[name])
    if "bias" in free and len(free) < len(fitted):  # some are frozen: it suits them
        parameters = layer_parameters(model, "visible_{}", unit)
        variables["bias"][0].assign(parameters.natural_for_mean(mean))
    model._set_data_mean(mean)
    model._learner.recenter()


def _variables(model):
    """Returns a dict of the visible units' variables to set, with their initializers.

    The bias is left out if the user has chosen its initializer, and so are variables
    that the user has frozen.
    """
    made = {}
    for name, (initializer, trainable) in model.visible.variables().items():
        variable = getattr(model, f"visible_{name}")
        if variable.trainable or not trainable:
            made[name] = variable, initializer
    if model._visible_bias_initializer is not None:
        made.pop("bias", None)
    return made


def _chunks(model, batches):
    """Returns lists of visible states, some rows at a time, and of their weights.

    Rows of weight 0 are left out.
    """
    chunks, weights = [], []
    for x, y, given in batches:
        visible = model._form.split(x, y)[1]
        own = np.ones(len(visible)) if given is None else np.ravel(given)
        if not own.all():
            visible = np.asarray(visible)[own > 0.0]
        own = own[own > 0.0]
        if not len(own):
            continue
        parts = list(row_chunks(some_rows(visible, _ROWS)))
        chunks += parts
        ends = np.cumsum([len(part) for part in parts])
        weights += np.split(some_rows(own, _ROWS), ends[:-1])
    return chunks, weights
