"""What a first fit starts from: fitted visible units, and logistic regressions."""

import math
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
from keras_rbm.models.layer_variables import visible_parameters
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
from keras_rbm.regularizers import NormalPrior
from keras_rbm.units.bernoulli import are_binary

#: Steps at most; the largest mean gradient, in nats, at which they end.
_STEPS, _TOLERANCE = 100, 1e-3
#: Features beyond which the factor would be too large.
_MOST_FEATURES = 4096
#: Most products of a step, half a second, and the fewest rows that they must allow.
_PRODUCTS, _FEWEST_ROWS = 2e9, 500
#: Deviations of the prior to choose from, and columns of targets by which, at most.
_STDDEVS, _COLUMNS = (0.15, 0.21, 0.29, 0.4, 0.55, 0.75, 1.0, 1.4, 2.0), 32
#: Fewest rows to choose by. As many folds of a fifth as hold out 500 rows, or all five.
_FEWEST, _HELD_OUT, _FOLDS = 50, 500, 5
#: Smallest gain that counts, as a share of the loss of held-out rows.
_LEAST_GAIN = 1e-3
#: Number of rows of an array from which the start is computed, random ones.
_ROWS = 10_000
#: Fewest columns, or all, for which a rate is chosen: higher ones lose sharp rules.
_FEWEST_VARYING = 110


def most_rows(num_features, num_targets):
    """Returns how many rows regressions of this size can take in, 0 if too few."""
    if num_features > _MOST_FEATURES:
        return 0
    rows = int(_PRODUCTS / (num_features * num_targets)) - num_features
    return rows if rows >= _FEWEST_ROWS else 0


def logistic_regressions(features, targets, weights, penalty):
    """Returns the weights (X, V) and biases (V,) of a regression for each column.

    They minimize the mean negative log-likelihood of binary targets given features,
    plus `penalty sum_xv A_xv² / 2`. A quarter of the second moments of the features
    bounds the Hessian of each column [1], so one factor serves all columns and steps;
    the steps have momentum.

    Args:
        features: array (N, X).
        targets: array (N, V), between 0 and 1; NaN does not count.
        weights: array (N,), of the rows.
        penalty: float > 0.

    References:
        1. Böhning. Multinomial logistic regression algorithm. Annals of the Institute
           of Statistical Mathematics, 1992.
    """
    features, targets, weights = (
        np.asarray(part, np.float64) for part in (features, targets, weights)
    )
    count = len(features)
    weights = weights / np.sum(weights)
    known = targets == targets
    has_gaps = not known.all()
    targets = np.where(known, targets, 0.0)
    center, share = (weights @ part for part in (features, targets))
    if has_gaps:
        share = share / np.maximum(weights @ known, np.finfo(np.float64).tiny)
    share = np.clip(share, 0.5 / count, 1.0 - 0.5 / count)
    x, y = (tf.constant(part, tf.float64) for part in (features - center, targets))
    weighted = tf.constant(weights[:, np.newaxis]) * x
    bound = 0.25 * tf.matmul(x, weighted, transpose_a=True)
    # Equal features make it singular, but for the penalty and this; it stays a bound.
    extra = penalty + 1e-10 * tf.linalg.trace(bound) / len(center)
    factor = tf.linalg.cholesky(bound + extra * tf.eye(len(center), dtype=tf.float64))
    kernel = tf.zeros((len(center), len(share)), tf.float64)
    bias = tf.constant(np.log(share / (1.0 - share)))
    free = (share > 0.5 / count) & (share < 1.0 - 0.5 / count)  # others have no end
    last = ahead = kernel, bias
    for step in range(_STEPS):
        kernel, bias = ahead
        error = y - tf.sigmoid(tf.matmul(x, kernel) + bias)
        error = error * known if has_gaps else error
        ascent = tf.matmul(weighted, error, transpose_a=True) - penalty * kernel
        up = tf.linalg.matvec(error, weights, transpose_a=True) * free
        new = kernel + tf.linalg.cholesky_solve(factor, ascent), bias + 4.0 * up
        momentum = step / (step + 3.0)
        ahead = tuple(n + momentum * (n - o) for n, o in zip(new, last, strict=True))
        last = new
        if max(np.abs(ascent).max(), np.abs(up).max()) < _TOLERANCE:
            break
    kernel, bias = (part.numpy() for part in last)
    return kernel, bias - center @ kernel


def chosen_stddev(features, targets, weights, stddev):
    """Returns the deviation of a normal prior that suits regressions, by held-out rows.

    From the given one it goes to the next smaller or larger as long as held-out rows
    become more likely, by a thousandth of their loss and by two standard errors.

    Args:
        features: array (N, X), in random order.
        targets: array (N, V), between 0 and 1; NaN does not count.
        weights: array (N,), of the rows.
        stddev: float > 0, with which to begin.
    """
    features, targets, weights = (
        np.asarray(part, np.float64) for part in (features, targets, weights)
    )
    low, high = np.fmin.reduce(targets), np.fmax.reduce(targets)
    varied = np.flatnonzero(high > low)  # false if all are NaN
    if len(features) < _FEWEST or not len(varied):
        return stddev
    every = max(1, math.ceil(len(varied) / _COLUMNS))
    targets = targets[:, varied[::every]]
    fifth = len(features) // 5
    folds = range(min(_FOLDS, math.ceil(_HELD_OUT / fifth)))
    scores = {}

    def score(value):
        if value not in scores:
            scores[value] = np.concatenate([held_out(value, fold) for fold in folds])
        return scores[value]

    def held_out(value, fold):
        away = np.arange(len(features)) // fifth == fold
        x, y, counts = features[~away], targets[~away], weights[~away]
        kernel, bias = logistic_regressions(x, y, counts, 1.0 / (value**2 * len(x)))
        natural = features[away] @ kernel + bias
        gains = targets[away] * natural - np.logaddexp(0.0, natural)
        return weights[away] * np.nansum(gains, axis=1)

    def better(new, old):
        gain = score(new) - score(old)
        least = _LEAST_GAIN * abs(score(old).mean())
        return gain.mean() > max(least, 2.0 * gain.std() / np.sqrt(len(gain)))

    smaller = sorted((s for s in _STDDEVS if s < stddev), reverse=True)
    larger = sorted(s for s in _STDDEVS if s > stddev)
    for direction in (smaller, larger):
        best = stddev
        for value in direction:
            if not better(value, best):
                break
            best = value
        if best != stddev:
            return best
    return stddev


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
    regressions = None
    if model.conditional and "bias" in free and are_binary(unit):
        regressions = _regressions(model, batches)
    for name in free:
        variables[name][0].assign(fitted[name])
    if "bias" in free and len(free) < len(fitted):  # some are frozen: it suits them
        parameters = visible_parameters(model)
        variables["bias"][0].assign(parameters.natural_for_mean(mean))
    if not model.conditional:
        model.base_rate.assign(mean)
    if regressions is not None:
        model.visible_kernel.assign(regressions[0])
        model.visible_bias.assign(regressions[1])
    start_at_pairs(model, chunks, weights)
    model.learner.recenter()


def _regressions(model, batches):
    """Returns the visible side of a new CRBM as logistic regressions, or `None`.

    They are its weights and biases, if these are free and not too many. Chooses the
    deviation of a prior that the user has left to the model.
    """
    kernel = model.visible_kernel
    if not (model.backbone is None and kernel.trainable):
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
    regressions = logistic_regressions(x, y, weights, 1.0 / (prior.stddev**2 * len(x)))
    return regressions if all(np.isfinite(part).all() for part in regressions) else None


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
