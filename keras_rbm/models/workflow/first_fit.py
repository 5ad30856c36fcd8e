"""The start of the visible units when a model is fitted for the first time."""

import warnings

import keras
import numpy as np

from keras_rbm.models.workflow.rows import moments, row_chunks

#: Number of evenly spaced rows of an array from which the start is computed.
_ROWS = 10_000


def is_new(model):
    """Returns whether nothing has set or trained the visible units."""
    if not model.built:
        return True
    if model.grows or model.optimizer.iterations.numpy():
        return False
    known = not model.conditional and (
        model.examples_seen > 0.0 or np.any(model.base_rate != model._start_rate)
    )
    return not known and all(
        np.all(np.asarray(variable) == initializer((1,)))
        for variable, initializer in _variables(model).values()
    )


class FirstFit(keras.callbacks.Callback):
    """Starts a new model at the data, after all checks have passed.

    Args:
        batches: list of `(x, y, sample_weight)`, checked.
    """

    def __init__(self, batches):
        super().__init__()
        self._batches = batches

    def on_train_begin(self, logs=None):
        _start_at_data(self.model, self._batches)


def _start_at_data(model, batches):
    """Fits the isolated visible units of a new model to data, as `adapt` does.

    `examples_seen` does not change: it counts only the examples of training.
    """
    if model.grows or not model.trainable or not is_new(model):
        return
    chunks = [model.visible.encode(chunk) for chunk in _chunks(model, batches)]
    if not chunks:
        return
    doubts = [model.visible.doubt(rows) for rows in _chunks(model, batches)]
    if all(doubts):
        warnings.warn(
            f"Expected states of {model.visible!r}. Received: {doubts[0]}.",
            stacklevel=2,
        )
    mean, variance = moments(chunks)
    fitted = model.visible.fitted(mean, variance)
    for name, (variable, _) in _variables(model).items():
        if name in fitted:
            variable.assign(fitted[name])
    if not model.conditional:
        model.base_rate.assign(mean)
    model.rule.adapt(model)


def _variables(model):
    """Returns a dict of the visible units' variables to set, with their initializers.

    The bias is left out if the user has chosen its initializer.
    """
    made = {
        name: (getattr(model, f"visible_{name}"), initializer)
        for name, (initializer, _) in model.visible.variables().items()
    }
    if model.visible_bias_initializer is not None:
        del made["bias"]
    return made


def _chunks(model, batches):
    """Yields visible states, some rows at a time, without those of weight 0."""
    for x, y, weights in batches:
        visible = model._split_batch(x, y)[1]
        if weights is not None:
            visible = np.asarray(visible)[np.ravel(weights) > 0]
        if len(visible):
            yield from row_chunks(visible[:: max(1, len(visible) // _ROWS)])
