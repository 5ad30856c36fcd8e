"""Restore gray digits: categories coupled by belief propagation.

    python examples/gray_restore.py
    python examples/gray_restore.py --levels 17 --tasks denoise

Predicts each pixel's gray level, one of 4 or 17, of scikit-learn's digits (8×8) from a
picture with noise (each pixel is, with probability 0.2, another level) or with a 4×4
hole at a random place. Compared are, given the same input: a multinomial logistic
regression for each pixel; a CRBM with categorical visible units, by likelihood and
sum-product; and a CRBM of binary units that learns only whether a pixel is above the
middle.

Prints the shares of wrong levels and of wrong bits (above the middle or not), the mean
difference of levels, over the changed pixels of a hole or all pixels, and the time.
"""

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import keras_rbm as kr


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--levels", type=int, nargs="+", default=[4, 17])
    tasks = ["denoise", "complete"]
    parser.add_argument("--tasks", nargs="+", choices=tasks, default=tasks)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--copies", type=int, default=4, help="corruptions of a digit")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print("| levels | task | | levels wrong, % | apart | bits wrong, % | s |")
    print("| - | - | - | - | - | - | - |")
    for levels in args.levels:
        for task in args.tasks:
            compare(levels, task, args)


def compare(levels, task, args):
    rng = np.random.default_rng(args.seed)
    digits = load_digits().data.astype(int) * levels // 17
    train, test = np.split(rng.permutation(digits), [1400])
    x, y, _ = corrupted(np.tile(train, (args.copies, 1)), task, levels, rng)
    test = np.tile(test, (args.copies, 1))
    x_test, y_test, counted = corrupted(test, task, levels, rng)
    methods = {"regressions": regressions, "CRBM": categories, "CRBM of bits": bits}
    for name, method in methods.items():
        start = time.perf_counter()
        p = method(x, y, x_test, levels, args)
        seconds = time.perf_counter() - start
        error = errors(p, y_test, levels, counted)
        cells = ["" if value is None else f"{value:.2f}" for value in error]
        print(f"| {levels} | {task} | {name} | {' | '.join(cells)} | {seconds:.0f} |")


def corrupted(digits, task, levels, rng):
    """Returns input, levels, and bools: which pixels are counted.

    Input are, one-hot, each level's quarter, and the level itself if there are more
    than four; of a hole also where it is.
    """
    x = digits.copy()
    if task == "denoise":
        noisy = rng.random(x.shape) < 0.2
        x[noisy] = (x[noisy] + rng.integers(1, levels, noisy.sum())) % levels
        counted = np.ones(x.shape, bool)
    else:
        rows, columns = rng.integers(0, 5, (2, len(x), 1))
        place = np.arange(64)
        row, column = place // 8 - rows, place % 8 - columns
        counted = (row >= 0) & (row < 4) & (column >= 0) & (column < 4)
        x[counted] = 0
    quarters = np.eye(4)[x * 4 // levels].reshape(len(x), -1)
    parts = [quarters] if levels == 4 else [quarters, x / levels]
    if task == "complete":
        parts.append(counted)
    return np.float32(np.concatenate(parts, 1)), digits.astype("float32"), counted


def regressions(x, y, x_test, levels, args):
    """Returns probabilities (n, pixels, levels)."""
    p = np.zeros((len(x_test), y.shape[1], levels))
    for pixel, column in enumerate(y.T):
        if np.ptp(column) == 0:
            p[:, pixel, int(column[0])] = 1.0
            continue
        model = LogisticRegression(C=0.1, max_iter=500).fit(x, column)
        p[:, pixel, model.classes_.astype(int)] = model.predict_proba(x_test)
    return p


def categories(x, y, x_test, levels, args):
    # As C of the regressions: 17 levels have few examples of each.
    prior = "auto" if levels == 4 else kr.regularizers.NormalPrior(0.2)
    visible = kr.units.Categorical(levels)
    crbm = kr.CRBM(
        args.hidden, visible=visible, kernel_regularizer=prior, seed=args.seed
    )
    crbm.compile()
    crbm.fit(x, y, epochs=args.epochs, verbose=0)
    return np.reshape(crbm.predict(x_test, verbose=0), (len(x_test), -1, levels))


def bits(x, y, x_test, levels, args):
    """Returns probabilities of a pixel above the middle, (n, pixels)."""
    crbm = kr.CRBM(args.hidden, seed=args.seed)
    crbm.compile()
    crbm.fit(x, (y >= levels / 2).astype("float32"), epochs=args.epochs, verbose=0)
    return crbm.predict(x_test, verbose=0)


def errors(p, y, levels, counted):
    """Returns wrong levels in percent, levels apart, and wrong bits in percent."""
    bit = y >= levels / 2
    if p.ndim == 2:
        return None, None, 100 * np.mean((p > 0.5) != bit, where=counted)
    likeliest, above = p.argmax(2), p[:, :, int(np.ceil(levels / 2)) :].sum(2)
    median = (p.cumsum(2) < 0.5).sum(2)
    return (
        100 * np.mean(likeliest != y, where=counted),
        np.mean(abs(median - y), where=counted),
        100 * np.mean((above > 0.5) != bit, where=counted),
    )


if __name__ == "__main__":
    main()
