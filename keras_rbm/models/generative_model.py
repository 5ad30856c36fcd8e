"""What follows from a model's potentials alone: scores, features back, samples."""

import tensorflow as tf

from keras_rbm import inference
from keras_rbm.checks import check_counts
from keras_rbm.models.boltzmann_machine import BoltzmannMachine
from keras_rbm.models.exporting import Endpoint, named, number, rows, sampling
from keras_rbm.models.inputs import as_rows
from keras_rbm.models.sampling import draw, draw_tempered

_ROWS_AT_ONCE = 1000


class GenerativeModel(BoltzmannMachine):
    """A Boltzmann machine without input, a model of p(v).

    A subclass makes `base_rate` and the visible units' variables (`visible_bias`, …)
    and implements `potentials` and `gradients`. Called on data it returns
    `E[h | v]`, (B, H).
    """

    def base(self, potentials):
        """Returns visible natural parameters (V,) of the base-rate model."""
        rate = tf.cast(self.base_rate, self.variable_dtype)
        return potentials.visible.natural_for_mean(rate)

    def adapt(self, data):
        """Fits the isolated visible units to data, before training.

        Sets the visible bias (for Gaussian units also the precision, or shift and
        scale) so that the model without coupling has the data's mean, the *base
        rate*; annealed importance sampling starts from it.

        Args:
            data: array (N, V) or `tf.data.Dataset`.
        """
        rows = as_rows(data)
        self.check_visible(rows, "data")
        if not self.built:
            self.build(tuple(rows.shape))
        mean, variance = (m.numpy() for m in tf.nn.moments(rows, 0))
        self.base_rate.assign(mean)
        for name, value in self.visible.fitted(mean, variance).items():
            getattr(self, f"visible_{name}").assign(value)
        if self.rule is not None:
            self.rule.adapt(self)

    def call(self, inputs):
        potentials = self.potentials()
        inputs = tf.cast(inputs, self.variable_dtype)
        features = potentials.hidden.mean(potentials.hidden_natural(inputs))
        features = _with_zero_gradients(features, *tf.nest.flatten(potentials.visible))
        return tf.cast(features, self.compute_dtype)

    def endpoints(self):
        """Returns what the exported model answers: a dict of name to `Endpoint`."""
        visible = [rows(self.kernel.shape[0])]
        transform = Endpoint(named("features", self.call), visible)
        counts = [number("num_samples"), number("steps")]

        def sample(num_samples, steps, seed=None):
            return self.sample(num_samples, steps=steps, seed=seed)

        return {
            "serving_default": transform,
            "transform": transform,
            "reconstruct": Endpoint(named("visible", self._reconstruct), visible),
            "free_energy": Endpoint(named("free_energy", self.free_energy), visible),
        } | sampling(sample, counts)

    def roles(self, x, y):
        if y is not None:
            raise ValueError(
                "Expected data without targets: an RBM learns p(x). Received: y. Call "
                "fit(x), or drop the targets of a dataset: "
                "dataset.map(lambda x, y: x)."
            )
        return None, x

    def reconstruct(self, x):
        """Returns the expected visible state after one way up and down.

        Args:
            x: array (B, V).

        Returns:
            tensor (B, V), `E[v | h = E[h | v]]`.
        """
        rows = self.visible_rows(x, "reconstruct")
        return _in_chunks(self._reconstruct, rows)

    def _reconstruct(self, visible):
        potentials = self.potentials()
        hidden = potentials.hidden.mean(potentials.hidden_natural(visible))
        return potentials.visible.mean(potentials.visible_natural(hidden))

    def prediction(self, features, visible):
        """Returns what compiled metrics compare with v: its reconstruction."""
        return self._reconstruct(visible)

    def free_energy(self, x):
        """Computes `F(v) = -log sum_h exp(-E(v, h))`.

        Args:
            x: array (B, V).

        Returns:
            tensor (B,), nats.
        """
        rows = self.visible_rows(x, "free_energy")
        return _in_chunks(self.potentials().free_energy, rows)

    def pseudo_log_likelihood(self, x):
        """Computes `sum_i log p(v_i | all other v)`; binary visible units only.

        Args:
            x: array (B, V).

        Returns:
            tensor (B,), nats.
        """
        rows = self.visible_rows(x, "pseudo_log_likelihood")
        potentials = self.potentials()
        return _in_chunks(
            lambda v: inference.pseudo_log_likelihood(potentials, v), rows
        )

    def log_partition(
        self,
        method="ais",
        *,
        num_chains=100,
        betas=None,
        initial_visible=None,
        steps=1000,
        seed=0,
        progress=False,
    ):
        """Computes or estimates `log Z`.

        Args:
            method: `"exact"` (enumerates up to 25 units), `"ais"` (forward
                annealing: too low on average, so likelihoods are optimistic),
                `"reverse_ais"` (annealing model samples back to the base rate: too
                high on average if the samples are exact, else a diagnostic) or
                `"tempering"` (bridge sampling between tempered replicas). For
                binary units also `"bethe"` (sum-product; error not known) and
                `"mean_field"` (a lower bound).
            num_chains, betas, seed: of the sampling methods, and `progress`, of the
                two annealing methods, see
                `keras_rbm.inference.estimate_log_partition`.
            initial_visible: of `"reverse_ais"`.
            steps: of `"reverse_ais"` and `"tempering"`.

        Returns:
            `keras_rbm.inference.LogPartition`, nats.

        Raises:
            ValueError: if the method is unknown, the model too large to enumerate,
                or an argument out of range.
        """
        self.assert_built("log_partition")
        potentials = self.potentials()
        if initial_visible is not None:
            initial_visible = self.visible_rows(initial_visible, "log_partition")
        return inference.estimate_log_partition(
            potentials,
            method,
            base=self.base(potentials),
            betas=betas,
            num_chains=num_chains,
            initial_visible=initial_visible,
            steps=steps,
            seed=seed,
            progress=progress,
        )

    def log_likelihood(self, x, log_partition=None):
        """Computes `log p(v) = -F(v) - log Z`.

        Args:
            x: array (B, V).
            log_partition: `LogPartition` or a number, from `log_partition`, or the
                name of a method to compute it by now (`"exact"`, by default `"ais"`).

        Returns:
            tensor (B,), nats, float64. As good as log Z: its error is common to all
            examples.
        """
        rows = self.visible_rows(x, "log_likelihood")
        if log_partition is None or isinstance(log_partition, str):
            log_partition = self.log_partition(log_partition or "ais")
        value = getattr(log_partition, "value", log_partition)
        free_energy = tf.cast(self.free_energy(rows), tf.float64)
        return -free_energy - tf.cast(value, tf.float64)

    def annealed_log_likelihood(
        self, x, *, num_chains=10, betas=1000, seed=0, progress=False
    ):
        """Estimates the log-likelihood of the annealed sampler, from below (RAISE).

        See `keras_rbm.inference.annealed_log_likelihood`: a lower bound, in
        expectation, of the likelihood of a sampler that is near the model, where
        forward annealing is optimistic about the model itself.

        Args:
            x: array (B, V), some hundred examples.
            num_chains: int ≥ 1, chains for each example.
            betas, seed, progress: as in `log_partition`.

        Returns:
            tensor (B,), nats, float64.
        """
        rows = self.visible_rows(x, "annealed_log_likelihood")
        potentials = self.potentials()
        return inference.annealed_log_likelihood(
            potentials,
            rows,
            base=self.base(potentials),
            betas=betas,
            num_chains=num_chains,
            seed=seed,
            progress=progress,
        )

    def sample(
        self,
        num_samples,
        *,
        steps=1000,
        method="gibbs",
        betas=10,
        initial_visible=None,
        clamp=None,
        seed=None,
    ):
        """Draws visible states by block Gibbs sampling or parallel tempering.

        Args:
            num_samples: int ≥ 1, number of independent chains.
            steps: int ≥ 0, sweeps of each chain.
            method: `"gibbs"`, or `"tempering"`, which mixes between modes at the
                cost of a chain for each temperature, see
                `keras_rbm.inference.parallel_tempering`.
            betas: inverse temperatures of `"tempering"`, as
                `keras_rbm.inference.temperatures` takes them.
            initial_visible: array (num_samples, V) to start from; by default drawn
                from the base rate.
            clamp: bool array (V,) or (num_samples, V), units that keep the value
                they start with (completion).
            seed: int; by default drawn from the model's generator.

        Returns:
            tensor (num_samples, V). For smooth pictures take `reconstruct` of it.

        Raises:
            ValueError: if a count or shape is wrong, the method is unknown, or
                `clamp` comes without `initial_visible`.
        """
        self.assert_built("sample")
        if not tf.is_tensor(num_samples):
            check_counts(num_samples=num_samples)
        potentials = self.potentials()
        shape = (num_samples, potentials.num_visible)
        base = self.base(potentials)
        chains = {"initial_visible": initial_visible, "clamp": clamp, "seed": seed}
        if method == "gibbs":
            return draw(self, potentials, base, shape, steps, **chains)
        if method == "tempering":
            return draw_tempered(self, potentials, base, shape, steps, betas, **chains)
        raise ValueError(
            f"Expected method 'gibbs' or 'tempering'. Received: method={method!r}."
        )


@tf.custom_gradient
def _with_zero_gradients(features, *others):
    """Returns `features`; gradients with respect to `others` are 0, not `None`.

    When the model is fine-tuned as a layer, its visible side has no part in the
    output; with `None` Keras would warn at every step.
    """

    def gradient(upstream):
        return (upstream, *(tf.zeros_like(other) for other in others))

    return tf.identity(features), gradient


def _in_chunks(function, rows):
    """Applies a function of (B, V) to many rows, so that memory stays bounded."""
    if not tf.executing_eagerly() or len(rows) <= _ROWS_AT_ONCE:
        return function(rows)
    starts = range(0, len(rows), _ROWS_AT_ONCE)
    return tf.concat([function(rows[i : i + _ROWS_AT_ONCE]) for i in starts], 0)
