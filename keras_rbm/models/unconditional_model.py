"""What every model of p(v) shares: its base rate, and its partition function."""

import tensorflow as tf

from keras_rbm import inference
from keras_rbm.models.boltzmann_machine import BoltzmannMachine
from keras_rbm.models.inputs import as_rows
from keras_rbm.models.spread_chains import spread_log_partition


class UnconditionalModel(BoltzmannMachine):
    """A Boltzmann machine without input, a model of p(v).

    A subclass makes `base_rate` and the visible units' variables (`visible_bias`, …).
    """

    def base(self, potentials):
        """Returns visible natural parameters (V,) of the base-rate model."""
        return potentials.visible.natural_for_mean(self.mean_states())

    def mean_states(self):
        """Returns the mean state of the visible layer, where the model starts, (V,)."""
        return tf.cast(self.base_rate, self.variable_dtype)

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

    def roles(self, x, y):
        if y is not None:
            raise ValueError(
                "Expected data without targets: an RBM learns p(x). Received: y. Call "
                "fit(x), or drop the targets of a dataset: "
                "dataset.map(lambda x, y: x)."
            )
        return None, x

    def prediction(self, features, visible):
        """Returns what compiled metrics compare with v: its reconstruction."""
        return self._reconstruct(visible)

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

        Under a distribution strategy each replica anneals a share of the chains,
        without a progress bar.

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
        options = {
            "betas": betas,
            "num_chains": num_chains,
            "initial_visible": initial_visible,
            "steps": steps,
            "seed": seed,
        }
        distributed = self.distribute_strategy.num_replicas_in_sync > 1
        if distributed and method in ("ais", "reverse_ais"):
            return spread_log_partition(self, method, **options)
        return inference.estimate_log_partition(
            potentials,
            method,
            base=self.base(potentials),
            progress=progress,
            **options,
        )

    def log_partition_value(self, log_partition):
        """Returns `log Z`, float64, of what likelihoods take for it.

        Args:
            log_partition: `LogPartition`, a number, the name of a method to compute
                it by now, or `None` for `"ais"`.

        Raises:
            ValueError: if it is anything else.
        """
        if log_partition is None or isinstance(log_partition, str):
            log_partition = self.log_partition(log_partition or "ais")
        value = tf.convert_to_tensor(getattr(log_partition, "value", log_partition))
        if value.shape.rank != 0:
            raise ValueError(
                "Expected log_partition as a LogPartition or one number, in nats. "
                f"Received: {log_partition!r}. Pass what log_partition() returned."
            )
        return tf.cast(value, tf.float64)
