"""How long a first answer takes: each call in a new process, and the same again.

    python examples/benchmarks/first_call.py
    python examples/benchmarks/first_call.py --jobs "RBM, fit" "Dense, fit" --repeats 5

Digits, 1,797 rows of 64 pixels, 64 hidden units (layers of 64 and 32), ten epochs of
`fit` by default. What comes before a call is not counted, but the import of the library
is no part of any. Beside them are the ten epochs of a Keras autoencoder with one layer
of 64 units, and those of scikit-learn's `BernoulliRBM`.

Prints medians of seconds: of the first call, of the Python that traces in it, of the
same call again (of `fit`: of another, new model), and how many operations were traced.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings

UNITS, EPOCHS = 64, 10


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=[*JOBS])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--in-this-process", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.in_this_process:
        print(json.dumps(measured(args.in_this_process)))
        return
    print("| call | first, s | tracing, s | again, s | operations |")
    print("| --- | --- | --- | --- | --- |")
    found = {name: [] for name in args.jobs}
    for _ in range(args.repeats):  # in turns: a machine's speed drifts
        for name in args.jobs:
            found[name].append(in_a_new_process(name))
    for name in args.jobs:
        first, tracing, again, operations = (
            statistics.median(values) for values in zip(*found[name], strict=True)
        )
        cells = f"{first:.2f} | {tracing:.2f} | {again:.2f} | {operations:.0f}"
        print(f"| {name} | {cells} |", flush=True)


def in_a_new_process(name):
    """Returns what `measured` does, by a process of its own."""
    command = [sys.executable, __file__, "--in-this-process", name]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def measured(name):
    """Returns seconds of a first call, and of its tracing; of the next; operations."""
    import keras  # noqa: F401
    import sklearn.neural_network  # noqa: F401
    from sklearn.datasets import load_digits
    from tensorflow.python.eager.polymorphic_function import tracing_compilation
    from tensorflow.python.framework import ops

    import keras_rbm  # noqa: F401

    warnings.simplefilter("ignore")
    traced, depth = [0.0], [0]
    trace, add = tracing_compilation.trace_function, ops.Graph._add_op
    count = [0]

    def timed_trace(*args, **kwargs):
        start, outer = time.perf_counter(), not depth[0]
        depth[0] += 1
        try:
            return trace(*args, **kwargs)
        finally:
            depth[0] -= 1
            traced[0] += outer * (time.perf_counter() - start)

    def counted(*args):
        count[0] += 1
        return add(*args)

    data = (load_digits().data > 8).astype("float32")
    before, call = JOBS[name]
    prepared = [before(data) for _ in range(2)]
    tracing_compilation.trace_function, ops.Graph._add_op = timed_trace, counted
    seconds = []
    for ready in prepared:
        start = time.perf_counter()
        call(data, ready)
        seconds.append(time.perf_counter() - start)
        if len(seconds) == 1:
            first = traced[0], count[0]
    return seconds[0], first[0], seconds[1], first[1]


def new(name, *args, **kwargs):
    """Returns a function that makes and compiles a model."""

    def make(data):
        import keras_rbm

        model = getattr(keras_rbm, name)(*args, **kwargs)
        model.compile()
        return model

    return make


def fit(data, model):
    model.fit(data, epochs=EPOCHS, verbose=0)


def fit_pairs(data, model):
    model.fit(1.0 - data, data, epochs=EPOCHS, verbose=0)


def fit_with_gaps(data, model):
    import numpy as np

    gaps = np.random.default_rng(0).random(data.shape) < 0.1
    model.fit(np.where(gaps, np.nan, data), epochs=EPOCHS, verbose=0)


def fit_scaled(data, model):
    model.fit(2.0 * data + 0.1 * data.sum(1, keepdims=True), epochs=EPOCHS, verbose=0)


def table(data):
    """Returns a model of bits, numbers and a category."""
    from keras_rbm.units import Categorical, Joined

    unit = Joined([("bernoulli", 60), ("gaussian", 3), (Categorical(2), 1)])
    return new("RBM", UNITS, visible=unit, seed=0)(data)


def fitted(data):
    """Returns a model that was just trained."""
    model = new("RBM", UNITS, seed=0)(data)
    fit(data, model)
    return model


_KEPT = []


def fitted_once(data):
    """Returns the same model each time."""
    if not _KEPT:
        _KEPT.append(fitted(data))
    return _KEPT[0]


def autoencoder(data):
    import keras

    layers = [
        keras.Input((64,)),
        keras.layers.Dense(UNITS, "relu"),
        keras.layers.Dense(64, "sigmoid"),
    ]
    model = keras.Sequential(layers)
    model.compile("adam", "binary_crossentropy")
    return model


def fit_autoencoder(data, model):
    model.fit(data, data, epochs=EPOCHS, verbose=0)


def bernoulli_rbm(data):
    from sklearn.neural_network import BernoulliRBM

    return BernoulliRBM(UNITS, n_iter=EPOCHS, random_state=0)


def estimator(data):
    from keras_rbm.sklearn import RBMEstimator

    return RBMEstimator(UNITS, n_iter=EPOCHS, random_state=0)


def score_report(data, model):
    import keras_rbm

    keras_rbm.score_report(model, data[:500])


def impute(data, model):
    import numpy as np

    gaps = np.random.default_rng(0).random(data.shape) < 0.3
    model.impute(np.where(gaps, np.nan, data))


JOBS = {
    "Dense, fit": (autoencoder, fit_autoencoder),
    "BernoulliRBM, fit": (bernoulli_rbm, lambda data, model: model.fit(data)),
    "RBM, fit": (new("RBM", UNITS, seed=0), fit),
    "CRBM, fit": (new("CRBM", UNITS, seed=0), fit_pairs),
    "DBN, fit": (new("DBN", [UNITS, 32], seed=0), fit),
    "DBM, fit": (new("DBM", [UNITS, 32], seed=0), fit),
    "RBM(missing='latent'), fit": (
        new("RBM", UNITS, missing="latent", seed=0),
        fit_with_gaps,
    ),
    "RBM(visible='gaussian'), fit": (
        new("RBM", UNITS, visible="gaussian", seed=0),
        fit_scaled,
    ),
    "RBM of a table, fit": (table, fit),
    "predict": (fitted_once, lambda data, model: model.predict(data, verbose=0)),
    "sample": (fitted_once, lambda data, model: model.sample(100, seed=0)),
    "log_partition": (fitted_once, lambda data, model: model.log_partition()),
    "score_report": (fitted_once, score_report),
    "impute": (fitted_once, impute),
    "RBMEstimator, fit": (estimator, lambda data, model: model.fit(data)),
    "RBMEstimator, score_samples": (
        lambda data: estimator(data).fit(data),
        lambda data, model: model.score_samples(data),
    ),
}


if __name__ == "__main__":
    main()
