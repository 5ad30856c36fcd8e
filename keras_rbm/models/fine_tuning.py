"""Feed-forward networks that start with the weights of Boltzmann machines."""

import keras

from keras_rbm.checks import check_counts
from keras_rbm.units import Bernoulli


def classifier(layers, num_classes, dropout):
    """Returns a network of sigmoid layers and a softmax.

    Args:
        layers: list of `(kernel, bias, unit)`, from the data upwards.
        num_classes: int ≥ 2.
        dropout: float in [0, 1).
    """
    check_counts(2, num_classes=num_classes)
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"Expected dropout in [0, 1). Received: dropout={dropout}.")
    for _, _, unit in layers:
        if not isinstance(unit, Bernoulli):
            raise ValueError(
                "Expected binary hidden units, which are sigmoid units of a network. "
                f"Received: {unit!r}. Use the model as a layer instead: "
                "keras.Sequential([keras.Input(shape), model, ...])."
            )
    network = keras.Sequential([keras.Input(layers[0][0].shape[:1])])
    for kernel, bias, _ in layers:
        if dropout:
            network.add(keras.layers.Dropout(dropout))
        dense = keras.layers.Dense(kernel.shape[1], activation="sigmoid")
        network.add(dense)
        dense.set_weights([kernel, bias])
    if dropout:
        network.add(keras.layers.Dropout(dropout))
    network.add(keras.layers.Dense(num_classes, activation="softmax"))
    return network
