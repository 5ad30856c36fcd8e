"""Samples that follow a model while it grows."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.gibbs import gibbs_chain
from keras_rbm.inference.growing.frank_wolfe import DataAndSamples
from keras_rbm.inference.growing.reweighting import Descended, random_rows

#: Factor of the number of sweeps when chains start.
_BURN_IN = 20
#: Fewest chains that judge: with fewer, their error would be too random.
_LEAST_JUDGES = 20
#: Standard error of log Z, in nats, from which it is estimated again by annealing.
_LARGEST_ERROR = 0.2


class GrowingSamples:
    """Chains of a growing model, its log Z, and the means that its biases fit.

    Args:
        num_samples: int ≥ 2, S, chains that searches use; half as many more judge.
        gibbs_steps: int ≥ 1, sweeps before a step; more when the chains start.

    Attributes:
        chains: variable (S + J, V), visible states; the last J judge.
        families: variable (J,), families of the held-out chains: those of one family
            descend from one chain.
        log_partition: variable, the sum of the held-out chains' estimates; NaN if its
            starting value is not known.
        log_partition_error: variable, its standard error.
    """

    def __init__(self, num_samples, gibbs_steps):
        self.num_samples = num_samples
        self.gibbs_steps = gibbs_steps
        self.chains = self.families = self.log_partition = self.log_partition_error = (
            None
        )

    def build(self, rule, model):
        """Creates the rule's variables."""
        num_visible = model.kernel.shape[0]
        count = self.num_samples + max(_LEAST_JUDGES, self.num_samples // 2)
        seed = model.next_seed()

        def initializer(shape, dtype=None):
            return tf.cast(random.uniform(shape, seed) < 0.5, dtype)

        unknown = keras.initializers.Constant(np.nan)
        self.chains = rule.add_variable("chains", (count, num_visible), initializer)
        self.families = rule.add_variable(
            "families", (count - self.num_samples,), _numbers
        )
        self.log_partition = rule.add_variable("log_partition", (), unknown)
        self.log_partition_error = rule.add_variable("log_partition_error", (), "zeros")
        self._fitted_means = rule.add_variable("fitted_means", (num_visible,), "zeros")
        self._started = rule.add_variable("started", (), "zeros")
        self._left_at = rule.add_variable("left_at", (4,), "zeros")

    def begin(self, model):
        """Starts again if something other than the rule has changed the model."""
        left = self._started.numpy() and np.allclose(
            self._left_at.numpy(), _fingerprint(model), rtol=1e-5
        )
        if not left:
            self._started.assign(0.0)
        known = left and np.isfinite(self.log_partition.numpy())
        if not known and model.temperature > 0.0:
            self._anneal(model)

    def anchor(self, model, logs):
        """Estimates log Z again if its error has become large; called each epoch."""
        if self.log_partition_error > _LARGEST_ERROR:
            self._anneal(model)
            for name in ("log_partition", "log_partition_error"):
                logs[name] = float(getattr(self, name).numpy())

    def _anneal(self, model):
        z = model.log_partition("bidirectional")
        known = np.isnan(self.log_partition.numpy()) or z.stderr < 1.0
        if known:  # an estimate without an error is no better than the running one
            self.log_partition.assign(z.value)
            self.log_partition_error.assign(z.stderr)

    def leave(self, model):
        """Records the state of the model after a step."""
        self._left_at.assign(_fingerprint(model))

    def advance(self, model, visible, weights, mean, seed):
        """Makes the sweeps before a step; while no unit is in use, fits the biases."""
        started = self._started > 0.0
        potentials = model._growing_potentials()
        independent = tf.reduce_all(potentials.hidden.coefficients == 0.0)
        bias = potentials.visible.natural_for_mean(mean)
        for variable, value, where in (
            (model.visible_bias, bias, independent),
            (self.log_partition, tf.reduce_sum(tf.math.softplus(bias)), independent),
            (self.log_partition_error, 0.0, independent),
            (self._fitted_means, mean, independent | ~started),
        ):
            variable.assign(tf.where(where, value, variable))
        # A trained model has its modes where the data are.
        count = self.chains.shape[0]
        rows = random_rows(visible, weights, count, random.fold_in(seed, 0))
        chains = gibbs_chain(
            model._growing_potentials(),
            tf.where(started, tf.convert_to_tensor(self.chains), rows),
            random.fold_in(seed, 1),
            num_sweeps=self.gibbs_steps * tf.where(started, 1, _BURN_IN),
        )
        self.chains.assign(chains)
        own = _numbers(self.families.shape, self.families.dtype)
        self.families.assign(tf.where(started, self.families, own))
        self._started.assign(1.0)

    def log_partition_now(self):
        """Returns log Z of the model and its error, as tensors; NaN if unknown."""
        known = self.log_partition, self.log_partition_error
        return tuple(map(tf.convert_to_tensor, known))

    def phases(self, visible, weights):
        """Returns `DataAndSamples` of a step: its data, the samples of its search."""
        samples = tf.convert_to_tensor(self.chains)[: self.num_samples]
        each = tf.fill([self.num_samples], 1.0 / self.num_samples)
        return DataAndSamples(visible, weights, samples, each)

    def held_out_chains(self):
        """Returns the samples that no search uses, `Descended`, (J, V)."""
        chains = tf.convert_to_tensor(self.chains)[self.num_samples :]
        return Descended(chains, tf.cast(self.families, tf.int32))

    def drift(self, mean):
        """Returns how far the data's mean is from that to which biases were fitted."""
        return mean - self._fitted_means

    def take(self, model, refit, mean):
        """Takes over a changed model, whose biases were fitted to this mean."""
        model.visible_bias.assign(refit.visible_bias)
        visible, families = refit.held_out_chains
        self.chains.assign(tf.concat([refit.visible, visible], 0))
        self.families.assign(tf.cast(families, self.families.dtype))
        self._fitted_means.assign(mean)
        self.log_partition.assign_add(refit.log_ratio)
        error = tf.sqrt(self.log_partition_error**2 + refit.gain_error**2)
        self.log_partition_error.assign(error)


def _numbers(shape, dtype=None):
    return tf.cast(tf.range(shape[0]), dtype)


def _fingerprint(model):
    """Returns numbers (4,) that reveal a change of the model."""
    squares = [
        tf.reduce_sum(tf.square(variable))
        for variable in (model.kernel, model.visible_bias, model.hidden_bias)
    ]
    return tf.stack([*squares, tf.reduce_sum(model.coefficients)])


class Growing(keras.callbacks.Callback):
    """Prepares the samples when `fit` begins, and ends it if there is no more room."""

    def __init__(self, samples):
        super().__init__()
        self.samples = samples

    def on_train_begin(self, logs=None):
        self.samples.begin(self.model)

    def on_epoch_end(self, epoch, logs=None):
        self.samples.anchor(self.model, logs)
        if self.model.is_full:
            self.model.stop_training = True
