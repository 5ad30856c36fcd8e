"""Sums over the replicas of a distribution strategy."""

import tensorflow as tf


def num_replicas():
    """Returns how many replicas run this step together, an int."""
    context = tf.distribute.get_replica_context()
    return 1 if context is None else context.num_replicas_in_sync


def all_sum(tensors):
    """Returns tensors summed over the replicas; the structure is kept."""
    if num_replicas() == 1:
        return tensors
    context = tf.distribute.get_replica_context()
    return tf.nest.map_structure(lambda t: context.all_reduce("sum", t), tensors)
