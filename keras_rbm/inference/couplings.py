"""How units of one layer depend on each other through the other layer."""

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm._checks import check_counts
from keras_rbm.inference.arguments import as_floats, check_model, checked_states
from keras_rbm.inference.potentials import Potentials


def zero_sum_gauge(potentials: Potentials) -> Potentials:
    """Returns the same model with kernels that sum to 0 over a unit's categories.

    Adding a number to the kernel rows of all categories of a unit, and subtracting it
    from the other layer's bias, does not change the model. The gauge takes the mean:
    `W_iaj -= mean_a W_iaj`, `c_j += sum_i mean_a W_iaj`, and likewise for categorical
    hidden units. Free energies do not change. Other types of units are left unchanged.

    Args:
        potentials: `Potentials`.

    Returns:
        `Potentials`.

    Example:

    >>> rbm = keras_rbm.RBM(2, visible=keras_rbm.units.Categorical(3), num_visible=2)
    >>> fixed = keras_rbm.inference.zero_sum_gauge(rbm.potentials())
    >>> sums = tf.reduce_sum(tf.reshape(fixed.kernel, (2, 3, 2)), 1)
    >>> bool(tf.reduce_max(abs(sums)) < 1e-6)
    True
    """
    check_model(potentials)
    return _gauged(_gauged(potentials).transpose()).transpose()


def _gauged(potentials):
    owner = potentials.visible.unit_of_row
    several = (np.bincount(owner) > 1)[:, np.newaxis]
    kernel = potentials.kernel
    means = tf.math.unsorted_segment_mean(kernel, owner, len(several))
    means = tf.where(several, means, tf.zeros_like(means))
    bias = potentials.hidden_bias
    hidden = potentials.hidden.with_bias(
        bias + tf.cast(tf.reduce_sum(means, 0), bias.dtype)
    )
    return Potentials(kernel - tf.gather(means, owner), potentials.visible, hidden)


def effective_couplings(
    potentials: Potentials, visible: ArrayLike, weights: ArrayLike | None = None
) -> tf.Tensor:
    """Computes how strongly visible units are coupled through the hidden ones [1].

    `J_rs = sum_j <Var(h_j | v)> W_rj W_sj`, in the zero-sum gauge, with the mean taken
    over data: the second-order term of `-F(v)`.

    Args:
        potentials: `Potentials` whose hidden units are one number each.
        visible: tensor (B, V), data.
        weights: tensor (B,), by default all equal.

    Returns:
        tensor (rows, rows), a row for each row of the kernel.

    Raises:
        ValueError: if the shapes are wrong, or hidden units are categorical.

    Example:

    >>> rbm = keras_rbm.RBM(2, visible=keras_rbm.units.Categorical(3), num_visible=4)
    >>> model = rbm.potentials()
    >>> keras_rbm.inference.effective_couplings(model, tf.zeros((5, 4))).shape
    TensorShape([12, 12])

    References:
        1. Tubiana, Cocco, Monasson. Learning protein constitutive motifs from sequence
           data. eLife 8, 2019.
    """
    visible = checked_states(potentials, "visible", visible)
    units = potentials.hidden
    if units.num_rows != units.num_units:
        raise ValueError(
            "Expected hidden units that are one number each. Received: "
            f"{type(units).__name__}."
        )
    rows = visible.shape[0]
    weights = tf.ones(rows) if weights is None else weights
    weights = as_floats("weights", weights, (rows,))
    sound = np.isfinite(weights) & (weights.numpy() >= 0.0)
    if not sound.all() or not np.sum(weights) > 0.0:
        raise ValueError(
            "Expected finite weights ≥ 0, not all 0. Received: "
            f"weights={weights.numpy()!r:.200}."
        )
    potentials = zero_sum_gauge(potentials)
    natural = potentials.hidden_natural(visible)
    with tf.GradientTape() as tape:
        tape.watch(natural)
        means = potentials.hidden.first(potentials.hidden.mean(natural))
    variances = tape.gradient(means, natural)
    share = weights / tf.reduce_sum(weights)
    variance = tf.linalg.matvec(variances, share, transpose_a=True)
    kernel = tf.cast(potentials.kernel, variance.dtype)
    return tf.matmul(kernel * variance, kernel, transpose_b=True)


def contact_scores(couplings: ArrayLike, num_units: int) -> np.ndarray:
    """Computes a score for each pair of units: norm, with product correction [1].

    `F_ij` is the Frobenius norm of the couplings of the categories of i with those of
    j. `F_i. F_.j / F_..`, how much i and j couple with all units, is subtracted.

    Args:
        couplings: tensor (rows, rows), as returned by `effective_couplings`.
        num_units: int, V; each unit has rows / V categories.

    Returns:
        array (V, V), 0 on the diagonal.

    Raises:
        ValueError: if the number of rows is not a multiple of `num_units`.

    Example:

    >>> keras_rbm.inference.contact_scores(tf.eye(12), num_units=4).shape
    (4, 4)

    References:
        1. Dunn, Wahl, Gloor. Mutual information without the influence of phylogeny or
           entropy dramatically improves residue contact prediction.
           Bioinformatics 2008.
    """
    check_counts(2, num_units=num_units)
    couplings = as_floats("couplings", couplings).numpy()
    rows = len(couplings) if couplings.ndim else 0  # type: ignore[arg-type]
    if couplings.ndim != 2 or couplings.shape != (rows, rows) or rows % num_units:
        raise ValueError(
            "Expected couplings of shape (rows, rows), and rows that are a multiple of "
            f"num_units. Received: shape {couplings.shape}, num_units={num_units}."
        )
    rounding = 1e-5 * np.max(np.abs(couplings), initial=0.0)
    if not np.abs(couplings - couplings.T).max(initial=0.0) <= rounding:  # or NaN
        raise ValueError(
            "Expected symmetric, finite couplings. Received: couplings[r, s] that "
            "differ from couplings[s, r], or NaN."
        )
    shape = (num_units, rows // num_units, num_units, rows // num_units)
    norms = np.sqrt(np.square(couplings.reshape(shape)).sum((1, 3)))
    norms = 0.5 * (norms + norms.T)  # products of matrices are rounded
    np.fill_diagonal(norms, 0.0)
    means = norms.sum(1) / (num_units - 1)
    mean = max(means.mean(), 1e-30)
    scores = norms - np.outer(means, means) / mean
    np.fill_diagonal(scores, 0.0)
    return scores
