"""A model's potentials in a training step, and the way back to its variables."""

import tensorflow as tf

from keras_rbm._replicas import num_replicas
from keras_rbm.inference.potentials import Potentials


class ForwardPass:
    """The potentials of a batch as a function of the model's variables, on a tape.

    A difference of two phases is the gradient of the mean log-likelihood by the
    parameters of the potentials. The tape leads on to all variables, those of a network
    in front of the model among them, and adds the losses of regularizers and layers.

    Args:
        model: `BoltzmannMachine`.
        features: tensor (B, …), the input of a conditional model, or `None`.

    Attributes:
        potentials: `Potentials`, the kernel in the dtype of the model's computations.
    """

    def __init__(self, model, features):
        self._variables = model.trainable_variables
        with tf.GradientTape(watch_accessed_variables=False) as self._tape:
            self._tape.watch([variable.value for variable in self._variables])
            # In full precision: the cast of a kernel would round its gradient.
            whole = model.potentials(features, model.variable_dtype, training=True)
            self._parameters = whole.named()
            # Replicas' gradients add up: each has its share.
            self._losses = [
                tf.reduce_sum(loss) / num_replicas() for loss in model.losses
            ]
        kernel = tf.cast(whole.kernel, model.compute_dtype)
        self.potentials: Potentials = whole._replace(kernel=kernel)

    def gradients(self, of_potentials):
        """Returns the gradients of the model's trainable variables.

        Args:
            of_potentials: dict of names of `Potentials.named` to gradients.
        """
        targets = [self._parameters[name] for name in of_potentials]
        upstream = list(of_potentials.values())
        gradients = self._tape.gradient(
            [*targets, *self._losses],
            [variable.value for variable in self._variables],
            [*upstream, *map(tf.ones_like, self._losses)],
            unconnected_gradients="zero",
        )
        pairs = zip(gradients, self._variables, strict=True)
        return [tf.cast(tf.convert_to_tensor(g), v.dtype) for g, v in pairs]


def bias_changes(model, tape, biases, changes):
    """Returns by how much variables must change for biases to change by given vectors.

    Each number of the biases is one of a variable's, and one of these may stand for
    several: it takes the mean of their changes.

    Args:
        model: `BoltzmannMachine`.
        tape: persistent `tf.GradientTape` on which the biases were made.
        biases, changes: lists of tensors (rows,).
    """
    variables = model.trainable_variables
    values = [variable.value for variable in variables]
    sums = tape.gradient(biases, values, changes)
    counts = tape.gradient(biases, values)
    return [
        (variable, total / count)
        for variable, total, count in zip(variables, sums, counts, strict=True)
        if total is not None
    ]
