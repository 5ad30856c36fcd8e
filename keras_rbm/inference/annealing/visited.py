"""The mass of states that chains have visited: a bound of log Z that is a theorem."""

import numpy as np
import tensorflow as tf
from scipy.special import logsumexp

from keras_rbm.inference.potentials import finite_layers


def log_mass_of_visited(potentials, visible):
    """Returns a lower bound of log Z, (B,): the log mass of different states.

    The states are those of a finite layer, the likeliest hidden state of each row or
    else the visible ones, and their mass is exact, with the other layer summed out.
    The bound is minus infinity if neither layer is finite.

    Args:
        potentials: `Potentials`, B models if the biases have a batch dimension.
        visible: tensor (n · B, V); row i belongs to model i modulo B.
    """
    layers = finite_layers(potentials)
    batch = 1 if potentials.batch_size is None else int(potentials.batch_size)
    if not layers:
        return np.full(batch, -np.inf)
    models, states = potentials.repeat(len(visible) // batch), visible
    if "hidden" in layers:
        states = models.hidden.mode(models.hidden_natural(visible))
        models = models.transpose()
    exact = tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), models)
    log_weights = -exact.free_energy(tf.cast(states, tf.float64))
    log_weights = log_weights.numpy().reshape(-1, batch)
    bounds = []
    for number in range(batch):
        _, first = np.unique(states.numpy()[number::batch], axis=0, return_index=True)
        bounds.append(logsumexp(log_weights[first, number]))
    return np.array(bounds)
