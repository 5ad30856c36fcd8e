"""Times and memory of an RBM on sparse rows, compared with the same dense array.

    python examples/benchmarks/sparse_rows.py

Each measurement is a process of its own: an epoch of `fit`, then the log-likelihood of
all rows with a given log Z. Memory is the most that the process held, less what it held
before (the imports, and the sparse matrix). The dense array is made from the matrix and
is left out where it would be larger than --dense gigabytes.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
import scipy.sparse

_GIGABYTE = 2**30


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--visible", type=int, default=5000)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--density", type=float, default=0.002)
    parser.add_argument("--batch-size", type=int, default=500)
    parser.add_argument("--dense", type=float, default=1.0, help="gigabytes at most")
    parser.add_argument("--one", choices=["sparse", "dense"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measured(args)))
        return
    print("| rows | passed as | ms a step | s to score | memory, GB |")
    print("| --- | --- | --- | --- | --- |")
    for count in args.rows:
        size = 4 * count * args.visible / _GIGABYTE
        for kind in ("sparse", "dense"):
            if kind == "dense" and size > args.dense:
                print(f"| {count:,} | dense | | | > {size:.1f}, the array |")
                continue
            own = ["--one", kind, "--rows", str(count)]
            command = [sys.executable, __file__, *sys.argv[1:], *own]
            shown = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            step, score, memory = json.loads(shown.stdout.splitlines()[-1])
            print(f"| {count:,} | {kind} | {step:.1f} | {score:.1f} | {memory:.2f} |")


def measured(args):
    """Returns milliseconds of a step, seconds of scoring, and gigabytes."""
    import keras_rbm as kr

    (count,), rng = args.rows, np.random.default_rng(0)
    stored = int(count * args.visible * args.density)
    places = rng.integers(0, count, stored), rng.integers(0, args.visible, stored)
    ones = np.ones(stored, np.float32)
    rows = scipy.sparse.csr_array((ones, places), (count, args.visible))
    rows.data[:] = 1.0  # of equal places, which were added
    before = peak()
    if args.one == "dense":
        rows = rows.toarray()
    rbm = kr.RBM(args.hidden, seed=0)
    rbm.compile()
    options = {"batch_size": args.batch_size, "verbose": 0}
    rbm.fit(rows[: 4 * args.batch_size], **options)  # traces and compiles
    start = time.perf_counter()
    rbm.fit(rows, **options)
    fitted = time.perf_counter()
    rbm.log_likelihood(rows, 0.0)
    steps = -(-count // args.batch_size)
    step, score = 1e3 * (fitted - start) / steps, time.perf_counter() - fitted
    return step, score, peak() - before


def peak():
    """Returns the most memory that this process has held, in gigabytes."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (_GIGABYTE if sys.platform == "darwin" else 2**20)


if __name__ == "__main__":
    main()
