"""Searches hidden units and prior of an RBM by Optuna, which ends bad runs early.

    pip install optuna
    python examples/optuna_search.py

After each epoch a run reports the log-likelihood of validation data; the median pruner
ends it if half of the earlier runs were better by then. The rate is left to the model.
Prints the runs, and the likelihood of test data by the best settings and the defaults.
"""

import argparse

import keras
import numpy as np
import optuna

import keras_rbm as kr


class Reports(keras.callbacks.Callback):
    """Reports the likelihood of each epoch to a trial, and ends it if it is bad."""

    def __init__(self, trial):
        super().__init__()
        self.trial = trial

    def on_epoch_end(self, epoch, logs=None):
        self.trial.report(logs["val_log_likelihood"], epoch)
        if self.trial.should_prune():
            raise optuna.TrialPruned


def main():
    """Runs the search."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=15)
    args = parser.parse_args()
    train, validation, test = (
        kr.datasets.load("digits", split, binarize="sample", as_numpy=True)
        for split in ("train", "validation", "test")
    )

    def objective(trial):
        rbm = built(suggested(trial))
        score = kr.callbacks.LogLikelihood(validation, name="val_log_likelihood")
        callbacks = [score, Reports(trial)]  # the score first: the other reads it
        history = rbm.fit(train, epochs=args.epochs, callbacks=callbacks, verbose=0)
        return history.history["val_log_likelihood"][-1]

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=0),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=3),
    )
    study.optimize(objective, args.trials)
    for trial in study.trials:
        epochs, value = len(trial.intermediate_values), trial.value
        print(f"{trial.state.name:8} {epochs:2} epochs {value:.2f} {trial.params}")
    default = kr.RBM(64, seed=0)
    default.compile()
    for name, rbm in (("best", built(study.best_params)), ("default", default)):
        rbm.fit(train, epochs=args.epochs, verbose=0)
        z = rbm.log_partition("bidirectional")
        print(f"{name}: {np.mean(rbm.log_likelihood(test, z)):.2f} nats a test example")


def suggested(trial):
    """Returns the settings of a trial."""
    return {
        "units": trial.suggest_int("units", 16, 128, step=16),
        "strength": trial.suggest_float("strength", 0.01, 1.0, log=True),
    }


def built(settings):
    """Returns a compiled RBM of a number of units and a strength of the prior."""
    prior = kr.regularizers.L1BlockPrior(settings["strength"])
    rbm = kr.RBM(settings["units"], kernel_regularizer=prior, seed=0)
    rbm.compile()
    return rbm


if __name__ == "__main__":
    main()
