"""Seconds of an epoch, and memory, where labels are many.

    python examples/benchmarks/many_labels.py

Random rows of the size of delicious, bookmarks and their 983 tags. Prints seconds of
three epochs of a CRBM of eight hidden units, of predicting 1,000 rows by each decision,
and the most memory that the process has held.
"""

import argparse
import resource
import time

import keras
import numpy as np

from keras_rbm.sklearn import CRBMClassifier


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=13_000)
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--labels", type=int, default=983)
    parser.add_argument("--predicted", type=int, default=1000)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    x = np.float32(rng.random((args.rows, args.features)) < 0.04)
    y = np.float32(rng.random((args.rows, args.labels)) < 0.02)
    classifier = CRBMClassifier(n_iter=1, random_state=0).fit(x, y)
    model, features = classifier.model_, np.float32(classifier.scaler_.transform(x))
    print("| what | seconds |\n| --- | --- |")
    begun = []
    clock = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: begun.append(time.perf_counter())
    )
    model.fit(features, y, epochs=3, verbose=0, callbacks=[clock])
    for number, seconds in enumerate(np.diff([*begun, time.perf_counter()])):
        print(f"| epoch {number + 2} | {seconds:.1f} |", flush=True)
    for decision in ("marginal", "mode", "f1"):
        classifier.set_params(decision=decision)
        start = time.perf_counter()
        classifier.predict(x[: args.predicted])
        print(f"| predict, {decision} | {time.perf_counter() - start:.1f} |")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"\n{memory} MB")


if __name__ == "__main__":
    main()
