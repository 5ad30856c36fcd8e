"""Measures the memory that a call adds to its data and its result.

Each call runs in a process of its own, on an array of bytes: first on a few rows, which
compiles, then on all. Reported is by how much the peak of the process' memory rises
above what it was before, less the size of the result.

Run: python examples/benchmarks/memory.py
"""

import argparse
import multiprocessing
import resource
import time

CALLS = ("adapt", "fit", "predict", "free_energy", "log_likelihood", "dense")


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--visible", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=CALLS)
    args = parser.parse_args()
    print(f"data: {args.rows * args.visible / 1e9:.2f} GB")
    print("| call | added, GB | result, GB | seconds |")
    print("| --- | --- | --- | --- |")
    context = multiprocessing.get_context("spawn")
    for call in args.calls:
        queue = context.Queue()
        process = context.Process(target=measure, args=(call, args, queue))
        process.start()
        added, result, seconds = queue.get()
        process.join()
        line = f"| `{call}` | {added:.2f} | {result:.2f} | {seconds:.1f} |"
        print(line, flush=True)


def measure(call, args, queue):
    """Puts gigabytes added, those of the result, and seconds into a queue."""
    import keras
    import numpy as np

    import keras_rbm as kr

    data = np.random.default_rng(0).integers(0, 2, (args.rows, args.visible), np.uint8)
    rbm = kr.RBM(args.hidden, num_visible=args.visible, seed=0)
    rbm.compile("sgd", rule="cd")
    dense = keras.Sequential([keras.layers.Dense(args.hidden, activation="sigmoid")])
    functions = {
        "adapt": rbm.adapt,
        "fit": lambda x: rbm.fit(x, batch_size=1000, verbose=0) and None,
        "predict": lambda x: rbm.predict(x, batch_size=1000, verbose=0),
        "free_energy": rbm.free_energy,
        "log_likelihood": lambda x: rbm.log_likelihood(x, "exact"),
        "dense": lambda x: dense.predict(x, batch_size=1000, verbose=0),
    }
    functions[call](data[:5000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    result = functions[call](data)
    seconds = time.perf_counter() - start
    size = 0 if result is None else np.asarray(result).nbytes / 1e9
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    queue.put(((peak - before) * 1024 / 1e9 - size, size, seconds))


if __name__ == "__main__":
    main()
