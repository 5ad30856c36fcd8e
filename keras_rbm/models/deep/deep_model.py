"""Features, scores and samples of deep models, from their potentials."""

import tensorflow as tf

from keras_rbm import inference as inference_module
from keras_rbm import random
from keras_rbm.inference.arguments import check_sizes
from keras_rbm.inference.gibbs import gibbs_chain
from keras_rbm.inference.potentials import own_log_weight
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
from keras_rbm.units.bernoulli import are_binary


class DeepModel(WithInference, UnconditionalModel):
    """A model of p(v) with several hidden layers, which are inferred given v.

    A subclass sets its variables, `visible` and `hidden` (a list of types), `_sizes`
    and `_rows` (the layers' columns of states and rows of kernels, from the data
    upwards) and `_inference`, and implements `potentials`, `posterior`, `gradients`,
    `descend`. Called on data, it returns `E[h | v]` of all hidden layers, side by side
    from below.
    """

    def _check_inference(self, inference):
        super()._check_inference(inference)
        if inference.finds_state:
            raise ValueError(
                "Expected inference that yields marginals. Received: "
                f"inference={inference!r}. Use MeanField() or "
                "BeliefPropagation('sum_product')."
            )

    def _check_rule(self, rule, optimizer=None):
        if isinstance(rule, MaximumLikelihood):
            raise ValueError(
                "Expected a model whose visible layer is only the data, for "
                f"MaximumLikelihood. Received: {type(self).__name__} '{self.name}'. "
                "Use the rule 'pcd'."
            )
        super()._check_rule(rule, optimizer)
        if getattr(rule, "sparsity_cost", 0.0):
            raise ValueError(
                "Expected no sparsity target for a deep model: it would reach only "
                f"every second hidden layer. Received: {rule!r}. Leave it out."
            )

    def _complete(self, visible, seed):
        """Returns `(v, h_2, h_4, …)` by mean field, (B, V + H_2 + …).

        Binary layers enter with their means; others are drawn.
        """
        posterior = self.posterior(visible)
        beliefs = self._mean_field(posterior)
        if are_binary(*self.hidden[1::2]):
            return tf.concat([visible, beliefs.visible], 1)
        natural = posterior.visible_natural_of_mean(beliefs.hidden)
        return tf.concat([visible, posterior.visible.draw(natural, seed)], 1)

    def _mean_field(self, posterior):
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
        sizes = [self._sizes[0], *self._rows[1:]]
        _, *hidden = layered.both_sides(
            tf.concat([inputs, beliefs.visible], 1), beliefs.hidden, sizes
        )
        # Rules train the model: no gradient flows back through the sweeps.
        features = tf.stop_gradient(tf.concat(hidden, 1))
        return tf.cast(features, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], sum(self._rows[1:]))

    def reconstruct(self, x) -> tf.Tensor:
        """Returns the expected visible state given `E[h_1 | v]`, see `predict`.

        Args:
            x: array (B, V).

        Returns:
            tensor (B, V); for categorical units the probabilities, q columns per unit.
        """
        values = self._visible_values(x, "reconstruct")
        return map_rows(self._reconstruct, values)

    def _reconstruct(self, visible):
        below, above, *_ = self._each_layer()
        means = tf.cast(self(visible)[:, : self._rows[1]], self.variable_dtype)
        kernel = tf.cast(self.kernel, self.compute_dtype)
        potentials = inference_module.Potentials(kernel, below, above)
        return below.mean(potentials.visible_natural_of_mean(means))

    def variational_free_energy(self, x) -> tf.Tensor:
        """Computes an upper bound of `-log sum_h exp(-E(v, h))`, by mean field.

        Args:
            x: array (B, V).

        Returns:
            tensor (B,), nats.
        """
        values = self._visible_values(x, "variational_free_energy")
        return map_rows(self._variational_free_energy, values)

    def _variational_free_energy(self, visible):
        own = own_log_weight(self._visible_parameters(), visible)
        posterior = self.posterior(visible, self.variable_dtype)
        return -own - self._mean_field(posterior).log_partition

    def log_likelihood_bound(self, x, log_partition=None) -> tf.Tensor:
        """Computes the variational lower bound of `log p(v)`, by mean field.

        Args:
            x: array (B, V).
            log_partition: `LogPartition` or a number, from `log_partition`, or the
                name of a method to compute it with (`"exact"`, by default `"ais"`,
                with which the bound is optimistic).

        Returns:
            tensor (B,), nats, float64. The error of log Z is common to all examples.
        """
        values = self._visible_states(x, "log_likelihood_bound")
        value = self._log_partition_value(log_partition)
        return -tf.cast(self.variational_free_energy(values), tf.float64) - value

    def log_partition(
        self, method: str = "ais", *, initial_visible=None, **kwargs
    ) -> inference_module.LogPartition:
        """Computes or estimates `log Z`, as `RBM.log_partition` does.

        `initial_visible` is not supported: chains are states of all layers.
        """
        if initial_visible is not None:
            raise ValueError(
                "Expected no initial_visible: the chains are states of all layers. "
                "Received: initial_visible. Leave it out, and pass steps= instead."
            )
        return super().log_partition(method, **kwargs)

    def sample(
        self,
        num_samples: int,
        *,
        steps: int = 1000,
        initial_visible=None,
        clamp=None,
        seed: int | None = None,
    ) -> tf.Tensor:
        """Draws visible states by block Gibbs sampling of all layers.

        Args:
            num_samples: int ≥ 1, number of independent chains.
            steps: int ≥ 0, sweeps of each chain.
            initial_visible: array (num_samples, V) to start from; by default drawn
                from the base rate. The hidden layers start at mean field given it.
            clamp: bool array (V,) or (num_samples, V), units that keep the value
                they start with (completion).
            seed: int; by default drawn from the model's generator.

        Returns:
            tensor (num_samples, V).

        Raises:
            ValueError: if a count or shape is wrong, or `clamp` is given without
                `initial_visible`.
        """
        self._assert_built("sample")
        check_sizes(num_samples=num_samples)
        shape = (num_samples, self._sizes[0])
        visible, clamp, seed = checked_chains(
            self, shape, steps, initial_visible, clamp, seed
        )
        if visible is None:
            below = self._visible_parameters()
            natural = below.natural_for_mean(tf.convert_to_tensor(self.base_rate))
            natural = tf.broadcast_to(natural, (num_samples, self._rows[0]))
            visible = below.draw(natural, random.fold_in(seed, -1))
        states = self._complete(visible, random.fold_in(seed, -2))
        if clamp is not None:
            free = tf.shape(states)[1] - self._sizes[0]
            clamp = tf.broadcast_to(clamp, shape)
            clamp = tf.pad(clamp, [[0, 0], [0, free]])
        potentials = self.potentials()
        chains = gibbs_chain(potentials, states, seed, num_sweeps=steps, clamp=clamp)
        return chains[:, : self._sizes[0]]

    def endpoints(self):
        """Returns the exported model's functions: a dict of name to `Endpoint`."""
        x = [rows(self._sizes[0])]
        transform = Endpoint(named("features", self.call), x)
        energy = named("free_energy", self._variational_free_energy)
        return {
            "serving_default": transform,
            "transform": transform,
            "reconstruct": Endpoint(named("visible", self._reconstruct), x),
            "variational_free_energy": Endpoint(energy, x),
        } | chain_endpoints(self.sample, number("num_samples"))
