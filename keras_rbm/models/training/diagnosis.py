"""What is said of a training that has failed while all numbers are still finite."""

import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.arguments import check_normalizable
from keras_rbm.inference.missing import filled, is_known
from keras_rbm.models.data.rows import (
    as_rows,
    encoded_chunks,
    moments,
    some_rows,
)
from keras_rbm.models.layer_variables import initial_parameters, potentials_of_any
from keras_rbm.models.training.progress import schedule_of
from keras_rbm.optimizers.falling_rate import FallingRate
from keras_rbm.regularizers import NormalPrior
from keras_rbm.units.bernoulli import are_binary

#: Nats per visible unit by which a loss may exceed that of independent units, and for
#: how many epochs in a row, unless it falls.
_MARGIN, _PATIENCE = 5.0, 3
#: Nats per unit, and standard errors, by which it may exceed it at the end.
_LAST_MARGIN, _ERRORS = 0.01, 4.0
#: Nats per visible unit by which a validation loss may rise.
_RISE = 0.005
#: Largest share of constant hidden units; probabilities of on of those that are not;
#: how far those of a unit that answers to the data lie apart.
_LARGEST_SHARE, _OFF, _ON, _LEAST_CHANGE = 0.1, 0.01, 0.99, 0.01
#: Least standard deviation and largest root mean square that suit the default rate.
_LEAST_DEVIATION, _LARGEST_SIZE = 0.1, 5.0
#: Epochs from which a validation loss is judged, and what has been learned.
_FEWEST_EPOCHS = 5
#: Rows that are compared, at most and at least.
_ROWS, _FEWEST = 1000, 100


class Diagnosis(keras.callbacks.Callback):
    """Warns if `fit` has left a model worse than it might be, and ends a futile one.

    * If features of a conditional model are far from standardized ones.
    * If the loss is far above that of independent units, at the end or in three epochs
      in which it does not fall: it has diverged.
    * If the last epoch's loss is above it by more than its error; this needs an array
      of at least a hundred rows, of which a sample can be drawn.
    * If more than a tenth of the binary hidden units of an RBM are always off or always
      on in those rows, so that they only shift biases; or if after some epochs all of
      them are as they were at the start.
    * If the validation loss has risen while the training loss fell, or if most of what
      training rows gain over independent units holds for them alone.

    Each warning is given once for a model that has been compiled. A ValueError ends a
    `fit` that has come to a model without a finite partition function.
    """

    def __init__(self):
        super().__init__()
        self._told: set[str] = set()
        self._rows: Any = None
        self._independent: Any = None
        self._chose_rate = False

    def begin(self, features, visible, is_all, chooses_rate):
        """Takes the rows that `fit` begins with; returns itself.

        Args:
            features: array (N, X), or `None`.
            visible: array (N, V).
            is_all: bool, whether these are all the data, not the first batches.
            chooses_rate: bool, whether the learning rate is left to the model.
        """
        self._chose_rate |= chooses_rate
        self._far: list[float] = []
        self._count = len(visible) if is_all else 0
        self._rows = as_rows(some_rows(visible, _ROWS))
        self._independent = None
        self._losses: list[tuple[float, float]] = []
        self._epochs = 0
        if features is not None:
            self._check_features(as_rows(some_rows(features, _ROWS)))
        return self

    def _warn_once(self, what, message):
        if what not in self._told:
            self._told.add(what)
            warnings.warn(message, stacklevel=3)

    def on_epoch_end(self, epoch, logs=None):
        self._check_partition(epoch)
        if self._independent is None:
            self._independent = independent_losses(self.model, self._rows, self._rows)
        width, mean = self._rows.shape[1], _total(self._independent)
        logs = logs or {}
        self._epochs += 1
        self._loss = loss = logs.get("loss", 0.0)
        if "val_loss" in logs:
            self._losses.append((loss, logs["val_loss"]))
        far = self.model.rule.in_nats and loss > mean + _MARGIN * width
        self._far = [*self._far, loss] if far else []
        last = self._far[-_PATIENCE:]
        if len(last) == _PATIENCE and last[-1] >= last[0]:
            self._warn_of_divergence()

    def _warn_of_divergence(self):
        self._told.add("worse")
        self._warn_once(
            "diverged",
            f"Training has diverged: the loss is {self._far[-1]:.4g} nats, more than "
            f"{_MARGIN:g} per visible unit above that of independent units. "
            f"{self._other_rate()}, and start from new weights.",
        )

    def _other_rate(self):
        """Returns what to do about the learning rate, as a sentence that goes on."""
        if self._chose_rate:
            return "Train longer: the rate falls to 0 at the end"
        rate = schedule_of(self.model.optimizer)
        if isinstance(rate, FallingRate):
            rate = rate.initial_learning_rate
        else:
            rate = float(tf.convert_to_tensor(self.model.optimizer.learning_rate))
        return f"The learning rate is {rate:g}: use a smaller one"

    def _check_partition(self, epoch):
        """Raises a ValueError if the model cannot be normalized any more."""
        if isinstance(self.model.hidden, (list, tuple)):
            return  # of a deep model, which is not kept there
        try:
            check_normalizable(potentials_of_any(self.model))
        except ValueError as error:
            raise ValueError(
                "Training has left the models of a finite partition function, in epoch "
                f"{epoch + 1}. {error} Lower the learning rate, or regularize the "
                "kernel, and start from new weights."
            ) from None

    def on_train_end(self, logs=None):
        if self._far:
            self._warn_of_divergence()
        if self._independent is not None and not self.model.conditional:
            if self._count >= _FEWEST:
                self._compare()
            if self._count and np.nanstd(self._rows, 0).any():
                self._check_units()
        if self._independent is not None and not self.model.stop_training:
            self._check_validation()
        self._rows = self._independent = None

    def _compare(self):
        """Warns of a model worse than independent units."""
        # The loss looks at one unit of each example, V times as heavy.
        unit, rows = self.model.visible, self._rows
        width, mean = rows.shape[1], _total(self._independent)
        if self._loss <= mean + _LAST_MARGIN * width:
            return
        noise = random.uniform(tf.shape(rows), 0)
        states = unit.drawn(tf.cast(filled(rows), tf.float32), noise).numpy()
        states = np.where(is_known(rows), states, np.nan)
        deviation = np.nanstd(independent_losses(self.model, rows, states))
        error = width * deviation / np.sqrt(self._count)
        if self._loss > mean + _ERRORS * error:
            self._warn_once(
                "worse",
                "The model is worse than independent units: a loss of "
                f"{self._loss:.4g} nats, theirs is {mean:.4g}. {self._other_rate()}, "
                "and start from new weights.",
            )

    def _check_features(self, features):
        """Warns of features whose weights would learn too fast or too slowly."""
        deviation = np.std(features, 0).max(initial=0.0)
        size = np.sqrt(np.mean(np.square(features), 0)).max(initial=0.0)
        if len(features) < _FEWEST or not deviation:
            return
        if deviation < _LEAST_DEVIATION or size > _LARGEST_SIZE:
            self._warn_once(
                "features",
                f"Features have standard deviations of up to {deviation:.3g} and root "
                f"mean squares of up to {size:.3g}; all weights learn at one rate, "
                "which suits features near 1. Standardize them, with "
                "sklearn.preprocessing.StandardScaler or a keras.layers.Normalization "
                "in the pipeline.",
            )

    def _check_validation(self):
        """Warns of a validation loss that has risen for long, beyond its noise."""
        if len(self._losses) < _FEWEST_EPOCHS:
            return
        losses = np.transpose(self._losses)
        length = max(2, len(self._losses) // 5)
        window = np.ones(length) / length
        train, smooth = (np.convolve(part, window, "valid") for part in losses)
        best = int(np.argmin(smooth))
        noise = np.std(np.diff(losses[1])) / np.sqrt(length)
        units = self._rows.shape[1] if self.model.rule.in_nats else 1
        margin = max(_RISE * units, _ERRORS * noise)
        if smooth[-1] > smooth[best] + margin and train[-1] < train[best]:
            epoch = best + (length + 1) // 2
            self._warn_once(
                "overfits",
                "The model overfits: the validation loss has risen from "
                f"{smooth[best]:.4g} near epoch {epoch} to {smooth[-1]:.4g}, while "
                "the training loss fell. Stop there, with "
                "keras.callbacks.EarlyStopping(restore_best_weights=True), use fewer "
                f"hidden units, or {self._stronger_penalty()}.",
            )
        elif smooth[-1] > train[-1] + margin:
            self._check_gap(train[-1], smooth[-1])

    def _check_gap(self, loss, held_out):
        """Warns if most of what training rows gain over independent units is theirs."""
        if self.model.conditional or not self.model.rule.in_nats:
            return
        # Biases fitted to N rows also suit others less: by about 1 / N nats each.
        own = self._rows.shape[1] / self._count if self._count else 0.0
        mean = _total(self._independent) + own
        if held_out - loss - own > mean - held_out:
            self._warn_once(
                "overfits",
                f"The model has learned rows by heart: {loss:.4g} nats are the loss of "
                f"training rows, {held_out:.4g} that of validation rows, {mean:.4g} "
                "that of independent units. Use more rows, fewer hidden units, or "
                f"{self._stronger_penalty()}.",
            )

    def _stronger_penalty(self):
        prior = self.model.kernel_regularizer
        if isinstance(prior, NormalPrior):
            stronger = f"NormalPrior({0.5 * prior.stddev:.2g})"
        else:
            stronger = f"L1BlockPrior({4.0 * getattr(prior, 'strength', 0.05):.2g})"
        return (
            "a stronger penalty of the weights, such as "
            f"kernel_regularizer=keras_rbm.regularizers.{stronger}"
        )

    def _check_units(self):
        """Warns of hidden units that do not answer to the data."""
        model, hidden = self.model, self.model.hidden
        if isinstance(hidden, list) or not are_binary(hidden):
            return
        if model.learner.has_own_models:
            return
        features = np.asarray(model(tf.cast(self._rows, tf.float32)))
        constant = (features.max(0) < _OFF) | (features.min(0) > _ON)
        number = int(constant.sum())
        if number > _LARGEST_SHARE * len(constant):
            self._warn_once(
                "constant",
                f"{number} of {len(constant)} hidden units are always off or always on "
                "in the data, and only shift the visible biases. Use the centered "
                "gradient (a rule's default), a smaller learning rate or fewer hidden "
                "units, and start from new weights.",
            )
        elif (
            self._epochs >= _FEWEST_EPOCHS
            and np.ptp(features, 0).max(initial=0.0) < _LEAST_CHANGE
        ):
            self._warn_once(
                "constant",
                "Hidden units do not vary in the data: all that the model has learned "
                "are the means of the columns. If these are not independent, train "
                "longer, or with a weaker penalty, kernel_regularizer=None.",
            )


def independent_losses(model, rows, states):
    """Returns minus log p of states, (B, V), of isolated units fitted to rows.

    It is NaN where states are.
    """
    unit = model.visible
    fitted_to = moments(encoded_chunks(unit, rows), model.gaps.pooled(unit))
    parameters = initial_parameters(unit, rows.shape[1], **unit.fitted(*fitted_to))
    natural = parameters.natural(0.0)
    known = is_known(states)
    states = filled(states)
    total = tf.transpose(natural * parameters.first_of(states))
    total = tf.math.unsorted_segment_sum(total, parameters.unit_of_row, rows.shape[1])
    base = parameters.base_measure(states) - parameters.log_partition(natural)
    return np.where(known, -(tf.transpose(total) + base).numpy(), np.nan)


def gains_over_independent(model, data):
    """Returns -F(v) of an RBM's rows, minus log p(v) of independent units, (n,).

    Minus log Z, that is what the model gains. Of at most a thousand rows; `None` if
    there are few, or gaps.
    """
    if len(data) < _FEWEST or model.gaps.has_gaps:
        return None
    rows = np.asarray(as_rows(some_rows(data, _ROWS)))
    independent = independent_losses(model, rows, rows).sum(1)
    return independent - np.asarray(model.free_energy(rows))


def _total(losses):
    """Returns the mean over rows of the sum of losses, (B, V), of known entries.

    Rows without any do not count, as in the loss of a model.
    """
    known = is_known(losses)
    return np.nansum(losses) / max(1, np.count_nonzero(known.any(1)))
