"""The partition function by annealed importance sampling, forwards and back."""

import math

import tensorflow as tf

from keras_rbm import random
from keras_rbm.checks import check_counts
from keras_rbm.inference.annealing import anneal
from keras_rbm.inference.belief_propagation import sum_product
from keras_rbm.inference.bridge_sampling import tempered_log_partition
from keras_rbm.inference.exact import exact_log_partition
from keras_rbm.inference.gibbs import gibbs_chain
from keras_rbm.inference.log_partition import LogPartition
from keras_rbm.inference.mean_field import mean_field
from keras_rbm.inference.potentials import check_normalizable
from keras_rbm.inference.tempered_path import TemperedPath, temperatures


def annealed_importance_sampling(
    potentials, *, base=None, betas=1000, num_chains=100, seed=0, progress=False
):
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
            each gets chains of its own.
        base: tensor (V,), or (B, V) for B models, of visible natural parameters;
            zero by default. The nearer the base-rate model is to the data, the
            smaller the error.
        betas: see `temperatures`.
        num_chains: int ≥ 2, M.
        seed: int or integer tensor of shape (2,).
        progress: bool. Show a progress bar (outside of a `tf.function`).

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
    _check(potentials, num_chains, minimum=2)
    path, batch = _path(potentials, base, num_chains)
    seed = random.as_seed(seed)
    rows = num_chains * (1 if batch is None else batch)
    shape = (rows, potentials.num_visible)
    visible = path.sample_base(shape, random.fold_in(seed, -1))
    log_weights = path.log_partition_of_base() + tf.zeros(rows)
    betas = temperatures(betas)
    pairs = betas[:-1], betas[1:]
    log_weights = anneal(path, visible, log_weights, pairs, seed, progress)
    return LogPartition.from_log_weights(_per_model(log_weights, num_chains, batch))


def reverse_annealed_importance_sampling(
    potentials, visible, *, base=None, betas=1000, seed=0, progress=False
):
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
        base, betas, seed, progress: as in `annealed_importance_sampling`.

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
    _check(potentials, 1, minimum=1)
    path, _ = _path(potentials, base, None)
    log_weights = path.log_partition_of_base() + tf.zeros(tf.shape(visible)[0])
    betas = temperatures(betas)
    pairs = betas[-2::-1], betas[:0:-1]
    return anneal(path, visible, log_weights, pairs, seed, progress, reverse=True)


def annealed_log_likelihood(
    potentials, visible, *, base=None, betas=1000, num_chains=10, seed=0, progress=False
):
    """Estimates the log-likelihood of the annealed sampler, from below (RAISE) [1].

    Forward annealing, stopped after its last sweep, is a generative model of its
    own with a law `p_ann(v)` near the RBM's. Reverse annealing from v gives
    weights `w = p*_1(v) exp(-L)` with `E[w] = p_ann(v)`; the log of their mean
    over chains is, in expectation, a *lower* bound of `log p_ann(v)`. It is not a
    bound of the RBM's own `log p(v)`, yet it is not optimistic as forward
    annealing is: where both agree, both can be believed.

    Args:
        potentials: `Potentials`, biases without a batch dimension, or with B rows.
        visible: tensor (B, V), examples.
        num_chains: int ≥ 1, M chains for each example.
        base, betas, seed, progress: as in `annealed_importance_sampling`.

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
    _check(potentials, num_chains, minimum=1)
    tiled = potentials.repeat(num_chains)
    chains = tf.tile(visible, (num_chains, 1))
    log_partitions = reverse_annealed_importance_sampling(
        tiled, chains, base=base, betas=betas, seed=seed, progress=progress
    )
    log_weights = tf.reshape(-log_partitions, (num_chains, -1))
    own = -tf.cast(potentials.free_energy(visible), tf.float64)
    return own + tf.reduce_logsumexp(log_weights, 0) - math.log(num_chains)


def estimate_log_partition(
    potentials,
    method="ais",
    *,
    base=None,
    betas=None,
    num_chains=100,
    initial_visible=None,
    steps=1000,
    seed=0,
    progress=False,
):
    """Computes or estimates log Z by a named method.

    Args:
        potentials: `Potentials`.
        method: `"exact"`, enumeration of up to 25 units; `"ais"`, forward
            annealing, too low on average, so that likelihoods are optimistic;
            `"reverse_ais"`, annealing model samples back, too high on average if
            the samples are exact, else a diagnostic; `"tempering"`, bridge sampling
            between the replicas of parallel tempering, for a single model, see
            `tempered_log_partition`; for binary units also `"bethe"`, by
            `sum_product`, of unknown error, and `"mean_field"`, a lower bound.
        base, num_chains, progress: as in `annealed_importance_sampling`.
        betas: as there; by default 1000, for `"tempering"` 20.
        initial_visible: tensor (C, V), model samples for `"reverse_ais"`; by default
            drawn by `steps` Gibbs sweeps from the base-rate model. With B models
            C is a multiple of B, and row i belongs to model i modulo B.
        steps: int, see `initial_visible`; for `"tempering"` sweeps of each replica.
        seed: int or integer tensor of shape (2,).

    Returns:
        `LogPartition`, nats. For `"reverse_ais"` its `value` is the mean of the
        chains' L, and the interval is three standard errors of that mean.

    Raises:
        ValueError: if the method is unknown, the model too large to enumerate, or an
            argument out of range.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> z = keras_rbm.inference.estimate_log_partition(model, "reverse_ais", steps=1)
    >>> print(f"{z.value / np.log(2):.4f}")
    5.0000
    """
    if method == "exact":
        return LogPartition.exact(exact_log_partition(potentials))
    if method == "tempering":
        return tempered_log_partition(
            potentials,
            betas=20 if betas is None else betas,
            num_chains=num_chains,
            steps=steps,
            base=base,
            seed=seed,
        )
    betas = 1000 if betas is None else betas
    annealing = {"base": base, "betas": betas, "seed": seed, "progress": progress}
    if method == "ais":
        return annealed_importance_sampling(
            potentials, num_chains=num_chains, **annealing
        )
    if method == "bethe":
        beliefs = sum_product(potentials, pairwise=None)
        return LogPartition.without_error(beliefs.log_partition)
    if method == "mean_field":
        bound = mean_field(potentials, pairwise=None).log_partition
        return LogPartition.without_error(bound, lower=bound, upper=math.inf)
    if method != "reverse_ais":
        raise ValueError(
            "Expected method 'exact', 'ais', 'reverse_ais', 'tempering', 'bethe' or "
            f"'mean_field'. Received: method={method!r}."
        )
    _check(potentials, num_chains, minimum=2)
    check_counts(0, steps=steps)
    batch = potentials.batch_size
    if batch is not None and initial_visible is not None:
        num_chains = tf.shape(initial_visible)[0] // batch
    tiled = potentials.repeat(num_chains)
    if initial_visible is None:
        path, _ = _path(tiled, base, None)
        rows = num_chains if batch is None else num_chains * batch
        shape = (rows, potentials.num_visible)
        start = path.sample_base(shape, random.fold_in(seed, -2))
        initial_visible = gibbs_chain(
            tiled, start, random.fold_in(seed, -3), num_sweeps=steps
        )
    values = reverse_annealed_importance_sampling(tiled, initial_visible, **annealing)
    return LogPartition.from_bounds(_per_model(values, num_chains, batch))


def _check(potentials, num_chains, minimum):
    check_normalizable(potentials)
    check_counts(minimum, num_chains=num_chains)


def _path(potentials, base, num_chains):
    batch = potentials.batch_size
    if num_chains is not None:
        potentials = potentials.repeat(num_chains)
    if base is None:
        base = tf.zeros(potentials.num_visible)
    base = tf.cast(base, tf.float32)
    if base.shape.rank == 2:
        repeats = potentials.batch_size // tf.shape(base)[0]
        base = tf.tile(base, (repeats, 1))
    return TemperedPath(potentials, base), batch


def _per_model(log_weights, num_chains, batch):
    if batch is None:
        return log_weights
    return tf.reshape(log_weights, (num_chains, batch))
