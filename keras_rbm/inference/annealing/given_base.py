"""Annealed importance sampling from a given base, at given temperatures."""

import math

import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm._checks import check_counts
from keras_rbm.inference.annealing.chains import anneal_backward, anneal_forward
from keras_rbm.inference.annealing.path import per_model, temperatures
from keras_rbm.inference.arguments import (
    check_proper,
    checked_base,
    checked_states,
)
from keras_rbm.inference.estimates import LogPartition
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import full_precision


@full_precision()
def annealed_importance_sampling(
    potentials: Potentials,
    *,
    base: ArrayLike | None = None,
    betas: ArrayLike = 1000,
    num_chains: int = 100,
    seed: int | tf.Tensor = 0,
) -> LogPartition:
    """Estimates log Z by annealed importance sampling [1, 2].

    Chains start at the base-rate model (W = 0, visible natural parameters `base`)
    and are annealed to the model; at each temperature the log weight grows by
    `log p*_{beta_k}(v) - log p*_{beta_(k-1)}(v)`, then one Gibbs sweep leaves
    p_{beta_k} invariant. The mean weight is an unbiased estimate of Z, so its
    logarithm is too low on average: `E[value] <= log Z`, and log-likelihoods
    computed from it are *optimistic*. `reverse_annealed_importance_sampling`
    errs the other way.

    Args:
        potentials: `Potentials`; with B models (biases with a batch dimension)
            each gets its own chains.
        base: tensor (V,), or (B, V) for B models, of visible natural parameters;
            zero by default. The nearer the base-rate model is to the data, the
            smaller the error.
        betas: int K, for K equal steps of the inverse temperature; or its increasing
            values, from 0 to 1.
        num_chains: int ≥ 2, M.
        seed: int or integer tensor of shape (2,).

    Returns:
        `LogPartition`.

    Raises:
        ValueError: if `betas` or `num_chains` are out of range, or a pair of
            Gaussian layers has no finite Z.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.ones((6, 4)), [0.0] * 6, [0.0] * 4)
    >>> ais = keras_rbm.inference.annealed_importance_sampling(model, betas=500)
    >>> abs(float(ais.value - keras_rbm.inference.exact_log_partition(model))) < 0.2
    True

    References:
        1. Neal. Annealed importance sampling. Statistics and Computing, 2001.
        2. Salakhutdinov, Murray. On the quantitative analysis of deep belief
           networks. ICML 2008.
    """
    check_proper(potentials)
    check_counts(2, num_chains=num_chains)
    betas, base = temperatures(betas), checked_base(potentials, base)
    chains = anneal_forward(potentials, base, betas, num_chains, seed)
    return LogPartition.from_log_weights(per_model(chains.log_weights, potentials))


@full_precision()
def reverse_annealed_importance_sampling(
    potentials: Potentials,
    visible: ArrayLike,
    *,
    base: ArrayLike | None = None,
    betas: ArrayLike = 1000,
    seed: int | tf.Tensor = 0,
) -> tf.Tensor:
    """Anneals given states back to the base-rate model.

    Starting at v, L starts as log Z_0, and for each temperature from 1 down: one
    Gibbs sweep at beta_k, then `L += log p*_{beta_k}(v) - log p*_{beta_(k-1)}(v)`.
    What L bounds depends on where v comes from:

    * v an *exact* sample of the model: `E[L] >= log Z`. With approximate samples
      it is a diagnostic and bounds nothing.
    * v a test example: see `annealed_log_likelihood`.

    Args:
        potentials: `Potentials`; biases with a batch dimension must have one row
            for each row of `visible`.
        visible: tensor (C, V), states to start from.
        base, betas, seed: as in `annealed_importance_sampling`.

    Returns:
        tensor (C,), L of each chain, in nats, float64.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.ones((6, 4)), [0.0] * 6, [0.0] * 4)
    >>> L = keras_rbm.inference.reverse_annealed_importance_sampling(
    ...     model, tf.ones((10, 6)), betas=100)
    >>> L.shape
    TensorShape([10])

    References:
        1. Burda, Grosse, Salakhutdinov. Accurate and conservative estimates of
           MRF log-likelihood using reverse annealing. AISTATS 2015.
    """
    check_proper(potentials)
    visible = checked_states(potentials, "visible", visible)
    betas, base = temperatures(betas), checked_base(potentials, base)
    chains = anneal_backward(potentials, visible, base, betas, seed)
    return chains.log_weights


@full_precision()
def annealed_log_likelihood(
    potentials: Potentials,
    visible: ArrayLike,
    *,
    base: ArrayLike | None = None,
    betas: ArrayLike = 1000,
    num_chains: int = 10,
    seed: int | tf.Tensor = 0,
) -> tf.Tensor:
    """Estimates the log-likelihood of the annealed sampler, from below (RAISE) [1].

    Forward annealing, stopped after its last sweep, is itself a generative model,
    with a distribution `p_ann(v)` near the RBM's. Reverse annealing from v gives
    weights `w = p*_1(v) exp(-L)` with `E[w] = p_ann(v)`; the log of their mean
    over chains is, in expectation, a *lower* bound of `log p_ann(v)`. It is not a
    bound of the RBM's own `log p(v)`, but it is not optimistic as forward
    annealing is: where both agree, both can be trusted.

    Args:
        potentials: `Potentials`, biases without a batch dimension, or with B rows.
        visible: tensor (B, V), examples.
        num_chains: int ≥ 1, M chains for each example.
        base, betas: as in `annealed_importance_sampling`, or those of an `Annealing`,
            which has searched for them.
        seed: as in `annealed_importance_sampling`.

    Returns:
        tensor (B,), nats, float64.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> raise_ = keras_rbm.inference.annealed_log_likelihood(model, tf.ones((1, 3)))
    >>> raise_.numpy().round(3).tolist()
    [-2.079]

    References:
        1. Burda, Grosse, Salakhutdinov. Accurate and conservative estimates of
           MRF log-likelihood using reverse annealing. AISTATS 2015.
    """
    check_proper(potentials)
    check_counts(num_chains=num_chains)
    visible = checked_states(potentials, "visible", visible)
    betas, base = temperatures(betas), checked_base(potentials, base)
    tiled = potentials.repeat(num_chains)
    states = tf.tile(visible, (num_chains, 1))
    chains = anneal_backward(tiled, states, base, betas, seed)
    log_weights = tf.reshape(-chains.log_weights, (num_chains, -1))
    unnormalized = -tf.cast(potentials.free_energy(visible), tf.float64)
    return unnormalized + tf.reduce_logsumexp(log_weights, 0) - math.log(num_chains)
