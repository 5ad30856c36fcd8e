"""Binary tables of the density-estimation benchmarks."""

import argparse
import pathlib

import numpy as np

PARTS = "train", "valid", "test"


def load(folder, name):
    """Returns the rows of a set, uint8 arrays (N, V) of training, validation and test.

    Args:
        folder: path, with `NAME.npz`, which holds rows packed by `np.packbits` and
            their number of `columns`; or with `NAME.train.data`, `NAME.valid.data` and
            `NAME.test.data` as they are published, numbers with commas between.
        name: str.
    """
    path = folder / f"{name}.npz"
    if path.exists():
        with np.load(path) as packed:
            columns = int(packed["columns"])
            return [np.unpackbits(packed[part], 1)[:, :columns] for part in PARTS]
    paths = [folder / f"{name}.{part}.data" for part in PARTS]
    return [np.loadtxt(path, np.uint8, delimiter=",", ndmin=2) for path in paths]


def names(folder):
    """Returns the names of all sets in a folder, sorted."""
    packed = {path.stem for path in folder.glob("*.npz")}
    published = {
        path.name[: -len(".train.data")] for path in folder.glob("*.train.data")
    }
    return sorted(packed | published)


def parser(description):
    """Returns a parser of the names of sets, and of the folders of data and records."""
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("names", nargs="*", help="all of the folder by default")
    found.add_argument("--data", type=pathlib.Path, required=True)
    records = pathlib.Path("docs/results/density")
    found.add_argument("--records", type=pathlib.Path, default=records)
    return found
