"""The data that a Boltzmann machine takes, and their checks."""

import tensorflow as tf

from keras_rbm.checks import check_counts
from keras_rbm.models.workflow.checked_batches import BatchForm
from keras_rbm.models.workflow.faults import lies_in
from keras_rbm.models.workflow.inputs import as_arrays, check_source, is_array, unpack
from keras_rbm.models.workflow.rows import as_rows, as_values, row_chunks
from keras_rbm.models.workflow.states import (
    check_rows,
    warn_of_means,
    warn_of_values_outside,
)
from keras_rbm.units.bernoulli import are_binary


class TakesData:
    """Adds the checks of input data to a Boltzmann machine."""

    def _check_batch(self, x, y):
        """Raises a ValueError unless a batch fits the model; changes nothing."""
        _, visible = self._split_batch(x, y)
        self._check_visible(visible, "x")

    def _batch_form(self):
        """Returns the `BatchForm` of training data."""
        return BatchForm((self._visible_width, self.visible))

    def _feature_form(self):
        """Returns the `BatchForm` of the model's inputs."""
        unit = self.visible if self.visible.encodes else None
        return BatchForm((self._visible_width, unit))

    def _check_prediction(self):
        """Raises a ValueError if the model cannot predict in its present state."""

    def _check_features(self, features):
        """Raises a ValueError unless the model can be called on `features`."""
        check_rows(features, "x", *self._feature_form().x)

    def _warn_of_features(self, features):
        """Warns of features that `fit` would refuse, such as raw pixels."""
        if not self.conditional and are_binary(self.visible):
            warn_of_values_outside(row_chunks(features), "x")

    def _check_visible(self, visible, name="x"):
        """Raises a ValueError unless `visible` can be visible states."""
        width = self._visible_width or self.num_visible
        check_rows(visible, name, width, self.visible)

    def _visible_values(self, data, method, name="x"):
        """Returns data as checked visible states (N, V), not copied if an array."""
        self._assert_built(method)
        values = as_values(data)
        self._check_visible(values, name)
        return values

    def _visible_states(self, data, method, name="x"):
        """Returns the same for a likelihood: warns of values that are not states."""
        values = self._visible_values(data, method, name)
        warn_of_means(row_chunks(values), self.visible, name)
        return values

    def _visible_rows(self, data, method, name="x"):
        """Returns data as checked visible states, a float32 tensor (N, V)."""
        return as_rows(self._visible_values(data, method, name))

    def _checked_batch(self, x, y, sample_weight):
        x, y, sample_weight = as_arrays(x, y, sample_weight)
        self._check_batch(x, y)
        return x, y, sample_weight

    def _checked_features(self, x, method, batch_size=None):
        """Returns data that the model can be called on, checked as far as possible."""
        self._assert_built(method)
        self._check_prediction()
        if batch_size is not None:
            check_counts(batch_size=batch_size)
        if is_array(x):
            x = as_values(x)
            self._check_features(x)
            self._warn_of_features(x)
            return x
        check_source(x)
        if isinstance(x, tf.data.Dataset):
            self._check_features(unpack(x.element_spec)[0])
            if x.cardinality() == 0:
                raise ValueError(
                    "Expected data of at least one batch. Received: no batch."
                )
        return self._feature_form().checked(x)

    def _checked_feature_batch(self, x):
        """Returns a checked batch, an array that the model can be called on."""
        self._assert_built("predict_on_batch")
        self._check_prediction()
        values = as_values(x)
        self._check_features(values)
        return values

    def _data_names(self):
        """Returns names of the visible states and the features for error messages."""
        return ("y", "x") if self.conditional else ("x", "features")

    def _data_soundness(self, features, visible, weights):
        """Returns three bools (): whether each of the arguments is valid."""
        return (
            tf.reduce_all(self.visible.contains(visible)),
            tf.constant(True) if features is None else lies_in(features),
            lies_in(weights, 0.0),
        )
