"""Writes the made-up source files of the builder tests, in the sources' layout.

Run: python tests/datasets/dummy_data/make_dummy_data.py
"""

import pathlib

import numpy as np
import scipy.io

HERE = pathlib.Path(__file__).parent


def first_image(index):
    """An image with its `index + 1` first pixels on, row by row."""
    return (np.arange(28 * 28) <= index).reshape(28, 28)


def by_columns(num_images, offset):
    """Images as rows of a matrix, pixels column by column."""
    images = [first_image(offset + i) for i in range(num_images)]
    return np.stack([image.ravel(order="F") for image in images])


def main():
    """Writes both files."""
    scipy.io.savemat(
        HERE / "caltech101_silhouettes/caltech101_silhouettes_28_split1.mat",
        {
            "train_data": by_columns(3, 0).astype(np.uint8),
            "train_labels": np.array([[1], [2], [101]], np.uint8),
            "val_data": by_columns(2, 3).astype(np.uint8),
            "val_labels": np.array([[1], [101]], np.uint8),
            "test_data": by_columns(2, 5).astype(np.uint8),
            "test_labels": np.array([[2], [3]], np.uint8),
        },
        do_compression=True,
    )
    alphabets = np.eye(50)
    scipy.io.savemat(
        HERE / "omniglot28/chardata.mat",
        {
            "data": 0.75 * by_columns(3, 0).T,
            "target": alphabets[:, [0, 1, 49]],
            "targetchar": np.array([[1, 2, 3]]),
            "testdata": 0.25 * by_columns(2, 3).T,
            "testtarget": alphabets[:, [0, 49]],
            "testtargetchar": np.array([[1, 2]]),
        },
        do_compression=True,
    )


if __name__ == "__main__":
    main()
