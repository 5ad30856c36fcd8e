"""An RBM as the prior of another model's codes."""

from typing import Any

import keras
import tensorflow as tf

from keras_rbm import random
from keras_rbm._checks import check_counts
from keras_rbm._replicas import of_replica
from keras_rbm.inference.gibbs import hidden_chain, sample_visible_given_hidden
from keras_rbm.models import RBM, InfiniteRBM
from keras_rbm.units.bernoulli import are_binary

#: How far beyond 0 and 1 codes of binary units may be rounded.
_ROUNDING = 1e-3


@keras.saving.register_keras_serializable("keras_rbm")
class RBMPrior(keras.layers.Layer):
    """Returns codes z as they are, and adds `-log p(z)` of an RBM as a loss.

    The loss is the mean of `F(z) = -log p(z) - log Z` over the batch, in nats. Its
    gradient with respect to z is that of F. With respect to the RBM it is that of
    `-log p(z)`, in expectation: in training, the gradient of log Z comes from chains
    that go on from step to step, as in persistent contrastive divergence [1]. Add
    `rbm.log_partition()` to the loss for the whole `-log p(z)`.

    Codes of binary units are 0 and 1, or between, such as relaxed samples [2], for
    which F is continued. A network that makes the codes is trained through them. If it
    makes them without noise, and nothing else in the loss keeps them apart, such as
    minus their entropy in a variational autoencoder, codes and prior may end in one
    state, and the loss keeps falling.

    Args:
        rbm: `keras_rbm.RBM`, of as many visible units as z has columns. It need not be
            compiled.
        gibbs_steps: int ≥ 1, sweeps of every chain per step.
        num_chains: int ≥ 1.
        seed: int or `None`. Seeds the chains.
        **kwargs: `name`, `dtype`, `trainable`, as for `keras.layers.Layer`. A prior
            that is not trained moves no chains, and its RBM keeps its base rate.

    The RBM's own `NormalPrior` has no effect here: it counts in `RBM.fit` only.

    Attributes:
        rbm: the `RBM`. `rbm.log_partition()`, `rbm.sample(n)` and all else work; its
            base rate is the mean of the codes that were seen in training.
        chains: variable (num_chains, H), the chains' hidden states.

    Raises:
        TypeError: if `rbm` is not an `RBM`.
        ValueError: if a count is not an int ≥ 1, if z is not of shape (B, V), if the
            visible units are categories, or in eager code if binary units have codes
            below 0 or above 1. In a graph it is an `InvalidArgumentError`; compiled by
            XLA such codes make the loss NaN, and leave the RBM as it is.

    Example:

    >>> inputs = keras.Input((20,))
    >>> codes = keras.layers.Dense(6, activation="sigmoid")(inputs)
    >>> codes = keras_rbm.layers.RBMPrior(keras_rbm.RBM(4, seed=0), seed=0)(codes)
    >>> outputs = keras.layers.Dense(20, activation="sigmoid")(codes)
    >>> model = keras.Model(inputs, outputs)
    >>> model.compile("adam", "binary_crossentropy")
    >>> history = model.fit(np.eye(20), np.eye(20), verbose=0)

    References:
        1. Tieleman. Training restricted Boltzmann machines using approximations
           to the likelihood gradient. ICML 2008.
        2. Khoshaman, Amin. GumBolt: extending Gumbel trick to Boltzmann priors.
           NeurIPS 2018.
    """

    def __init__(
        self,
        rbm: RBM,
        gibbs_steps: int = 3,
        num_chains: int = 100,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # Densities are float32, also where other layers are not.
        self.dtype_policy = keras.dtype_policies.DTypePolicy(self.variable_dtype)
        self.autocast = False
        if not isinstance(rbm, RBM) or isinstance(rbm, InfiniteRBM):
            raise TypeError(
                f"Expected rbm as a keras_rbm.RBM. Received: {type(rbm).__name__}. Of "
                "an InfiniteRBM pass to_rbm()."
            )
        if not self.trainable:
            rbm.trainable = False
        check_counts(gibbs_steps=gibbs_steps, num_chains=num_chains)
        self.rbm = rbm
        rbm._prior_chains = self._visible_chains
        self.gibbs_steps = gibbs_steps
        self.num_chains = num_chains
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        if len(input_shape) != 2:
            raise ValueError(
                "Expected codes of shape (examples, columns). Received: shape "
                f"{tuple(input_shape)}. Flatten them first."
            )
        self.rbm.build(input_shape)
        visible = self.rbm.visible
        if visible.num_rows(input_shape[1]) != input_shape[1]:
            raise ValueError(
                "Expected an RBM of visible units that are numbers, of which the free "
                f"energy has a gradient. Received: visible={visible!r}."
            )
        with tf.init_scope():
            shape = (self.num_chains, self.rbm.potentials().num_hidden)
            self.chains = keras.Variable(
                self._new_chains,
                shape=shape,
                dtype="float32",
                trainable=False,
                aggregation="only_first_replica",
                synchronization="on_read",
                name="chains",
            )

    def _new_chains(self, shape, dtype=None):
        hidden = self.rbm.potentials(dtype="float32").hidden
        natural = hidden.natural(tf.zeros((self.num_chains, hidden.num_rows)))
        return hidden.draw(natural, random.as_seed(self.seed_generator.next()))

    def _visible_chains(self, potentials):
        """Returns visible states of the chains, from which log Z is searched."""
        if not self.built:
            return None
        hidden = tf.convert_to_tensor(self.chains)
        return sample_visible_given_hidden(potentials, hidden, seed=0)

    def reset_chains(self) -> None:
        """Has the chains begin anew, at states of hidden units without coupling."""
        self.chains.assign(self._new_chains(self.chains.shape))

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        potentials = self.rbm.potentials(dtype="float32")
        codes = tf.cast(inputs, "float32")
        sound = self._are_sound(codes)
        codes = tf.where(sound, codes, 0.5)  # changes nothing of the RBM, if not
        energies = potentials.free_energy(codes)
        loss = tf.reduce_mean(energies)
        if training and self.rbm.trainable_variables:
            loss -= self._negative(potentials, sound)
            weights = tf.cast(sound, "float32") * tf.ones_like(energies)
            self.rbm._record(tf.stop_gradient(codes), None, weights)
        self.add_loss(tf.where(sound, loss, float("nan")))
        return inputs

    def _negative(self, potentials, sound):
        """Returns 0, whose gradient is that of minus log Z, and moves the chains."""
        fixed = tf.nest.map_structure(tf.stop_gradient, potentials)
        seed = of_replica(random.as_seed(self.seed_generator.next()))
        state = hidden_chain(
            fixed,
            tf.convert_to_tensor(self.chains),
            seed,
            num_sweeps=self.gibbs_steps,
        )
        self.chains.assign(tf.where(sound, state.hidden, self.chains.value))
        energy = tf.reduce_mean(potentials.free_energy(tf.stop_gradient(state.visible)))
        return energy - tf.stop_gradient(energy)

    def _are_sound(self, codes):
        """Returns a bool (): whether codes are between those of the units, and finite.

        Raises an error if they are not, unless compiled by XLA.
        """
        if not are_binary(self.rbm.visible):
            return tf.reduce_all(tf.math.is_finite(codes))
        inside = tf.reduce_all((codes >= -_ROUNDING) & (codes <= 1.0 + _ROUNDING))
        words = (
            "Expected codes between 0 and 1 for binary units. Received: values from "
            "{} to {}. End the layer before with a sigmoid, without Dropout between, "
            "or give the RBM visible='gaussian'."
        )
        ends = tf.reduce_min(codes), tf.reduce_max(codes)
        if tf.executing_eagerly() and not inside:
            raise ValueError(words.format(*(f"{float(end):.3g}" for end in ends)))
        tf.debugging.Assert(inside, [words, *ends])
        return inside

    def save_own_variables(self, store: Any) -> None:
        if not self.built:
            return
        store["chains"] = self.chains.numpy()
        store["seed"] = self.seed_generator.state.numpy()

    def load_own_variables(self, store: Any) -> None:
        if not self.built:
            return
        self.chains.assign(store["chains"])
        self.seed_generator.state.assign(store["seed"])

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "rbm": keras.saving.serialize_keras_object(self.rbm),
            "gibbs_steps": self.gibbs_steps,
            "num_chains": self.num_chains,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "RBMPrior":
        rbm = keras.saving.deserialize_keras_object(config["rbm"])
        return cls(**config | {"rbm": rbm})
