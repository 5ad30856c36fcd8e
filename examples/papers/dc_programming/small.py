"""The small sets of Upadhya & Sastry (2017): exact likelihoods of 25 trials."""

import json

import keras
import numpy as np
import tensorflow as tf

import keras_rbm as kr
from examples.papers.dc_programming.rules import make_model, make_rule
from examples.papers.records import write_record

#: As the papers draw Bars & Stripes, all-0 and all-1 have probability 1/8, the other
#: twelve patterns 1/16: the loader's 16 rows. Shifting Bar has 9 equal patterns.
SETS = {
    "bars_and_stripes": ("Bars & Stripes, 3×3", {"size": 3}),
    "shifting_bar": ("Shifting Bar, 9 pixels", {"size": 9}),
}


def epochs_to_score(last):
    """Returns the epochs after which the likelihood is computed."""
    early = [0, 10, 20, 50, 100, 150, 200]
    epochs = [*early, *range(250, 5000, 250), *range(5000, last + 1, 1000), last]
    return sorted({epoch for epoch in epochs if epoch <= last})


def run(settings, trials, epochs, records):
    """Runs all trials of a rule at a rate on a set; skips trials that it has done."""
    path = records / f"{'.'.join(map(str, settings.values()))}.json"
    record = settings | {"epochs": epochs_to_score(epochs), "log_likelihood": []}
    if path.exists():
        scored, record = record["epochs"], json.loads(path.read_text())
        if record["epochs"] != scored:
            raise ValueError(
                f"Expected the epochs that {path} was scored after. Received: others. "
                "Give the same --epochs, or another folder."
            )
    curves = record["log_likelihood"]
    if len(curves) >= trials:
        return
    _, options = SETS[settings["set"]]
    rows = kr.datasets.load(settings["set"], "train", **options)
    rows = np.stack(list(rows.as_numpy_iterator()))
    train, score, model = _compiled(settings, rows)
    for trial in range(len(curves), trials):
        _start_again(model, settings, rows, trial)
        curve = [float(score())]
        for start, end in zip(record["epochs"], record["epochs"][1:], strict=False):
            train(tf.constant(end - start))
            curve.append(round(float(score()), 5))
        curves.append(curve)
        write_record(path, record)
        print(
            path.stem, trial, f"best {max(curve):.3f}, last {curve[-1]:.3f}", flush=True
        )


def _new(settings, rows, trial):
    rule = make_rule(settings["rule"], 12, 3, num_chains=len(rows))
    model = make_model(rows, 4, seed=trial)
    model.compile(keras.optimizers.SGD(settings["rate"]), rule=rule)
    return model


def _compiled(settings, rows):
    """Returns functions that train for some epochs and score, and their model.

    An epoch is one full batch. Tens of microseconds: a loop around `train_step`,
    compiled as a whole, in place of `fit`.
    """
    model = _new(settings, rows, 0)
    data = tf.constant(rows)

    @tf.function(jit_compile=True)
    def train(epochs):
        def epoch(index):
            model.train_step((data,))
            return (index + 1,)

        tf.while_loop(lambda index: index < epochs, epoch, (tf.constant(0),))

    @tf.function
    def score():
        energy = tf.reduce_mean(model.free_energy(data))
        log_z = kr.inference.exact_log_partition(model.potentials())
        return -tf.cast(energy, tf.float64) - log_z

    return train, score, model


def _start_again(model, settings, rows, trial):
    """Sets everything that the compiled model is to a new trial's start."""
    fresh = _new(settings, rows, trial)
    for ours, theirs in (
        (model.weights, fresh.weights),
        (model.optimizer.variables, fresh.optimizer.variables),
        (model.rule.learner.variables, fresh.rule.learner.variables),
        ([model.seed_generator.state], [fresh.seed_generator.state]),
    ):
        for variable, value in zip(ours, theirs, strict=True):
            variable.assign(value)
