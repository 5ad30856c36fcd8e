"""Features, a bound of the likelihood, and samples of a stack of RBMs."""

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.checks import check_counts
from keras_rbm.inference.gibbs import (
    sample_hidden_given_visible,
    sample_visible_given_hidden,
)
from keras_rbm.inference.potentials import log_conditional
from keras_rbm.models.workflow.exporting import (
    Endpoint,
    chain_endpoints,
    named,
    number,
    rows,
)
from keras_rbm.models.workflow.faults import explained
from keras_rbm.models.workflow.rows import map_rows, row_chunks
from keras_rbm.models.workflow.stored_model import StoredModel


class StackedModel(StoredModel):
    """A model of p(v) by `rbms`, from the data upwards, whose top RBM is a prior.

    Called on data, it returns the features of the top, computed by means in each layer.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.autocast = False  # as in its RBMs: bfloat16 has no 257

    def _parts(self):
        return self.rbms

    def call(self, inputs):
        top = self.rbms[-1]
        return tf.cast(self._way_up_in_means(inputs), top.compute_dtype)

    def _way_up_in_means(self, inputs):
        below = self.rbms[0]
        means = below.visible.encode(tf.cast(inputs, below.variable_dtype))
        for rbm in self.rbms:
            means = rbm._features_of_mean(means)
        return means

    def compute_output_shape(self, input_shape):
        return self.rbms[-1].compute_output_shape(input_shape)

    def predict(self, x, batch_size: int | None = None, *args, **kwargs) -> np.ndarray:
        """Returns the features of the top for data, as `keras.Model.predict` does."""
        x = self.rbms[0]._checked_features(x, "predict", batch_size)
        with explained():
            return super().predict(x, batch_size, *args, **kwargs)

    def predict_on_batch(self, x):
        """Returns the features of the top, as `keras.Model.predict_on_batch` does."""
        return super().predict_on_batch(self.rbms[0]._checked_feature_batch(x))

    def _assert_built(self, method):
        """Raises a ValueError if the model has no variables yet."""
        self.rbms[0]._assert_built(method)
        if not self.built:  # the first RBM was built on its own
            self.build((None, self.rbms[0]._visible_width))

    def endpoints(self):
        """Returns the exported model's functions: a dict of name to `Endpoint`."""
        visible = [rows(self.rbms[0]._visible_width)]
        transform = Endpoint(named("features", self.call), visible)

        return {
            "serving_default": transform,
            "transform": transform,
            "reconstruct": Endpoint(named("visible", self._reconstruct), visible),
        } | chain_endpoints(self.sample, number("num_samples"))

    def reconstruct(self, x) -> tf.Tensor:
        """Returns the expected visible state after one way up and down, in means.

        Args:
            x: array (B, V).

        Returns:
            tensor (B, V); for categorical units the probabilities, q columns per unit.
        """
        values = self.rbms[0]._visible_values(x, "reconstruct")
        return map_rows(self._reconstruct, values)

    def _reconstruct(self, visible):
        states = self._way_up_in_means(visible)
        for rbm in reversed(self.rbms):
            potentials = rbm.potentials()
            natural = potentials.visible_natural_of_mean(states)
            states = potentials.visible.mean(natural)
        return states

    def sample(
        self, num_samples: int, *, steps: int = 1000, seed: int | None = None, **kwargs
    ) -> tf.Tensor:
        """Draws visible states: a chain in the top RBM, then one way down.

        Args:
            num_samples: int ≥ 1, number of independent chains.
            steps: int ≥ 0, sweeps of each chain.
            seed: int; by default drawn from the top RBM's generator.
            **kwargs: `method`, `betas`, `initial_visible`, `clamp` of the chains, as in
                `RBM.sample` of the top RBM.

        Returns:
            tensor (num_samples, V).
        """
        self._assert_built("sample")
        top = self.rbms[-1]
        before = tf.identity(top.seed_generator.state)
        seed = top.next_seed() if seed is None else random.as_seed(seed)
        try:
            states = top.sample(num_samples, steps=steps, seed=seed, **kwargs)
        except (TypeError, ValueError):
            top.seed_generator.state.assign(before)
            raise
        down = random.fold_in(seed, -2)
        for level, rbm in reversed(list(enumerate(self.rbms[:-1]))):
            fresh = random.fold_in(down, level)
            states = sample_visible_given_hidden(rbm.potentials(), states, fresh)
        return states

    def log_likelihood_bound(
        self, x, log_partition=None, *, num_samples: int = 10, seed: int = 0
    ) -> tf.Tensor:
        """Estimates the variational lower bound of `log p(v)`.

        `E_q[log p(v | h_1) - log q(h_1 | v) + log p_top(h_1)]` for two RBMs, the mean
        over samples of the way up. It is tight if q is the posterior.

        Args:
            x: array (B, V).
            log_partition: of the top RBM, as in `RBM.log_likelihood`; by default by
                annealed importance sampling, with which the bound is optimistic.
            num_samples: int ≥ 1, samples of the way up for each example.
            seed: int.

        Returns:
            tensor (B,), nats, float64: unbiased up to the error of log Z.

        References:
            1. Salakhutdinov, Murray. On the quantitative analysis of deep belief
               networks. ICML 2008.
        """
        check_counts(num_samples=num_samples)
        values = self.rbms[0]._visible_states(x, "log_likelihood_bound")
        top = self.rbms[-1]
        log_partition = top._log_partition_value(log_partition)
        bounds = []
        for part, visible in enumerate(row_chunks(values)):
            own = random.fold_in(seed, -part) if part else seed
            bound = tf.zeros(len(visible), tf.float64)
            for index in range(num_samples):
                states, gain = self._way_up(visible, random.fold_in(own, index))
                bound += gain + top.log_likelihood(states, log_partition)
            bounds.append(bound / num_samples)
        return tf.concat(bounds, 0)

    def _way_up(self, states, seed):
        """Returns the top RBM's visible states, and log p - log q of layers below."""
        gain = tf.zeros(len(states), tf.float64)
        for level, rbm in enumerate(self.rbms[:-1]):
            potentials = rbm.potentials(dtype=rbm.variable_dtype)
            hidden = sample_hidden_given_visible(
                potentials, states, random.fold_in(seed, level)
            )
            down = potentials.visible_natural(hidden)
            up = potentials.hidden_natural(states)
            difference = log_conditional(potentials.visible, states, down)
            difference -= log_conditional(potentials.hidden, hidden, up)
            gain += tf.cast(difference, tf.float64)
            states = hidden
        return states, gain
