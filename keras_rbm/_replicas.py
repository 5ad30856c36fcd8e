"""Sums over the replicas of a distribution strategy, and their logs."""

from typing import Any

import tensorflow as tf

from keras_rbm import random


def num_replicas() -> int:
    """Returns the number of replicas that run this step together, an int."""
    context = tf.distribute.get_replica_context()
    return 1 if context is None else context.num_replicas_in_sync


def all_sum(tensors: Any) -> Any:
    """Returns tensors summed over the replicas, in the same structure."""
    if num_replicas() == 1:
        return tensors
    context = tf.distribute.get_replica_context()
    return tf.nest.map_structure(lambda t: context.all_reduce("sum", t), tensors)


def add(variables: list[Any], changes: list[tf.Tensor]) -> None:
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


def must_meet() -> bool:
    """Returns whether replicas have to meet before they change shared variables.

    Even the only replica of a strategy may have to.
    """
    return not tf.__internal__.distribute.strategy_supports_no_merge_call()


def normalized(weights: tf.Tensor) -> tf.Tensor:
    """Returns weights divided by their total over all replicas."""
    return tf.math.divide_no_nan(weights, all_sum(tf.reduce_sum(weights)))


def as_logs(scalars: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns a step's logs, a dict of scalars, in a shape that Keras can reduce.

    With several workers it takes the mean along an axis that scalars lack
    (https://github.com/keras-team/keras/issues/20585).
    """
    if not is_multi_worker(tf.distribute.get_strategy()):
        return scalars
    return {name: tf.reshape(value, [1]) for name, value in scalars.items()}


def is_single(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether a strategy uses a single device of a single process."""
    return strategy.num_replicas_in_sync == 1 and not is_multi_worker(strategy)


def is_multi_worker(strategy: tf.distribute.Strategy) -> bool:
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
