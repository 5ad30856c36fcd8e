"""What follows from a deep model's potentials: features, scores, samples."""

import tensorflow as tf

from keras_rbm import inference as inference_module
from keras_rbm import random
from keras_rbm.inference.arguments import check_sizes
from keras_rbm.inference.gibbs import gibbs_chain
from keras_rbm.models.deep import layered
from keras_rbm.models.unconditional_model import UnconditionalModel
from keras_rbm.models.workflow.exporting import (
    Endpoint,
    chain_endpoints,
    named,
    number,
    rows,
)
from keras_rbm.models.workflow.rows import map_rows
from keras_rbm.models.workflow.sampling import checked_chains
from keras_rbm.models.workflow.with_inference import WithInference
from keras_rbm.rules import MaximumLikelihood


class DeepModel(WithInference, UnconditionalModel):
    """A model of p(v) with several hidden layers, inferred given v.

    A subclass makes its variables, `_sizes` (the layers' units, from the data upwards)
    and `_inference`, and implements `potentials`, `posterior`, `gradients`, `descend`.
    Called on data it returns `E[h | v]` of all hidden layers, side by side from below.
    """

    def _check_inference(self, inference):
        if inference.finds_state:
            raise ValueError(
                "Expected inference that yields marginals. Received: "
                f"inference={inference!r}. Use MeanField() or "
                "BeliefPropagation('sum_product')."
            )

    def _check_rule(self, rule, optimizer=None):
        super()._check_rule(rule, optimizer)
        if isinstance(rule, MaximumLikelihood):
            raise ValueError(
                "Expected a model whose visible layer are the data, for "
                f"MaximumLikelihood. Received: {type(self).__name__} '{self.name}'. "
                "Use the rule 'pcd'."
            )
        if getattr(rule, "sparsity_cost", 0.0):
            raise ValueError(
                "Expected no sparsity target for a deep model: it would reach every "
                f"second hidden layer only. Received: {rule!r}. Leave it out."
            )

    def _complete(self, visible):
        """Returns `(v, E[h_2], ...)`, the means by mean field, (B, V + H_2 + …)."""
        even = self._mean_field(visible).visible
        return tf.concat([visible, even], 1)

    def _mean_field(self, visible):
        posterior = self.posterior(visible)
        if isinstance(self.inference, inference_module.MeanField):
            return self.inference(posterior, pairwise=None)
        return inference_module.mean_field(posterior, pairwise=None)

    def _positive(self, potentials, visible, weights, hidden_natural):
        """Returns the `Moments` of completed states, by the model's inference."""
        if isinstance(self.inference, inference_module.MeanField):
            return super()._positive(potentials, visible, weights, hidden_natural)
        visible = visible[:, : self._sizes[0]]
        beliefs = self.inference(self.posterior(visible), weights=weights)
        with_data = tf.matmul(
            visible * weights[:, tf.newaxis], beliefs.hidden, transpose_a=True
        )
        kernel = tf.concat([with_data, beliefs.pairwise], 0)
        if self.kernel_mask is not None:
            kernel *= self.kernel_mask
        states = tf.concat([visible, beliefs.visible], 1)
        statistics = (
            potentials.visible.statistics(states),
            potentials.hidden.statistics(beliefs.hidden),
        )
        return inference_module.Moments(kernel, *statistics, weights)

    def call(self, inputs):
        inputs = tf.cast(inputs, self.variable_dtype)
        beliefs = self.inference(self.posterior(inputs), pairwise=None)
        _, *hidden = layered.both_sides(
            tf.concat([inputs, beliefs.visible], 1), beliefs.hidden, self._sizes
        )
        # Training is the rules' matter: nothing flows back through the sweeps.
        features = tf.stop_gradient(tf.concat(hidden, 1))
        return tf.cast(features, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], sum(self.hidden_units))

    def reconstruct(self, x):
        """Returns the expected visible state given `E[h_1 | v]`, see `predict`.

        Args:
            x: array (B, V).

        Returns:
            tensor (B, V).
        """
        values = self._visible_values(x, "reconstruct")
        return map_rows(self._reconstruct, values)

    def _reconstruct(self, visible):
        first = self(visible)[:, : self.hidden_units[0]]
        kernel = tf.cast(self.kernel, first.dtype)
        inputs = tf.matmul(first, kernel, transpose_b=True)
        return tf.sigmoid(tf.cast(inputs, tf.float32) + self.visible_bias)

    def variational_free_energy(self, x):
        """Computes an upper bound of `-log sum_h exp(-E(v, h))`, by mean field.

        Args:
            x: array (B, V).

        Returns:
            tensor (B,), nats.
        """
        values = self._visible_values(x, "variational_free_energy")
        return map_rows(self._variational_free_energy, values)

    def _variational_free_energy(self, visible):
        own = tf.linalg.matvec(visible, tf.convert_to_tensor(self.visible_bias))
        return -own - self._mean_field(visible).log_partition

    def log_likelihood_bound(self, x, log_partition=None):
        """Computes the variational lower bound of `log p(v)`, by mean field.

        Args:
            x: array (B, V).
            log_partition: `LogPartition` or a number, from `log_partition`, or the
                name of a method to compute it by now (`"exact"`, by default `"ais"`,
                with which the bound is optimistic).

        Returns:
            tensor (B,), nats, float64. The error of log Z is common to all examples.
        """
        values = self._visible_states(x, "log_likelihood_bound")
        value = self._log_partition_value(log_partition)
        return -tf.cast(self.variational_free_energy(values), tf.float64) - value

    def log_partition(self, method="ais", *, initial_visible=None, **kwargs):
        """Computes or estimates `log Z`, as `RBM.log_partition` does.

        `initial_visible` is not taken: chains are states of all layers.
        """
        if initial_visible is not None:
            raise ValueError(
                "Expected no initial_visible: the chains are states of all layers. "
                "Received: initial_visible. Leave it out, and give steps= of chains."
            )
        return super().log_partition(method, **kwargs)

    def sample(
        self, num_samples, *, steps=1000, initial_visible=None, clamp=None, seed=None
    ):
        """Draws visible states by block Gibbs sampling of all layers.

        Args:
            num_samples: int ≥ 1, number of independent chains.
            steps: int ≥ 0, sweeps of each chain.
            initial_visible: array (num_samples, V) to start from; by default drawn
                from the base rate. The hidden layers start at their means given it.
            clamp: bool array (V,) or (num_samples, V), units that keep the value
                they start with (completion).
            seed: int; by default drawn from the model's generator.

        Returns:
            tensor (num_samples, V).

        Raises:
            ValueError: if a count or shape is wrong, or `clamp` comes without
                `initial_visible`.
        """
        self._assert_built("sample")
        check_sizes(num_samples=num_samples)
        shape = (num_samples, self._sizes[0])
        visible, clamp, seed = checked_chains(
            self, shape, steps, initial_visible, clamp, seed
        )
        if visible is None:
            noise = random.uniform(shape, random.fold_in(seed, -1))
            visible = tf.cast(noise < self.base_rate, tf.float32)
        states = self._complete(visible)
        if clamp is not None:
            free = tf.shape(states)[1] - self._sizes[0]
            clamp = tf.broadcast_to(clamp, shape)
            clamp = tf.pad(clamp, [[0, 0], [0, free]])
        potentials = self.potentials()
        chains = gibbs_chain(potentials, states, seed, num_sweeps=steps, clamp=clamp)
        return chains[:, : self._sizes[0]]

    def endpoints(self):
        """Returns what the exported model answers: a dict of name to `Endpoint`."""
        x = [rows(self._sizes[0])]
        transform = Endpoint(named("features", self.call), x)
        energy = named("free_energy", self._variational_free_energy)
        return {
            "serving_default": transform,
            "transform": transform,
            "reconstruct": Endpoint(named("visible", self._reconstruct), x),
            "variational_free_energy": Endpoint(energy, x),
        } | chain_endpoints(self.sample, number("num_samples"))
