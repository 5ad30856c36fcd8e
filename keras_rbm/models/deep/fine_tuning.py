"""Feed-forward networks that start with the weights of Boltzmann machines."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_counts, check_numbers
from keras_rbm.units.bernoulli import are_binary


def classifier(rbms, num_classes, dropout):
    """Returns a network of sigmoid layers and a softmax.

    Args:
        rbms: list of built `RBM`, from the data upwards.
        num_classes: int ≥ 2.
        dropout: float in [0, 1).
    """
    check_counts(2, num_classes=num_classes)
    check_numbers(dropout=dropout)
    for rbm in rbms:
        if not are_binary(rbm.hidden):
            raise ValueError(
                "Expected binary hidden units, which are sigmoid units of a network. "
                f"Received: {rbm.hidden!r}. Use the model as a layer instead: "
                "keras.Sequential([keras.Input(shape), model, ...])."
            )
    if rbms[0].kernel.shape[0] != rbms[0].num_visible:
        raise ValueError(
            "Expected visible units that are one number each, like the inputs of a "
            f"network. Received: {rbms[0].visible!r}. Use the model as a layer instead."
        )
    network = keras.Sequential([keras.Input(rbms[0].kernel.shape[:1])])
    for rbm in rbms:
        if dropout:
            network.add(keras.layers.Dropout(dropout))
        dense = keras.layers.Dense(rbm.hidden_units, activation="sigmoid")
        network.add(dense)
        # Not the RBM's own kernel: its units may standardize their input.
        rows = np.eye(rbm.kernel.shape[0], dtype="float32")
        exact = rbm.potentials()._replace(kernel=tf.convert_to_tensor(rbm.kernel))
        inputs = exact.hidden_natural(np.vstack([0.0 * rows[:1], rows]))
        bias, *rest = np.asarray(inputs)
        dense.set_weights([rest - bias, bias])
    if dropout:
        network.add(keras.layers.Dropout(dropout))
    network.add(keras.layers.Dense(num_classes, activation="softmax"))
    return network


def joint_classifier(model, num_classes, dropout):
    """Returns a network whose sigmoid layers see the layers below and above.

    Args:
        model: `DBM`.
        num_classes: int ≥ 2.
        dropout: float in [0, 1).
    """
    check_counts(2, num_classes=num_classes)
    check_numbers(dropout=dropout)
    copy = type(model).from_config(model.get_config() | {"name": "features"})
    copy.build((None, model.kernel.shape[0]))
    copy.set_weights(model.get_weights())
    copy.trainable = False
    inputs = keras.Input((model.kernel.shape[0],))
    ends = np.cumsum([0, *model.hidden_units])
    features = copy(inputs)
    states, kernels = inputs, [np.asarray(kernel) for kernel in model.kernels]
    for layer, count in enumerate(model.hidden_units):
        kernel = kernels[layer]
        if layer + 1 < len(kernels):
            above = features[:, ends[layer + 1] : ends[layer + 2]]
            states = keras.layers.Concatenate()([states, above])
            kernel = np.concatenate([kernel, kernels[layer + 1].T])
        if dropout:
            states = keras.layers.Dropout(dropout)(states)
        dense = keras.layers.Dense(count, activation="sigmoid")
        states = dense(states)
        dense.set_weights([kernel, model.hidden_biases[layer]])
    if dropout:
        states = keras.layers.Dropout(dropout)(states)
    outputs = keras.layers.Dense(num_classes, activation="softmax")(states)
    return keras.Model(inputs, outputs)
