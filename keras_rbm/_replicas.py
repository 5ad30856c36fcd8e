"""Sums over the replicas of a distribution strategy, and their logs."""

import tensorflow as tf

from keras_rbm import random


def num_replicas():
    """Returns the number of replicas that run this step together, an int."""
    context = tf.distribute.get_replica_context()
    return 1 if context is None else context.num_replicas_in_sync


def all_sum(tensors):
    """Returns tensors summed over the replicas, in the same structure."""
    if num_replicas() == 1:
        return tensors
    context = tf.distribute.get_replica_context()
    return tf.nest.map_structure(lambda t: context.all_reduce("sum", t), tensors)


def add(variables, changes):
    """Adds to variables what is the same on all replicas, from within one of them."""
    if not must_meet():
        for variable, change in zip(variables, changes, strict=True):
            variable.assign_add(change)
        return

    def across_replicas(strategy, changes):
        for variable, change in zip(variables, changes, strict=True):
            strategy.extended.update(
                variable.value, lambda own, new: own.assign_add(new), args=(change,)
            )

    context = tf.distribute.get_replica_context()
    context.merge_call(across_replicas, args=(changes,))


def must_meet():
    """Returns whether replicas have to meet before they change shared variables.

    Even the only replica of a strategy may have to.
    """
    return not tf.__internal__.distribute.strategy_supports_no_merge_call()


def normalized(weights):
    """Returns weights divided by their total over all replicas."""
    return tf.math.divide_no_nan(weights, all_sum(tf.reduce_sum(weights)))


def as_logs(scalars):
    """Returns a step's logs, a dict of scalars, in a shape that Keras can reduce.

    With several workers it takes the mean along an axis that scalars lack
    (https://github.com/keras-team/keras/issues/20585).
    """
    if not is_multi_worker(tf.distribute.get_strategy()):
        return scalars
    return {name: tf.reshape(value, [1]) for name, value in scalars.items()}


def is_single(strategy):
    """Returns whether a strategy uses a single device of a single process."""
    return strategy.num_replicas_in_sync == 1 and not is_multi_worker(strategy)


def is_multi_worker(strategy):
    """Returns whether a strategy uses several processes."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def of_replica(seed):
    """Returns a seed (2,) that is different on each replica."""
    if num_replicas() == 1:
        return seed
    context = tf.distribute.get_replica_context()
    return random.fold_in(seed, context.replica_id_in_sync_group)


def strategy_scope(model):
    """Returns the scope of a model's strategy, to create variables in."""
    strategy = model.distribute_strategy
    if tf.distribute.get_strategy() is strategy:
        return tf.name_scope("")
    return strategy.scope()
