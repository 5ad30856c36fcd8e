"""The start of the visible units when a model is fitted for the first time."""

import warnings

import keras
import numpy as np

from keras_rbm.models.data.rows import (
    as_rows,
    chosen_rows,
    encoded,
    moments,
    parts_of_rows,
    some_rows,
)
from keras_rbm.models.layer_variables import layer_parameters
from keras_rbm.models.training.logistic_start import (
    chosen_stddev,
    logistic_regressions,
    most_rows,
)
from keras_rbm.models.training.progress import is_open, set_prior, updates_of
from keras_rbm.regularizers.normal_prior import NormalPrior
from keras_rbm.units.bernoulli import are_binary

#: Number of rows of an array from which the start is computed, random ones.
_ROWS = 10_000


def is_new(model):
    """Returns whether nothing has set or trained the visible units."""
    if not model.built:
        return True
    if updates_of(model.optimizer):
        return False
    units = _variables(model).values()
    untouched = all(np.all(np.asarray(own) == start((1,))) for own, start in units)
    knows_data = not model.conditional and model._knows_data()
    return untouched and not knows_data and not _has_set_kernel(model)


def _has_set_kernel(model):
    """Returns whether a kernel is larger than what its initializer draws."""
    names = {"kernel": "_kernel_initializer", "visible_kernel": "_feature_initializer"}
    for name, initializer in names.items():
        kernel, draw = getattr(model, name, None), getattr(model, initializer, None)
        if kernel is None or draw is None:
            continue
        drawn = draw(kernel.shape, dtype=kernel.dtype)
        largest, own = (np.abs(values).max(initial=0.0) for values in (drawn, kernel))
        if own > 2.0 * largest:
            return True
    return False


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

    The count of the examples that were seen does not change: it is of training.
    """
    if not model.trainable or not is_new(model):
        return
    unit, chunks, weights = model.visible, *_chunks(model, batches)
    if not chunks:
        return
    warned = [unit.data_warning(as_rows(rows)) for rows in chunks]
    if all(warned):
        warnings.warn(
            f"Expected states of {model.visible!r}. Received: {warned[0]}.",
            stacklevel=2,
        )
    rows = (encoded(unit, as_rows(chunk)) for chunk in chunks)
    mean, variance = moments(zip(rows, weights, strict=True), model.gaps.pooled(unit))
    fitted = unit.fitted(mean, variance)
    variables = _variables(model)
    free = [name for name in fitted if name in variables]
    regressions = None
    if model.conditional and "bias" in free and are_binary(unit):
        regressions = _regressions(model, batches)
    for name in free:
        variables[name][0].assign(fitted[name])
    if "bias" in free and len(free) < len(fitted):  # some are frozen: it suits them
        parameters = layer_parameters(model, "visible_{}", unit)
        variables["bias"][0].assign(parameters.natural_for_mean(mean))
    if not model.conditional:
        model.base_rate.assign(mean)
    if regressions is not None:
        model.visible_kernel.assign(regressions[0])
        model.visible_bias.assign(regressions[1])
    model.learner.recenter()


def _regressions(model, batches):
    """Returns the visible side of a new CRBM as logistic regressions, or `None`.

    They are its weights and biases, if these are free and not too many. Chooses the
    deviation of a prior that the user has left to the model.
    """
    kernel = model.visible_kernel
    if not (model._starts_at_regressions and kernel.trainable):
        return None
    counts = [np.ones(len(y)) if w is None else np.ravel(w) for _, y, w in batches]
    rows = sum(np.count_nonzero(each) for each in counts)
    few = most_rows(*kernel.shape)
    if not few:
        return None
    share = _ROWS / rows if is_open(model) else min(_ROWS, few) / rows
    parts = []
    for (x, y, _), weights in zip(batches, counts, strict=True):
        chosen = np.flatnonzero(weights)
        chosen = some_rows(chosen, max(1, int(share * len(chosen))))
        x, y = model.form.split(x, y)
        chosen_parts = (chosen_rows(part, chosen) for part in (x, y, weights))
        parts.append([*map(np.asarray, chosen_parts)])
    x, y, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.random.default_rng(0).permutation(len(x))
    x, y, weights = x[order], y[order], weights[order]
    prior = kernel.regularizer
    if not isinstance(prior, NormalPrior):
        prior = NormalPrior()
    if is_open(model):
        stddev = chosen_stddev(x, y, weights, prior.stddev)
        set_prior(model, model.fit_state._replace(stddev=stddev))
    x, y, weights = x[:few], y[:few], weights[:few]
    found = logistic_regressions(x, y, weights, 1.0 / (prior.stddev**2 * len(x)))
    return found if all(np.isfinite(part).all() for part in found) else None


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
        visible = model.form.split(x, y)[1]
        own = np.ones(len(visible)) if given is None else np.ravel(given)
        if not own.all():
            visible = chosen_rows(visible, np.flatnonzero(own > 0.0))
        own = own[own > 0.0]
        if not len(own):
            continue
        width = model.visible.num_rows(visible.shape[1])
        parts = list(parts_of_rows(some_rows(visible, _ROWS), width))
        chunks += parts
        ends = np.cumsum([part.shape[0] for part in parts])
        weights += np.split(some_rows(own, _ROWS), ends[:-1])
    return chunks, weights
