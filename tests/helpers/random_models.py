"""Small models with random parameters, examples for them, and their gradients."""

import numpy as np
import tensorflow as tf
from steps import gradients_of, step_of

import keras_rbm

SEED = tf.constant([0, 1])


def randomize(model, seed=0, scale=1.0):
    """Gives each trained variable of a model normal numbers, and returns the model."""
    rng = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(0, scale, variable.shape))
    return model


def random_crbm(rule, infer="mean_field", sizes=(5, 4), seed=0, scale=1.0):
    """Returns a compiled CRBM of three features."""
    crbm = keras_rbm.CRBM(
        sizes[1], inference=infer, num_visible=sizes[0], num_features=3, seed=0
    )
    randomize(crbm, seed, scale).compile("sgd", rule=rule, run_eagerly=True)
    return crbm


def weighted_pairs(num_visible=5, count=7, seed=1, soft=False):
    """Returns x, v and unequal weights of the examples, normalized."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (count, 3))
    v = rng.random((count, num_visible))
    weights = rng.dirichlet(np.ones(count))
    v = v if soft else v > 0.5
    return tuple(tf.constant(a, tf.float32) for a in (x, v, weights))


def rule_gradients(model, x, v, weights, seed=SEED):
    """Returns the gradients of a model's rule by name, and the `Phases`."""
    step = step_of(model.potentials(x), v, weights, seed, model=model)
    phases = model.rule.phases(step)
    return gradients_of(model, phases.positive, phases.negative, x), phases


def parameters(model):
    """Returns the trained variables by name, float64."""
    return {v.name: v.numpy().astype(np.float64) for v in model.trainable_variables}
