"""The gradients of the variables' Keras regularizers."""

import tensorflow as tf

from keras_rbm.replicas import num_replicas


def regularized(gradients, variables):
    """Returns gradients plus those of the variables' regularizers.

    Under a strategy each replica adds only its share, because gradients are summed.
    """
    result = []
    for gradient, variable in zip(gradients, variables, strict=True):
        if variable.regularizer is not None:
            value = tf.convert_to_tensor(variable)
            with tf.GradientTape() as tape:
                tape.watch(value)
                penalty = variable.regularizer(value)
            gradient += tape.gradient(penalty, value) / num_replicas()
        result.append(gradient)
    return result
