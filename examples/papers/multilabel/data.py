"""Tables of several labels: those of a folder, and labels in blocks."""

import numpy as np
import scipy.sparse

PARTS = "train", "test"
#: Training rows of the labels in blocks, and test rows.
BLOCKS, TESTED = {"blocks": 1500, "more_blocks": 15_000}, 5000


def load(folder, name):
    """Returns features and labels to learn from, and to predict.

    Args:
        folder: path, with `NAME.npz`: of `train` and `test` a CSR matrix of so many
            `features`, as `x_train_data`, `x_train_indices` and `x_train_indptr`, and
            labels packed by `np.packbits`, `y_train`, with their number, `labels`.
        name: str, or a name of `BLOCKS`.

    Returns:
        list of x, CSR or, where most numbers are not 0, array, and y, array (N, L).
    """
    if name in BLOCKS:
        return in_blocks(BLOCKS[name])
    parts = []
    with np.load(folder / f"{name}.npz") as file:
        columns, labels = int(file["features"]), int(file["labels"])
        for part in PARTS:
            fields = (file[f"x_{part}_{key}"] for key in ("data", "indices", "indptr"))
            values, indices, starts = fields
            matrix = values.astype(np.float64), indices, starts
            x = scipy.sparse.csr_matrix(matrix, (len(starts) - 1, columns))
            y = np.unpackbits(file[f"y_{part}"], 1)[:, :labels]
            parts += [x.toarray() if x.nnz > 0.5 * np.prod(x.shape) else x, y]
    return parts


def names(folder):
    """Returns the names of all sets: of a folder, sorted, and those in blocks."""
    return [*sorted(path.stem for path in folder.glob("*.npz")), *BLOCKS]


def in_blocks(count, seed=0):
    """Returns rows of 64 features and 16 labels, one of each four is on.

    It is that whose linear function of the features is the largest (Belanger and
    McCallum 2016, section 7.4): features and weights are N(0, 1).
    """
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(64, 16))
    x = rng.normal(size=(count + TESTED, 64))
    sums = (x @ weights).reshape(-1, 4, 4)
    y = (sums == sums.max(2, keepdims=True)).reshape(-1, 16).astype(np.uint8)
    return [x[:count], y[:count], x[count:], y[count:]]
