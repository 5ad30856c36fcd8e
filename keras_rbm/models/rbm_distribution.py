"""An RBM as a distribution of TensorFlow Probability."""

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from keras_rbm import random
from keras_rbm.inference.exact import digits_of, enumerated, exact_moments, is_quick
from keras_rbm.inference.gibbs import sample_hidden_given_visible
from keras_rbm.inference.potentials import finite_layers, num_states
from keras_rbm.inference.traces import full_precision
from keras_rbm.models.data.row_checks import all_known
from keras_rbm.models.data.rows import map_rows
from keras_rbm.models.layer_variables import check_fingerprint
from keras_rbm.models.sampling import draw
from keras_rbm.units.bernoulli import BernoulliParameters, SpinParameters
from keras_rbm.units.gaussian import GaussianParameters

#: Chains that a mean is taken over that is not exact; log2 of the states that are
#: compared for the likeliest; units whose variance follows from their statistics.
_CHAINS, _MOST_BITS = 1000, 20
_WITH_VARIANCE = BernoulliParameters, SpinParameters, GaussianParameters


class RBMDistribution(tfp.distributions.Distribution):
    """p(v) of an RBM, see `RBM.distribution`.

    Attributes:
        log_partition: `LogPartition`, on which all densities rest.
    """

    def __init__(
        self,
        rbm,
        log_partition,
        steps=1000,
        validate_args=False,
        allow_nan_stats=True,
        name="RBM",
    ):
        parameters = dict(locals())
        self._rbm, self._steps = rbm, steps
        self.log_partition = log_partition
        super().__init__(
            dtype=tf.float32,
            reparameterization_type=tfp.distributions.NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            name=name,
        )

    @classmethod
    def _parameter_properties(cls, dtype, num_classes=None):
        return {}

    def _batch_shape(self):
        return tf.TensorShape([])

    def _batch_shape_tensor(self):
        return tf.constant([], tf.int32)

    def _event_shape(self):
        return tf.TensorShape([self._rbm.num_visible])

    def _event_shape_tensor(self):
        return tf.constant([self._rbm.num_visible], tf.int32)

    def _potentials(self):
        """Returns `Potentials` that are not trained: log Z would not follow."""
        potentials = self._rbm.potentials(dtype="float32")
        return tf.nest.map_structure(tf.stop_gradient, potentials)

    @full_precision()
    def _energies(self, value):
        """Returns F(v), shape (...), of states (..., V)."""
        value = tf.cast(tf.convert_to_tensor(value), self.dtype)
        width = self._rbm.num_visible
        if value.shape.rank is not None and value.shape[-1:] != (width,):
            raise ValueError(
                f"Expected values of shape (…, {width}). Received: shape "
                f"{tuple(value.shape)}."
            )
        rows = tf.reshape(value, [-1, width])
        energies = self._energies_of_known(rows)
        return tf.reshape(energies, tf.shape(value)[:-1])

    def _energies_of_known(self, rows):
        rbm = self._rbm
        if tf.executing_eagerly() and rows.shape[0]:
            check_fingerprint(rbm, self.log_partition, "distribution")
            rbm._visible_states(rows, "log_prob", "value")
            if not all_known(rows):
                log_z = self.log_partition
                scores = rbm.log_likelihood(rows, log_z) + log_z.value
                return -tf.cast(scores, self.dtype)
        return self._potentials().free_energy(rows)

    def _log_prob(self, value):
        return -self._energies(value) - tf.cast(self.log_partition.value, self.dtype)

    def log_prob_interval(self, value):
        """Returns the ends of intervals that hold `log_prob(value)`.

        Args:
            value: array (..., V).

        Returns:
            tensors (...), nats: lower and upper ends, from those of log Z.
        """
        energies = self._energies(value)
        lower, upper = (
            -energies - tf.cast(end, self.dtype)
            for end in (self.log_partition.upper, self.log_partition.lower)
        )
        return lower, upper

    def _sample_n(self, n, seed=None):
        seed = tfp.random.sanitize_seed(seed, salt="rbm")
        return self._chains(n, seed)

    def _chains(self, count, seed):
        potentials = self._potentials()
        shape = count, self._rbm.num_visible
        base = self._rbm._base_natural(potentials)
        return draw(self._rbm, potentials, base, shape, self._steps, None, seed)

    def _mean(self):
        """Returns E[v], exactly or as the mean of E[v | h] over chains' last states."""
        potentials, seed = self._potentials(), random.as_seed(0)
        if potentials.visible.num_rows != potentials.visible.num_units:
            raise NotImplementedError("Categories have no mean.")
        if is_quick(potentials):
            (_, mean, _), _ = enumerated(potentials, None, "means", None, tf.float64)
            return tf.cast(mean[0], self.dtype)
        states = self._chains(_CHAINS, seed)
        again = random.fold_in(seed, 1)
        hidden = sample_hidden_given_visible(potentials, states, again)
        natural = potentials.visible_natural(hidden)
        return tf.reduce_mean(potentials.visible.mean(natural), 0)

    def _variance(self):
        """Returns the variance of each unit, exactly, of two states or Gaussian."""
        potentials = self._potentials()
        units = potentials.visible
        if not (isinstance(units, _WITH_VARIANCE) and is_quick(potentials)):
            raise NotImplementedError(
                "Expected units of two states, or Gaussian ones, of a model that is "
                f"enumerated within a second. Received: visible={self._rbm.visible!r}, "
                f"weights of shape {tuple(potentials.kernel.shape)}. Take the variance "
                "of sample(1000)."
            )
        moments = exact_moments(potentials).visible
        if isinstance(units, GaussianParameters):  # of t, -precision t^2 / 2
            precision, scale = (
                tf.cast(part, tf.float64) for part in (units.precision, units.scale)
            )
            square = -2.0 * moments.log_precision / precision
            variance = tf.square(scale) * (square - tf.square(moments.bias))
        else:
            low, high = units.states
            variance = (moments.bias - low) * (high - moments.bias)
        return tf.cast(variance, self.dtype)

    def _stddev(self):
        return tf.sqrt(self._variance())

    def _mode(self):
        """Returns the likeliest state (V,), the first if there are several."""
        potentials = self._potentials()
        units, bits = potentials.visible, finite_layers(potentials).get("visible")
        if bits is None or bits > _MOST_BITS:
            raise NotImplementedError(
                f"Expected at most 2^{_MOST_BITS} visible states, which are compared. "
                f"Received: {self._rbm.num_visible} units, {self._rbm.visible!r}. Take "
                "the likeliest of sample(1000), by log_prob."
            )
        sizes = num_states(units)
        digits = digits_of(np.arange(np.prod(sizes), dtype=np.int32), sizes)
        states = units.values[np.arange(len(sizes)), digits]
        energies = map_rows(potentials.free_energy, states)
        return tf.gather(states, tf.argmin(energies))
