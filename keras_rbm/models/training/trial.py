"""What the hidden units of a CRBM are to do, tried on part of the rows."""

import warnings

import keras
import numpy as np

from keras_rbm.inference import Exact, MeanField
from keras_rbm.models.data.rows import chosen_rows, encoded
from keras_rbm.models.training.defaults import new_optimizer, new_rule
from keras_rbm.models.training.progress import is_open, set_prior, updates_of
from keras_rbm.models.training.regressions import is_real
from keras_rbm.rules.maximum_likelihood import MaximumLikelihood

#: Fewest rows that can be judged by, and the most with which a trial is cheap; the most
#: rows of labels, and epochs.
_FEWEST, _MOST, _MOST_LABELS, _MOST_EPOCHS = 50, 2500, 10_000, 100
#: Share of rows that are learned from; the last ones are held out.
_SHARE = 0.8
#: Fewest epochs after which hidden units are judged, of at most 2,500 rows.
_EPOCHS = 30
#: Deviation of the prior of hidden units' weights that are not to take part.
_ASIDE = 0.05
#: Those of hidden units that couple labels, and hardly read features.
_COUPLING = {"hidden_stddev": 3.0, "feature_stddev": _ASIDE}
#: Squared error of learned rows, as a share of that at the start, that is too large.
_WORSE = 1.05


class Trial(keras.callbacks.Callback):
    """Before the first `fit` of a CRBM, tries on part of the rows what suits them.

    The last fifth is held out: rows are often in the order of time.

    Of real numbers: unless the squared error there, for a variance of 1, is smaller
    after training than at the regressions from which it starts, by a standard error,
    the model stays at those of all rows, and the prior holds the weights of the hidden
    units near 0 from then on. If predictions for the rows that were learned are worse
    at the end than at the start, it is said.

    Of several binary units, if their likelihood is learned by exact inference: hidden
    units couple them, and may also read features. Where held-out rows are likelier
    without the latter, the prior holds those weights near 0. With few rows they would
    learn noise.

    Args:
        model: `CRBM`, built.
        batch: `(x, y, sample_weight)`, all rows of an array.
        batch_size: int or `None`, as for `fit`.
    """

    def __init__(self, model, batch, batch_size):
        super().__init__()
        weights, self._size = batch[2], batch_size
        taken = np.arange(batch[0].shape[0])
        if weights is not None:
            taken = np.flatnonzero(np.ravel(weights) > 0.0)
        # Not for a prior that is the user's, or for a later fit.
        first = is_open(model) and not model.fit_state.rows
        self._is_real = is_real(model.visible)
        learns = isinstance(model.rule, MaximumLikelihood) and model.num_visible > 1
        exact = learns and isinstance(model.inference, Exact)
        most = _MOST if self._is_real else _MOST_LABELS
        self._judges = first and (self._is_real or exact) and 0 < len(taken) <= most
        self._applies = self._judges and len(taken) >= _FEWEST
        self._start, self._kept = 0.0, []
        if self._judges:
            split = np.split(taken, [int(_SHARE * len(taken))])
            self._parts = [self._of(batch, rows) for rows in split]
            self._learned = self._of(batch, taken)

    def _of(self, batch, rows):
        return [None if part is None else chosen_rows(part, rows) for part in batch]

    def on_train_begin(self, logs=None):
        model = self.model
        if not (self._judges and model.trainable and self.params["epochs"]):
            return
        if updates_of(model.optimizer):  # of a backup
            return
        if self._is_real:
            self._start = np.mean(self._squares(model, self._learned))
        # A column may be known in the last rows only.
        known = np.isfinite(self._rows(self._parts[0])).any(0).all()
        if self._applies and known and model.fit_state.stddev:
            (self._try if self._is_real else self._try_features)()

    def _try_features(self):
        x, y, weights = self._parts[1]
        weights = None if weights is None else np.ravel(weights)
        gains = []
        for priors in (_COUPLING, {}):
            twin = self._twin(**priors)
            self._fit(twin, self._epochs(_MOST_EPOCHS))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of means in the place of states
                gains.append(np.average(twin.log_likelihood(x, y), weights=weights))
        if gains[0] >= gains[1]:
            set_prior(self.model, self.model.fit_state._replace(**_COUPLING))

    def _epochs(self, most=None):
        """Returns the epochs of a trial: those of the fit, but enough to judge by."""
        few = self._learned[0].shape[0] <= _MOST
        epochs = max(self.params["epochs"], _EPOCHS if few else 1)
        return epochs if most is None else min(epochs, most)

    def _try(self):
        model = self.model
        before, after = self._errors(self._epochs())
        shares = self._parts[1][2]
        shares = np.ones(len(before)) if shares is None else np.ravel(shares)
        shares = shares / shares.sum()
        gain = shares @ (before - after)
        if gain >= np.sqrt(np.square(shares) @ np.square(before - after - gain)):
            return
        set_prior(model, model.fit_state._replace(hidden_stddev=_ASIDE))
        self._kept = [value.numpy() for value in model.trainable_variables]
        ratio = shares @ after / (shares @ before)
        warnings.warn(
            "Hidden units gain nothing here that may not be chance: with them the "
            "squared error of rows that were held out, the last fifth, is "
            f"{ratio:.3g} times that of ridge regressions. The model stays at these; "
            f"hidden units' weights have a NormalPrior({_ASIDE:g}) from now on. Pass "
            "kernel_regularizer= for another.",
            stacklevel=2,
        )

    def on_train_end(self, logs=None):
        if self._kept:  # steps from where nothing is left to learn are noise
            pairs = zip(self.model.trainable_variables, self._kept, strict=True)
            for variable, value in pairs:
                variable.assign(value)
        if not self._start:
            return
        ratio = np.mean(self._squares(self.model, self._learned)) / self._start
        if ratio > _WORSE:
            cure = "Standardize x and y, or train longer."
            if isinstance(self.model.inference, MeanField):
                cure = (
                    "Mean field may be far from the model's means: use at most 8 "
                    "hidden units, whose states are enumerated, or means of sample(x)."
                )
            warnings.warn(
                f"Predictions have {ratio:.3g} times the squared error that they had "
                f"when training began, of the rows that were learned. {cure}",
                stacklevel=2,
            )

    def _errors(self, epochs):
        """Returns the squared errors of held-out rows, before and after."""
        twin, held_out, errors = self._twin(), self._parts[1], []

        def add_error():
            errors.append(self._squares(twin, held_out))

        begin = keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: None if errors else add_error()
        )
        self._fit(twin, epochs, callbacks=[begin])
        add_error()
        return errors

    def _twin(self, **priors):
        """Returns a new model like that of the trial, with other priors."""
        model = self.model
        twin = type(model).from_config(model.get_config())
        twin.compile(new_optimizer(model.optimizer), rule=new_rule(model.rule))
        twin.num_visible = model.num_visible
        set_prior(twin, model.fit_state._replace(**priors))
        return twin

    def _fit(self, twin, epochs, **kwargs):
        """Trains a model on the rows that are not held out."""
        x, y, weights = self._parts[0]
        kwargs |= {"batch_size": self._size, "epochs": epochs, "verbose": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            twin.fit(x, y, sample_weight=weights, **kwargs)

    def _squares(self, model, batch):
        """Returns the mean squared error of each row, for a variance of 1."""
        variance = np.nanvar(self._rows(self._learned), axis=0)
        scale = np.sqrt(np.where(variance > 0.0, variance, np.inf))
        errors = (model.predict(batch[0], verbose=0) - self._rows(batch)) / scale
        counts = np.maximum(np.isfinite(errors).sum(1), 1)
        return np.nansum(np.square(errors), axis=1) / counts

    def _rows(self, batch):
        """Returns the encoded targets of a batch, (B, V), NaN where not known."""
        visible = self.model.form.split(*batch[:2])[1]
        return np.asarray(encoded(self.model.visible, visible))
