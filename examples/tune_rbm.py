"""Searches hidden units, learning rate and rule of an RBM by KerasTuner.

    pip install keras-tuner tensorboard
    python examples/tune_rbm.py

Each trial is scored by the log-likelihood of validation data, which a callback writes
into the logs. Prints the best settings, and the likelihood of test data by them beside
that by the defaults.
"""

import argparse

import keras
import keras_tuner
import numpy as np

import keras_rbm as kr


def main():
    """Runs the search."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--out", default="tuning", help="folder of the trials")
    args = parser.parse_args()
    train, validation, test = (digits(s) for s in ("train", "validation", "test"))

    tuner = keras_tuner.BayesianOptimization(
        build,
        objective=keras_tuner.Objective("val_log_likelihood", "max"),
        max_trials=args.trials,
        seed=0,
        directory=args.out,
        project_name="rbm",
    )
    score = kr.callbacks.LogLikelihood(validation, name="val_log_likelihood")
    tuner.search(train, epochs=args.epochs, callbacks=[score], verbose=0)
    settings = tuner.get_best_hyperparameters()[0]
    print(settings.values)
    tuned, default = build(settings), kr.RBM(64, seed=0)
    default.compile()
    for name, rbm in (("tuned", tuned), ("default", default)):
        rbm.fit(train, epochs=args.epochs, verbose=0)
        z = rbm.log_partition("bidirectional")
        scores = rbm.log_likelihood(test, log_partition=z)
        print(f"{name}: {np.mean(scores):.2f} nats a test example")


def digits(split):
    """Returns binary digits of 8x8 pixels, (N, 64)."""
    data = kr.datasets.load("digits", split, binarize="sample", redraw=False)
    return np.stack(list(data.as_numpy_iterator()))


def build(settings):
    """Returns a compiled RBM with the settings of a trial."""
    rbm = kr.RBM(settings.Int("hidden_units", 16, 128, step=16), seed=0)
    rate = settings.Float("learning_rate", 1e-3, 3e-2, sampling="log")
    rule = settings.Choice("rule", ["cd", "pcd"])
    rbm.compile(keras.optimizers.Adam(rate), rule=rule)
    return rbm


if __name__ == "__main__":
    main()
