"""Rows that a frozen scorer scores in a second of a core, and a new process's first.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python examples/benchmarks/frozen_scorer.py

Scores of random bits by binary units, the median of some runs, in processor seconds.
The first row is scored by a new process, which reads the file, in seconds.
"""

import argparse
import pickle
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from keras_rbm_frozen import Scorer

FIRST = """
import numpy as np
from keras_rbm_frozen import Scorer
Scorer.load({path!r}).score(np.zeros((1, {visible})))
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200_000)
    args = parser.parse_args()
    print("| units | rows a second of a core | first row, s | pickle / weights |")
    print("| --- | --- | --- | --- |")
    for visible, hidden in ((64, 64), (784, 500)):
        scorer = made(visible, hidden)
        count = args.rows if visible < 100 else args.rows // 10
        rows = np.random.default_rng(0).integers(0, 2, (count, visible), np.uint8)
        taken = [seconds(scorer, rows) for _ in range(args.repeats)]
        size = sum(array.nbytes for array in scorer.arrays.values())
        rate, share = count / statistics.median(taken), len(pickle.dumps(scorer)) / size
        first = statistics.median(first_row(scorer) for _ in range(args.repeats))
        print(f"| {visible} × {hidden} | {rate:,.0f} | {first:.2f} | {share:.3f} |")


def made(visible, hidden):
    """Returns a scorer of random weights."""
    rng = np.random.default_rng(0)
    arrays = {
        "kernel": rng.normal(0.0, 0.1, (visible, hidden)),
        "visible_bias": rng.normal(size=visible),
        "hidden_bias": rng.normal(size=hidden),
    }
    layers = {"visible": [("Bernoulli", visible)], "hidden": [("Bernoulli", hidden)]}
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    return Scorer(arrays, layers, [0.0, 0.0, 0.0])


def seconds(scorer, rows):
    """Returns the processor seconds of all rows' scores."""
    start = time.process_time()
    scorer.score(rows)
    return time.process_time() - start


def first_row(scorer):
    """Returns the seconds of a new process from its start to its end."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/scorer.npz"
        scorer.save(path)
        visible = len(scorer.arrays["visible_bias"])
        code = FIRST.format(path=path, visible=visible)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
