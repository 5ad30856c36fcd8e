"""Do independent searches find the same mass?

    python examples/searches.py
    python examples/searches.py --models caltech101_silhouettes:100:10 --seeds 8

Trains RBMs with default arguments that are too large to enumerate, each given as data
set, hidden units and epochs, and estimates log Z of each from several seeds. Each is a
search of its own. Where an interval ends below the largest lower end of the others, its
search has missed a mode; prints how many. Takes five minutes on 2 cores.
"""

import argparse
import warnings

import numpy as np

import keras_rbm as kr

MODELS = (
    "caltech101_silhouettes:50:5",
    "caltech101_silhouettes:100:10",
    "caltech101_silhouettes:100:30",
    "caltech101_silhouettes:200:10",
    "caltech101_silhouettes:300:5",
    "mnist:50:20",
    "mnist:100:5",
    "mnist:200:10",
    "digits:30:100",
    "digits:100:5",
    "digits:100:300",
)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--seeds", type=int, default=4)
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    print("model | log Z, from the least | half widths | too low")
    for model in args.models:
        rbm = trained(*model.split(":"))
        found = [
            rbm.log_partition("bidirectional", seed=seed) for seed in range(args.seeds)
        ]
        found.sort(key=lambda z: z.value)
        values, widths = (
            ", ".join(f"{number:.2f}" for number in numbers)
            for numbers in (
                [z.value for z in found],
                [(z.upper - z.lower) / 2.0 for z in found],
            )
        )
        print(f"{model} | {values} | {widths} | {too_low(found)}", flush=True)


def trained(name, hidden, epochs):
    """Returns an RBM trained by default arguments, on at most 10,000 rows."""
    data = kr.datasets.load(name, "train", binarize="sample", redraw=False)
    rows = np.concatenate([*data.take(10_000).batch(1000).as_numpy_iterator()])
    rbm = kr.RBM(int(hidden), seed=1)
    rbm.compile()
    rbm.fit(rows, epochs=int(epochs), verbose=0)
    return rbm


def too_low(found):
    """Returns how many intervals end below the largest lower end of all."""
    largest = max(z.lower for z in found)
    return sum(z.upper < largest for z in found)


if __name__ == "__main__":
    main()
