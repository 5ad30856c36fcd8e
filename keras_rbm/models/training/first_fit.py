"""What a first fit starts from: fitted visible units, and regressions on features."""

import warnings

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.models.data.rows import (
    as_rows,
    chosen_rows,
    encoded,
    moments,
    parts_of_rows,
    some_rows,
)
from keras_rbm.models.layer_variables import layer_parameters, visible_parameters
from keras_rbm.models.training.defaults import choose_rate, open_rate, settle_rate
from keras_rbm.models.training.pair_start import (
    has_two_states,
    start_at_pairs,
    states_of,
)
from keras_rbm.models.training.progress import (
    is_open,
    set_prior,
    updates_of,
)
from keras_rbm.models.training.regressions import chosen_stddev, most_rows, parts_of
from keras_rbm.regularizers import NormalPrior

#: Number of rows of an array from which the start is computed, random ones.
_ROWS = 10_000
#: Fewest columns, or all, for which a rate is chosen: higher ones lose sharp rules.
_FEWEST_VARYING = 110


def is_new(model):
    """Returns whether nothing has set or trained the visible units."""
    if not model.built:
        return True
    if updates_of(model.optimizer):
        return False
    units = _variables(model).values()
    untouched = all(np.all(np.asarray(value) == start((1,))) for value, start in units)
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
        largest, size = (np.abs(values).max(initial=0.0) for values in (drawn, kernel))
        if size > 2.0 * largest:
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
        settle_rate(self.model)
        _start_at_data(self.model, self._batches)


def choose_rate_for(model, batches):
    """Sets the rate of a model that has not been trained, see `choose_rate`.

    Where columns are nearly constant, a step of Adam moves the input of a hidden unit
    less than their number says: each counts by its variance, and a fair coin as 1.

    Args:
        model: a model with a rule and an optimizer.
        batches: list of `(x, y, sample_weight)`, the first or all.
    """
    unit = model.visible
    if open_rate(model) is None or model.conditional or not has_two_states(unit):
        return
    if updates_of(model.optimizer):
        return
    mean = np.asarray(model.base_rate)
    if not model._knows_data():
        chunks, weights = _chunks(model, batches)
        if not chunks:
            return
        mean, _ = _moments(model, chunks, weights)
    low, width = states_of(unit)
    on = (mean - low) / width
    varying = 4.0 * float(np.sum(on * (1.0 - on)))
    choose_rate(model, max(varying, min(len(on), _FEWEST_VARYING)))


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
    mean, variance = _moments(model, chunks, weights)
    fitted = unit.fitted(mean, variance)
    variables = _variables(model)
    free = [name for name in fitted if name in variables]
    for name in free:
        variables[name][0].assign(fitted[name])
    if "bias" in free and len(free) < len(fitted):  # some are frozen: it suits them
        parameters = visible_parameters(model)
        variables["bias"][0].assign(parameters.natural_for_mean(mean))
    if not model.conditional:
        model.base_rate.assign(mean)
    elif len(free) == len(fitted):
        _start_at_regressions(model, batches)
    start_at_pairs(model, chunks, weights)
    model.learner.recenter(tf.constant(mean, tf.float32) if model.conditional else None)


def _start_at_regressions(model, batches):
    """Sets the visible side of a new CRBM to regressions on the features.

    That is, if its weights are free and not too many. Chooses the deviation of a prior
    that the user has left to the model.
    """
    kernel, parts = model.visible_kernel, parts_of(model.visible, model.num_visible)
    if not (parts and model.backbone is None and kernel.trainable):
        return
    few = most_rows(*kernel.shape)
    if not few:
        return
    x, y, weights = _some_pairs(model, batches, few)
    prior = kernel.regularizer
    if not isinstance(prior, NormalPrior):
        prior = NormalPrior()
    if is_open(model):
        stddev = chosen_stddev(x, y, weights, prior.stddev, parts)
        set_prior(model, model.fit_state._replace(stddev=stddev))
    x, y, weights = x[:few], y[:few], weights[:few]
    penalty = 1.0 / (prior.stddev**2 * len(x))
    for part in parts:
        found = part.regressions(x, y[:, part.columns], weights, penalty)
        _set_columns(kernel, part.columns, found.kernel)
        _set_columns(model.visible_bias, part.columns, found.bias)
        if part.log_precision:
            precision = getattr(model, f"visible_{part.log_precision}")
            _set_columns(precision, slice(None), found.log_precision)
    # What the hidden units say with their first weights is none of it.
    hidden = layer_parameters(model, "hidden_{}", model.hidden)
    mean = hidden.first(hidden.mean(hidden.natural(0.0)))
    mean = tf.reshape(mean, [-1])
    said = tf.linalg.matvec(tf.cast(model.kernel, mean.dtype), mean)
    model.visible_bias.assign_sub(tf.cast(said, model.visible_bias.dtype))


def _set_columns(variable, columns, values):
    """Sets columns of a variable, where the values are finite."""
    new = variable.numpy()
    new[..., columns] = np.where(np.isfinite(values), values, new[..., columns])
    variable.assign(new)


def _some_pairs(model, batches, few):
    """Returns features, statistics of targets, and weights, in random order."""
    counts = [np.ones(len(y)) if w is None else np.ravel(w) for _, y, w in batches]
    rows = sum(np.count_nonzero(each) for each in counts)
    share = _ROWS / rows if is_open(model) else min(_ROWS, few) / rows
    chunks = []
    for (x, y, _), weights in zip(batches, counts, strict=True):
        chosen = np.flatnonzero(weights)
        chosen = some_rows(chosen, max(1, int(share * len(chosen))))
        x, y = model.form.split(x, y)
        chosen_parts = (chosen_rows(part, chosen) for part in (x, y, weights))
        chunks.append([*map(np.asarray, chosen_parts)])
    x, y, weights = (np.concatenate(each) for each in zip(*chunks, strict=True))
    y = tf.cast(encoded(model.visible, y), tf.float32)
    y = visible_parameters(model).first(y)
    order = np.random.default_rng(0).permutation(len(x))
    return x[order], np.asarray(y)[order], weights[order]


def _variables(model):
    """Returns a dict of the visible units' variables to set, with their initializers.

    The bias is left out if the user has chosen its initializer, and so are variables
    that the user has frozen.
    """
    free = {}
    for name, (initializer, trainable) in model.visible.variables().items():
        variable = getattr(model, f"visible_{name}")
        if variable.trainable or not trainable:
            free[name] = variable, initializer
    if model._visible_bias_initializer is not None:
        free.pop("bias", None)
    return free


def _moments(model, chunks, weights):
    """Returns mean and variance of encoded visible states."""
    unit = model.visible
    rows = (encoded(unit, as_rows(chunk)) for chunk in chunks)
    return moments(zip(rows, weights, strict=True), model.gaps.pooled(unit))


def _chunks(model, batches):
    """Returns lists of visible states, some rows at a time, and of their weights.

    Rows of weight 0 are left out.
    """
    chunks, weights = [], []
    for x, y, counts in batches:
        visible = model.form.split(x, y)[1]
        counts = np.ones(len(visible)) if counts is None else np.ravel(counts)
        if not counts.all():
            visible = chosen_rows(visible, np.flatnonzero(counts > 0.0))
        counts = counts[counts > 0.0]
        if not len(counts):
            continue
        width = model.visible.num_rows(visible.shape[1])
        parts = list(parts_of_rows(some_rows(visible, _ROWS), width))
        chunks += parts
        ends = np.cumsum([part.shape[0] for part in parts])
        weights += np.split(some_rows(counts, _ROWS), ends[:-1])
    return chunks, weights
