"""Predictions and samples of conditional models, from their potentials."""

import tensorflow as tf

from keras_rbm.checks import check_counts
from keras_rbm.models.boltzmann_machine import BoltzmannMachine
from keras_rbm.models.conditional_scores import ConditionalScores
from keras_rbm.models.workflow.checked_batches import BatchForm
from keras_rbm.models.workflow.exporting import Endpoint, chain_endpoints, named, rows
from keras_rbm.models.workflow.rows import as_rows
from keras_rbm.models.workflow.sampling import draw
from keras_rbm.models.workflow.states import check_no_labels
from keras_rbm.models.workflow.with_inference import WithInference
from keras_rbm.units.bernoulli import are_binary


class ConditionalModel(ConditionalScores, WithInference, BoltzmannMachine):
    """A Boltzmann machine with an input x: a model of p(v | x).

    A subclass creates its variables, sets `_inference`, `visible` and `hidden`, and
    implements `potentials` and `gradients`. Called on x, it returns the visible
    marginals, (B, V).
    """

    conditional = True
    _cure_unbuilt = (
        "Pass num_visible= and num_features= to the constructor, or call fit(x, y) "
        "first."
    )

    def compile(self, optimizer=None, *, rule="maximum_likelihood", **kwargs) -> None:
        """Configures the model for training, as `RBM.compile` does.

        Args:
            optimizer: as for `RBM.compile`.
            rule: str or `keras_rbm.rules.Rule`; by default maximum likelihood
                with the model's inference, which must then yield marginals.
            **kwargs: see `RBM.compile`.
        """
        super().compile(optimizer, rule=rule, **kwargs)

    def endpoints(self):
        """Returns the exported model's functions: a dict of name to `Endpoint`."""
        x, v = rows(self.num_features), rows(self.num_visible, "v")
        predict = Endpoint(named("marginals", self.call), [x])

        return {
            "serving_default": predict,
            "predict": predict,
            "predict_map": Endpoint(named("visible", self._most_probable), [x]),
            "free_energy": Endpoint(named("free_energy", self.free_energy), [x, v]),
        } | chain_endpoints(self.sample, x)

    def _split_batch(self, x, y):
        if y is None:
            raise ValueError(
                "Expected pairs: a CRBM learns p(y | x). Received: no y. Call "
                "fit(x, y), with a dataset of (x, y), or use an RBM."
            )
        return x, y

    def _check_batch(self, x, y):
        features, visible = self._split_batch(x, y)
        if are_binary(self.visible):
            check_no_labels(visible)
        self._check_features(features)
        self._check_visible(visible, "y")

    def _batch_form(self):
        visible = self.num_visible, self.visible
        return BatchForm((self.num_features, None), visible)

    def _feature_form(self):
        return BatchForm((self.num_features, None))

    def _feature_rows(self, x, method):
        """Returns x as a checked float32 tensor (N, X)."""
        self._assert_built(method)
        rows = as_rows(x)
        self._check_features(rows)
        return rows

    def call(self, inputs):
        inputs = tf.ensure_shape(inputs, (None, self.num_features))
        infer = self.inference.given(inputs)
        beliefs = infer(self.potentials(inputs), pairwise=None)
        # Rules train the model: no gradient flows back through the sweeps.
        return tf.cast(tf.stop_gradient(beliefs.visible), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.visible.num_rows(self.num_visible))

    def _prediction(self, features, visible):
        """Returns what compiled metrics compare with the targets: the output.

        For categorical units, which have no mean, it is the likeliest categories.
        """
        return self.potentials(features).visible.state_like(
            tf.cast(self(features), self.variable_dtype)
        )

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Updates compiled metrics with targets and the marginals given x.

        A metric with a method `observe` is given x first.
        """
        for metric in self._observers():
            metric.observe(x)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def predict_map(self, x, batch_size: int = 1000) -> tf.Tensor:
        """Predicts one state of the visible units.

        Max-product inference finds the most probable (v, h), mixed-product the most
        probable v; both approximately. With marginals (sum-product, mean field, exact)
        units are 1 if their marginal exceeds 1/2, which has the fewest expected errors;
        units that are not binary get their likeliest state.

        Args:
            x: array (B, X).
            batch_size: int, examples at a time.

        Returns:
            tensor (B, V), states.
        """
        rows = self._feature_rows(x, "predict_map")
        self._check_prediction()
        check_counts(batch_size=batch_size)
        parts = [
            self._most_probable(rows[start : start + batch_size])
            for start in range(0, len(rows), batch_size)
        ]
        return tf.concat(parts, 0)

    def _most_probable(self, rows):
        if are_binary(self.visible):
            return tf.cast(self(rows) > 0.5, tf.float32)
        potentials = self.potentials(rows)
        hidden = self.inference.given(rows)(potentials, pairwise=None).hidden
        natural = potentials.visible_natural_of_mean(hidden)
        return potentials.visible.mode(natural)

    def sample(
        self,
        x,
        *,
        steps: int = 1000,
        initial_visible=None,
        clamp=None,
        seed: int | None = None,
    ) -> tf.Tensor:
        """Draws visible states given x by block Gibbs sampling, one for each row.

        Args:
            x: array (B, X).
            steps: int ≥ 0, sweeps of each chain.
            initial_visible: array (B, V) to start from; by default drawn from the
                model without coupling, `sigmoid(A' x + b)`.
            clamp: bool array (V,) or (B, V), units that keep the value they start
                with (completion).
            seed: int; by default drawn from the model's generator.

        Returns:
            tensor (B, V).

        Raises:
            ValueError: if a count or shape is wrong, or `clamp` is given without
                `initial_visible`.
        """
        rows = self._feature_rows(x, "sample")
        potentials = self.potentials(rows)
        base = potentials.visible_bias
        count = tf.shape(base)[0] if base.shape[0] is None else base.shape[0]
        return draw(
            self,
            potentials,
            base,
            (count, self.num_visible),
            steps,
            initial_visible,
            clamp,
            seed,
        )
