"""Measures the memory that a call adds to its data and its result.

Each call runs in a process of its own, on an array of bytes: first on a few rows, which
compiles, then on all. Reported is by how much the peak of the process' memory rises
above what it was before, less the size of the result. `sample` draws a quarter as many
chains as there are rows, from RBM(500).

Then it prints the peak memory of processes that fit RBM(500) by PCD with 2,000 chains,
with 1 and with 100 sweeps a step.

Run: python examples/benchmarks/memory.py
"""

import argparse
import multiprocessing
import resource
import time

CALLS = (
    "adapt",
    "fit",
    "predict",
    "free_energy",
    "log_likelihood",
    "sample",
    "dense",
)
SWEEPS = (1, 100)


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
    for call in args.calls:
        added, result, seconds = in_process(measure, call, args)
        line = f"| `{call}` | {added:.2f} | {result:.2f} | {seconds:.1f} |"
        print(line, flush=True)
    print("\n| PCD, 2,000 chains, 784 × 500, sweeps | peak, GB |\n| --- | --- |")
    for sweeps in SWEEPS:
        print(f"| {sweeps} | {in_process(peak_of_fit, sweeps):.2f} |", flush=True)


def in_process(function, *arguments):
    """Returns what a function puts into a queue, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=function, args=(*arguments, queue))
    process.start()
    result = queue.get()
    process.join()
    return result


def peak_of_fit(sweeps, queue):
    """Puts the process' peak memory after a fit, in gigabytes, into a queue."""
    import keras
    import numpy as np

    import keras_rbm as kr

    data = np.random.default_rng(0).integers(0, 2, (200, 784)).astype("float32")
    rule = kr.rules.PersistentContrastiveDivergence(sweeps, num_chains=2000)
    rbm = kr.RBM(500, seed=0)
    rbm.compile(keras.optimizers.SGD(0.01), rule=rule)
    rbm.fit(data, batch_size=100, verbose=0)
    queue.put(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9)


def measure(call, args, queue):
    """Puts gigabytes added, those of the result, and seconds into a queue."""
    import keras
    import numpy as np

    import keras_rbm as kr

    data = np.random.default_rng(0).integers(0, 2, (args.rows, args.visible), np.uint8)
    rbm = kr.RBM(args.hidden, num_visible=args.visible, seed=0)
    rbm.compile("sgd", rule="cd")
    wide = kr.RBM(500, num_visible=args.visible, seed=0)
    wide.build((None, args.visible))
    dense = keras.Sequential([keras.layers.Dense(args.hidden, activation="sigmoid")])
    functions = {
        "adapt": rbm.adapt,
        "fit": lambda x: rbm.fit(x, batch_size=1000, verbose=0) and None,
        "predict": lambda x: rbm.predict(x, batch_size=1000, verbose=0),
        "free_energy": rbm.free_energy,
        "log_likelihood": lambda x: rbm.log_likelihood(x, "exact"),
        "sample": lambda x: wide.sample(len(x) // 4, steps=3, seed=0),
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
