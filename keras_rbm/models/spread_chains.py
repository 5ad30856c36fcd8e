"""Annealed chains spread over the replicas of a distribution strategy."""

import tensorflow as tf

from keras_rbm import random
from keras_rbm.checks import check_counts
from keras_rbm.inference import LogPartition, estimate_log_partition


def spread_log_partition(model, method, num_chains, initial_visible, seed, **options):
    """Estimates log Z by annealing, each replica with a share of the chains.

    Args:
        model: `UnconditionalModel` under a strategy.
        method: `"ais"` or `"reverse_ais"`.
        num_chains: int, in all; rounded up to a multiple of the replicas.
        initial_visible: tensor (C, V) or `None`, of `"reverse_ais"`.
        seed: int or integer tensor of shape (2,).
        **options: other arguments of `estimate_log_partition`.

    Returns:
        `LogPartition` of all chains.
    """
    check_counts(2, num_chains=num_chains)
    strategy = model.distribute_strategy
    replicas = strategy.num_replicas_in_sync

    if initial_visible is not None and len(initial_visible) < 2 * replicas:
        raise ValueError(
            f"Expected at least two initial_visible for each of {replicas} replicas. "
            f"Received: {len(initial_visible)} rows."
        )

    def on_replica():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        potentials = model.potentials()
        own = None if initial_visible is None else initial_visible[number::replicas]
        return estimate_log_partition(
            potentials,
            method,
            base=model.base(potentials),
            num_chains=max(2, -(-num_chains // replicas)),
            initial_visible=own,
            seed=random.fold_in(seed, number),
            **options,
        ).log_weights

    run = tf.function(lambda: strategy.run(on_replica), autograph=False)
    values = strategy.gather(run(), axis=0)
    if method == "ais":
        return LogPartition.from_log_weights(values)
    return LogPartition.from_bounds(values)
