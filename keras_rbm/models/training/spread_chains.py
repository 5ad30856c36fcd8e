"""Annealed chains spread over the replicas of a distribution strategy."""

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm._checks import check_counts


def share_of_chains(
    model: keras.Model, num_chains: int, initial_visible: tf.Tensor | np.ndarray | None
) -> int:
    """Returns `num_chains`, rounded up to a number that the replicas can share.

    Raises:
        ValueError: if the given states cannot be shared.
    """
    check_counts(2, num_chains=num_chains)
    replicas = model.distribute_strategy.num_replicas_in_sync
    if initial_visible is not None and len(initial_visible) < 2 * replicas:
        raise ValueError(
            f"Expected at least two initial_visible for each of {replicas} replicas. "
            f"Received: {len(initial_visible)} rows."
        )
    return -(-num_chains // replicas) * replicas


def spread(strategy: tf.distribute.Strategy) -> Callable[..., tf.Tensor]:
    """Returns a function that anneals on all replicas, see `estimate_log_partition`."""
    replicas = strategy.num_replicas_in_sync

    def run(anneal, work, seed):
        """Anneals new chains, or given states, a share on each replica."""
        count = work if isinstance(work, int) else len(work)

        def on_replica():
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            own = count // replicas if work is count else work[number::replicas]
            return anneal(own, random.fold_in(seed, number))

        function = tf.function(lambda: strategy.run(on_replica), autograph=False)
        values = strategy.gather(function(), axis=0)
        order = np.concatenate([np.arange(i, count, replicas) for i in range(replicas)])
        return tf.gather(values, np.argsort(order))

    return run
