"""The strongest pairs of binary columns, which the hidden units of an RBM start at.

Where rows are few, or columns follow sharp rules, an RBM that starts at random weights
ends below the Chow-Liu tree; one that starts there goes on from it.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy.sparse import coo_array
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    minimum_spanning_tree,
)

from keras_rbm import random
from keras_rbm.models.data.rows import as_rows
from keras_rbm.rules.parallel_tempering import ParallelTempering
from keras_rbm.units.bernoulli import Bernoulli, Spin

#: Columns beyond which the tables of all pairs would be large.
_MOST_COLUMNS = 1200
#: Rows of independent columns that are added to the counts of a pair.
_PRIOR_ROWS = 4.0
#: States that chains begin at; if there are more chains, several begin at one.
_SAMPLES = 1000
#: Largest logarithm of a pair's odds ratio; chains hardly ever change a sharper one.
_LARGEST_RATIO = 8.0


class Pairs(NamedTuple):
    """Edges of a forest, the strongest first.

    Attributes:
        ends: array (E, 2), int, columns.
        log_ratios: array (E, 2, 2), `log p(a, b) / (p(a) p(b))` of the states of both.
        means: array (V,), probabilities of state 1.
    """

    ends: np.ndarray
    log_ratios: np.ndarray
    means: np.ndarray


class PairStart(NamedTuple):
    """What hidden units, one for each pair, add to an RBM of units 0 and 1.

    Attributes:
        kernel: array (V, E).
        hidden_bias: array (E,).
        visible_bias: array (V,), to add to that of independent units.
    """

    kernel: np.ndarray
    hidden_bias: np.ndarray
    visible_bias: np.ndarray


def strongest_pairs(rows, weights):
    """Returns the edges of the Chow-Liu tree [1], the strongest first, as `Pairs`.

    Those are left out whose mutual information chance alone might give: N times it is
    below the logarithm of the number of pairs.

    Args:
        rows: array (N, V), between 0 and 1, NaN where unknown.
        weights: array (N,); only their ratios matter.

    References:
        1. Chow, Liu. Approximating discrete probability distributions with dependence
           trees. IEEE Transactions on Information Theory, 1968.
    """
    counts = _counts(rows, np.reshape(weights / np.mean(weights), (-1, 1)))
    number = counts.sum((0, 1))  # of rows that know both
    first, second = _marginals((counts + 0.5) / (number + 2.0))
    both = (counts + _PRIOR_ROWS * first * second) / (number + _PRIOR_ROWS)
    both = _blunted(both)
    first, second = _marginals(both)
    log_ratios = np.log(both / (first * second))
    information = np.triu((both * log_ratios).sum((0, 1)), 1)
    columns = len(information)
    chance = np.log(max(2, columns * (columns - 1) // 2))
    likely = number * information > chance
    forest = minimum_spanning_tree(np.where(likely, -information, 0.0)).tocoo()
    strongest = np.argsort(forest.data, kind="stable")
    ends = np.stack([forest.row, forest.col], 1)[strongest]
    means = np.diagonal(first[1, 0])
    first, second = ends.T
    return Pairs(ends, np.moveaxis(log_ratios[:, :, first, second], -1, 0), means)


def _counts(rows, weights):
    """Returns how many rows have two columns in each of two states, (2, 2, V, V)."""
    known, on = np.isfinite(rows), np.nan_to_num(rows)
    weighted = (on * weights).astype(np.float32)
    both = np.float64(weighted.T @ on)
    if known.all():
        first, number = np.float64(weighted.sum(0))[:, np.newaxis], weights.sum()
    else:
        first = np.float64(weighted.T @ known.astype(np.float32))
        number = (known * weights).T @ known.astype(np.float64)
    second = first.T
    off = number - first - second + both
    return np.maximum([[off, second - both], [first - both, both]], 0.0)


def _marginals(both):
    return both.sum(1)[:, np.newaxis], both.sum(0)[np.newaxis]


def _blunted(both):
    """Returns tables (2, 2, …) with the same marginals, whose odds ratio is limited.

    With two marginals and a ratio r, the probability of both is the root of a quadratic
    equation [1].

    References:
        1. Plackett. A class of bivariate distributions. JASA, 1965.
    """
    ratio = np.log(both[1, 1]) + np.log(both[0, 0]) - np.log(both[1, 0] * both[0, 1])
    excess = np.expm1(np.clip(ratio, -_LARGEST_RATIO, _LARGEST_RATIO))
    first, second = both[1].sum(0), both[:, 1].sum(0)
    linear = 1.0 + (first + second) * excess
    root = np.sqrt(linear**2 - 4.0 * (excess + 1.0) * excess * first * second)
    joint = 2.0 * (excess + 1.0) * first * second / (linear + root)
    limited = [[1.0 - first - second + joint, second - joint], [first - joint, joint]]
    return np.where(np.abs(ratio) > _LARGEST_RATIO, limited, both)


def pair_start(pairs, columns):
    """Returns the RBM of which these pairs are the distribution, as `PairStart`.

    A hidden unit with weights w and ±w adds `softplus(c + w (v_i ± v_j))` to the
    log-probability, of which the part that belongs to both states is
    `± 2 log cosh(w / 2)`; the rest goes into the visible biases.
    """
    count = len(pairs.ends)
    ratios = pairs.log_ratios
    joint = ratios[:, 1, 1] - ratios[:, 1, 0] - ratios[:, 0, 1] + ratios[:, 0, 0]
    weight = 2.0 * np.arccosh(np.exp(np.abs(joint) / 2.0))
    weights = np.stack([weight, np.where(joint > 0.0, weight, -weight)], 1)
    hidden_bias = np.where(joint > 0.0, -weight, 0.0)
    kernel, visible_bias = np.zeros((columns, count)), np.zeros(columns)
    kernel[pairs.ends.T, np.arange(count)] = weights.T
    off = np.logaddexp(0.0, hidden_bias)
    alone = np.stack([ratios[:, 1, 0], ratios[:, 0, 1]], 1) - ratios[:, :1, 0]
    added = np.logaddexp(0.0, hidden_bias[:, np.newaxis] + weights) - off[:, np.newaxis]
    np.add.at(visible_bias, pairs.ends, alone - added)
    return PairStart(kernel, hidden_bias, visible_bias)


def forest_sample(pairs, noise):
    """Returns independent states 0 and 1, (N, V), of the distribution of a forest.

    Args:
        pairs: `Pairs`.
        noise: array (N, V), between 0 and 1.
    """
    states = noise < pairs.means
    columns = len(pairs.means)
    numbers = 1.0 + np.arange(len(pairs.ends))  # of edges; 0 would be none
    edges = coo_array((numbers, tuple(pairs.ends.T)), (columns, columns)).tocsr()
    edges = edges + edges.T
    _, trees = connected_components(edges, directed=False)
    for root in np.unique(trees, return_index=True)[1]:
        order, parents = breadth_first_order(edges, root, directed=False)
        for column in order[1:]:
            parent = parents[column]
            number = int(edges[parent, column]) - 1
            ratios = pairs.log_ratios[number]
            if pairs.ends[number, 0] == column:
                ratios = ratios.T
            given = pairs.means[column] * np.exp(ratios[:, 1])
            states[:, column] = noise[:, column] < given[states[:, parent].astype(int)]
    return states


def start_at_pairs(model, chunks, weights):
    """Starts an RBM at its visible units' strongest pairs, and its chains there.

    It does if the rule is `ParallelTempering` (other chains stay long in what pairs
    have and the data do not), both layers have units of two states, nothing but the
    visible biases has been chosen or set, and the hidden units suffice for half of the
    pairs: if they do not, they are better spent otherwise.

    Args:
        model: a new model whose visible units are fitted to the data.
        chunks, weights: lists of arrays (n, V) and (n,).
    """
    if not _takes_pairs(model):
        return
    rows = np.concatenate([np.asarray(as_rows(chunk)) for chunk in chunks])
    (low, width), (hidden_low, hidden_width) = map(
        states_of, (model.visible, model.hidden)
    )
    pairs = strongest_pairs((rows - low) / width, np.concatenate(weights))
    units = model.kernel.shape[1]
    if not len(pairs.ends) or len(pairs.ends) > 2 * units:
        return
    pairs = pairs._replace(ends=pairs.ends[:units], log_ratios=pairs.log_ratios[:units])
    start = pair_start(pairs, rows.shape[1])
    kernel, hidden_bias = (
        np.array(variable.numpy()) for variable in (model.kernel, model.hidden_bias)
    )
    paired = slice(len(pairs.ends))
    kernel[:, paired] = start.kernel / (width * hidden_width)
    hidden_bias[paired] = start.hidden_bias / hidden_width
    hidden_bias[paired] -= low * kernel[:, paired].sum(0)
    visible_bias = start.visible_bias / width - hidden_low * kernel[:, paired].sum(1)
    model.kernel.assign(kernel)
    model.hidden_bias.assign(hidden_bias)
    model.visible_bias.assign_add(visible_bias)
    noise = random.uniform((_SAMPLES, rows.shape[1]), model._next_seed()).numpy()
    states = low + width * forest_sample(pairs, noise)
    model.rule.start_chains(tf.constant(states, tf.float32))


def _takes_pairs(model):
    free = model._chooses_kernel and model._visible_bias_initializer is None
    if model.conditional or not free or isinstance(model.hidden, list):
        return False
    units = model.visible, model.hidden
    variables = model.kernel, model.visible_bias, model.hidden_bias
    return (
        isinstance(model.rule, ParallelTempering)
        and all(map(has_two_states, units))
        and all(variable.trainable for variable in variables)
        and not np.any(model.hidden_bias)
        and model.kernel.shape[0] <= _MOST_COLUMNS
    )


def has_two_states(unit):
    """Returns whether units have two states, which are numbers."""
    return isinstance(unit, Bernoulli | Spin)


def states_of(unit):
    """Returns the lower state of a unit of two, and how far the other is from it."""
    low, high = unit.parameters(0.0).states
    return low, high - low
