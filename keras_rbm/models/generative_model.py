"""Features, scores and samples of models with one hidden layer."""

import tensorflow as tf

from keras_rbm import inference
from keras_rbm.inference.arguments import check_sizes
from keras_rbm.models.unconditional_model import UnconditionalModel
from keras_rbm.models.workflow.exporting import (
    Endpoint,
    chain_endpoints,
    named,
    number,
    rows,
)
from keras_rbm.models.workflow.rows import map_rows
from keras_rbm.models.workflow.sampling import draw, draw_tempered


class GenerativeModel(UnconditionalModel):
    """A model of p(v) with one hidden layer. Called on data it returns `E[h | v]`.

    A subclass implements `potentials` and `gradients`.
    """

    def call(self, inputs):
        inputs = tf.cast(inputs, self.variable_dtype)
        features = self._features_of_mean(self.visible.encode(inputs))
        return tf.cast(features, self.compute_dtype)

    def _features_of_mean(self, means):
        """Returns `E[h]` given encoded means of the visible units."""
        features = self._hidden_parameters().mean(self._natural_of_mean(means))
        return _with_zero_gradients(
            features, *tf.nest.flatten(self._visible_parameters())
        )

    def _natural_of_mean(self, means):
        """Returns the hidden units' natural parameters given encoded means."""
        return self.potentials().hidden_natural_of_mean(means)

    def _hidden_parameters(self):
        return self.potentials().hidden

    def endpoints(self):
        """Returns the exported model's functions: a dict of name to `Endpoint`."""
        visible = [rows(self._visible_width)]
        transform = Endpoint(named("features", self.call), visible)
        return {
            "serving_default": transform,
            "transform": transform,
            "reconstruct": Endpoint(named("visible", self._reconstruct), visible),
            "free_energy": Endpoint(named("free_energy", self.free_energy), visible),
        } | chain_endpoints(self.sample, number("num_samples"))

    def reconstruct(self, x) -> tf.Tensor:
        """Returns the expected visible state after one way up and down.

        Args:
            x: array (B, V).

        Returns:
            tensor (B, V), `E[v | h = E[h | v]]`.
        """
        values = self._visible_values(x, "reconstruct")
        return map_rows(self._reconstruct, values)

    def _reconstruct(self, visible):
        potentials = self.potentials()
        hidden = potentials.hidden.mean(potentials.hidden_natural(visible))
        return potentials.visible.mean(potentials.visible_natural_of_mean(hidden))

    def free_energy(self, x) -> tf.Tensor:
        """Computes `F(v) = -log sum_h exp(-E(v, h))`.

        Args:
            x: array (B, V).

        Returns:
            tensor (B,), nats.
        """
        values = self._visible_values(x, "free_energy")
        potentials = self.potentials(dtype=self.variable_dtype)
        return map_rows(potentials.free_energy, values)

    def pseudo_log_likelihood(self, x) -> tf.Tensor:
        """Computes `sum_i log p(v_i | all other v)`, of units of finitely many states.

        Args:
            x: array (B, V).

        Returns:
            tensor (B,), nats.
        """
        values = self._visible_values(x, "pseudo_log_likelihood")
        potentials = self.potentials(dtype=self.variable_dtype)
        return map_rows(
            lambda v: inference.pseudo_log_likelihood(potentials, v), values
        )

    def log_likelihood(self, x, log_partition=None) -> tf.Tensor:
        """Computes `log p(v) = -F(v) - log Z`.

        Args:
            x: array (B, V).
            log_partition: `LogPartition` or a number, from `log_partition`, or the
                name of a method to compute it with (`"exact"`, by default `"ais"`).

        Returns:
            tensor (B,), nats, float64. The error of log Z is common to all examples.
        """
        values = self._visible_states(x, "log_likelihood")
        value = self._log_partition_value(log_partition)
        return -tf.cast(self.free_energy(values), tf.float64) - value

    def sample(
        self,
        num_samples: int,
        *,
        steps: int = 1000,
        method: str = "gibbs",
        betas=10,
        initial_visible=None,
        clamp=None,
        seed: int | None = None,
    ) -> tf.Tensor:
        """Draws visible states by block Gibbs sampling or parallel tempering.

        Args:
            num_samples: int ≥ 1, number of independent chains.
            steps: int ≥ 0, sweeps of each chain.
            method: `"gibbs"`, or `"tempering"`, which mixes between modes at the
                cost of a chain for each temperature, see
                `keras_rbm.inference.parallel_tempering`.
            betas: inverse temperatures of `"tempering"`, as for
                `keras_rbm.inference.temperatures`.
            initial_visible: array (num_samples, V) to start from; by default drawn
                from the base rate.
            clamp: bool array (V,) or (num_samples, V), units that keep the value
                they start with (completion).
            seed: int; by default drawn from the model's generator.

        Returns:
            tensor (num_samples, V). For smooth images call `reconstruct` on it.

        Raises:
            ValueError: if a count or shape is wrong, the method is unknown, or
                `clamp` is given without `initial_visible`.
        """
        self._assert_built("sample")
        check_sizes(num_samples=num_samples)
        potentials = self.potentials()
        shape = (num_samples, potentials.num_visible)
        base = self.base_natural(potentials)
        chains = {"initial_visible": initial_visible, "clamp": clamp, "seed": seed}
        named = isinstance(method, str)
        if named and method == "gibbs":
            return draw(self, potentials, base, shape, steps, **chains)
        if named and method == "tempering":
            return draw_tempered(self, potentials, base, shape, steps, betas, **chains)
        raise ValueError(
            f"Expected method 'gibbs' or 'tempering'. Received: method={method!r}."
        )


@tf.custom_gradient
def _with_zero_gradients(features, *others):
    """Returns `features`; gradients with respect to `others` are 0, not `None`.

    When the model is fine-tuned as a layer, its visible parameters have no effect on
    the output. With gradients `None` Keras would warn at every step.
    """

    def gradient(upstream):
        return (upstream, *(tf.zeros_like(other) for other in others))

    return tf.identity(features), gradient
