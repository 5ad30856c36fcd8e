"""Test log-likelihoods of simpler models on the density-estimation benchmarks.

    python -m examples.papers.density.baselines dna plants --data FOLDER

Independent columns; a Chow-Liu tree [1], with a tenth of a row added to each count; a
mixture of independent columns, fitted by EM [2], with the number of components that
validation rows like best; and, where deeprob-kit is installed, a sum-product network
learned by LearnSPN [3].

References:
    1. Chow, Liu. Approximating discrete probability distributions with dependence
       trees. IEEE Transactions on Information Theory, 1968.
    2. Lowd, Domingos. Naive Bayes models for probability estimation. ICML 2005.
    3. Gens, Domingos. Learning the structure of sum-product networks. ICML 2013.
"""

import importlib.util
import itertools
import time

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.special import logsumexp

from examples.papers.density.data import load, names, parser
from examples.papers.records import megabytes, write_record

#: Added to counts of pairs, in rows.
_PRIOR_ROWS = 0.1
#: Entries of a table whose columns are also divided by "rdc".
_RDC_ENTRIES = 300_000
#: Numbers of components, and sweeps of EM at most.
_COMPONENTS, _SWEEPS = (10, 30, 100, 300), 100


def main():
    args = parser(__doc__).parse_args()
    args.records.mkdir(parents=True, exist_ok=True)
    for name in args.names or names(args.data):
        for method, fit in METHODS.items():
            path = args.records / f"{name}.{method}.json"
            if path.exists():
                continue
            train, valid, test = load(args.data, name)
            start = time.process_time()
            score, chosen = fit(train, valid)
            record = {"set": name, "method": method, "seconds": 0.0} | chosen
            record["seconds"] = round(time.process_time() - start, 2)
            record["megabytes"] = megabytes()
            for part, rows in (("train", train), ("valid", valid), ("test", test)):
                record[part] = float(np.mean(score(rows)))
            write_record(path, record)
            print(record, flush=True)


def independent(train, valid):
    """Returns the log-likelihood of rows as a function, and what was chosen."""
    on = (train.sum(0) + _PRIOR_ROWS) / (len(train) + 2.0 * _PRIOR_ROWS)
    return lambda rows: rows @ np.log(on) + (1 - rows) @ np.log1p(-on), {}


def tree(train, valid):
    """Returns the log-likelihood of rows by a Chow-Liu tree, and what was chosen."""
    both = _counts(train) / len(train)
    one = np.stack([1.0 - np.diag(both[1, 1]), np.diag(both[1, 1])])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = both / (one[:, np.newaxis, :, np.newaxis] * one[:, np.newaxis])
        information = np.nansum(both * np.log(ratio), (0, 1))
    np.fill_diagonal(information, 0.0)
    # An edge of 0 is none; the same number added to all makes no difference.
    edges = minimum_spanning_tree(-1.0 - information)
    order, parents = breadth_first_order(edges, 0, directed=False)
    counts = _counts(train) + _PRIOR_ROWS
    given = np.log(counts / counts.sum(1, keepdims=True))  # log p(i | j)
    root = np.log(
        (np.bincount(train[:, order[0]], minlength=2) + _PRIOR_ROWS)
        / (len(train) + 2.0 * _PRIOR_ROWS)
    )

    def score(rows):
        total = root[rows[:, order[0]]]
        for i in order[1:]:
            total = total + _pair(given, rows, parents[i], i)
        return total

    return score, {}


def _counts(rows):
    """Returns in how many rows columns i and j have states a and b, (a, b, i, j)."""
    on = rows.astype(np.float64)
    layers = 1.0 - on, on
    return np.stack([np.stack([one.T @ two for two in layers]) for one in layers])


def _pair(given, rows, parent, child):
    return given[rows[:, parent], rows[:, child], parent, child]


def mixture(train, valid):
    """Returns the log-likelihood of rows by the best mixture, and its components."""
    best = None
    for components in _COMPONENTS:
        score = _mixture_of(train.astype(np.float64), components)
        held_out = np.mean(score(valid))
        if best is not None and held_out < best[0]:
            break
        best = held_out, score, components
    return best[1], {"components": best[2]}


def _mixture_of(train, components, seed=0):
    rng = np.random.default_rng(seed)
    resp = rng.dirichlet(np.full(components, 0.1), len(train))
    before = -np.inf
    for _ in range(_SWEEPS):
        size = resp.sum(0)
        weight = np.log((size + _PRIOR_ROWS) / (size.sum() + _PRIOR_ROWS * components))
        on = (resp.T @ train + _PRIOR_ROWS) / (size[:, np.newaxis] + 2.0 * _PRIOR_ROWS)
        log_on, log_off = np.log(on), np.log1p(-on)

        def joint(rows):
            return rows @ (log_on - log_off).T + log_off.sum(1) + weight  # noqa: B023

        each = joint(train)
        total = logsumexp(each, 1)
        resp = np.exp(each - total[:, np.newaxis])
        now = total.mean()
        if now - before < 1e-3:
            break
        before = now
    return lambda rows: logsumexp(joint(rows.astype(np.float64)), 1)


def circuit(train, valid):
    """Returns the log-likelihood of rows by LearnSPN, and what was chosen."""
    from deeprob.spn.algorithms.inference import log_likelihood
    from deeprob.spn.learning.wrappers import learn_estimator
    from deeprob.spn.structure.leaf import Bernoulli

    best = None
    # The G-test of the paper; the library's own takes hours on larger tables.
    tests = ("gvs", "rdc") if train.size <= _RDC_ENTRIES else ("gvs",)
    for test, fewest in itertools.product(tests, (100, 300, 1000)):
        network = learn_estimator(
            train.astype(np.float32),
            [Bernoulli] * train.shape[1],
            [[0, 1]] * train.shape[1],
            learn_leaf="binary-clt",
            split_cols=test,
            min_rows_slice=fewest,
            random_state=0,
            verbose=False,
        )
        held_out = float(np.mean(log_likelihood(network, valid.astype(np.float32))))
        if best is None or held_out > best[0]:
            best = held_out, network, {"test": test, "min_rows_slice": fewest}
    score = lambda rows: log_likelihood(best[1], rows.astype(np.float32))  # noqa: E731
    return score, {"chosen": best[2]}


METHODS = {"independent": independent, "tree": tree, "mixture": mixture}
if importlib.util.find_spec("deeprob"):
    METHODS["circuit"] = circuit


if __name__ == "__main__":
    main()
