"""MNIST and OMNIGLOT of Upadhya & Sastry (2017): likelihoods by annealing."""

import json
import time

import keras
import numpy as np
import tensorflow as tf

import keras_rbm as kr
from examples.papers.dc_programming.rules import make_model, make_rule
from examples.papers.records import write_record

SETS = ("mnist", "omniglot28", "omniglot_drawings")
#: Figure 6 and 7's starts: deviation of the weights, visible bias at the base rate.
STARTS = {
    "base": (0.01, True),
    "zero": (0.01, False),
    "small": (0.001, True),
    "small_zero": (0.001, False),
}


def drawings(folder, split):
    """Returns OMNIGLOT's drawings as a dataset of intensities (784,).

    The 32,460 drawings of 105 × 105 pixels are shrunk to 28 × 28 by area and split at
    random, 24,345 to train and 8,070 to test. They are not the 28 × 28 set of Burda et
    al.: likelihoods of the two cannot be compared.
    """
    files = ("images_background.npz", "images_evaluation.npz")
    paper = [np.load(folder / name)["images"].reshape(-1, 105, 105) for name in files]
    ink = 1.0 - np.concatenate(paper)[..., np.newaxis].astype("float32")
    small = tf.image.resize(ink, (28, 28), "area").numpy().reshape(-1, 784)
    order = np.random.default_rng(0).permutation(len(small))
    rows = order[:24_345] if split == "train" else order[24_345:32_415]
    return tf.data.Dataset.from_tensor_slices(np.clip(small[rows], 0.0, 1.0))


class Curve(keras.callbacks.Callback):
    """Scores the test set every few epochs, and keeps the curve over a cut."""

    def __init__(self, path, test, every, betas, resumed):
        super().__init__()
        self.path, self.every = path, every
        self.score = kr.callbacks.LogLikelihood(test, method="ais")
        empty = {"epochs": [], "log_likelihood": [], "lower": [], "upper": []}
        self.curve = json.loads(path.read_text()) if resumed else empty
        self.seconds = self.curve.setdefault("seconds", [])

    def set_model(self, model):
        super().set_model(model)
        self.score.set_model(model)

    def on_train_begin(self, logs=None):
        if not self.curve["epochs"]:
            self._add(0)

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds[epoch:] = [round(time.perf_counter() - self.start, 2)]
        if (epoch + 1) % self.every == 0 or epoch + 1 == self.params["epochs"]:
            self._add(epoch + 1)

    def _add(self, epochs):
        logs = {}
        self.score.on_epoch_end(epochs, logs)
        place = sum(done < epochs for done in self.curve["epochs"])
        for key, name in (
            ("log_likelihood", "log_likelihood"),
            ("lower", "log_likelihood_lower"),
            ("upper", "log_likelihood_upper"),
        ):
            self.curve[key][place:] = [round(logs[name], 4)]
        self.curve["epochs"][place:] = [epochs]
        write_record(self.path, self.curve)


def run(settings, every, betas, folder, records, data=None):
    """Trains one model, unless its record says that it has been trained."""
    name = ".".join(map(str, settings.values()))
    record = records / f"{name}.json"
    if record.exists():
        return
    print(f"\n{name}", flush=True)
    rule = make_rule(
        "CD" if settings["rule"] == "SSD" else settings["rule"],
        settings["gibbs_steps"],
        settings["inner_steps"],
        num_chains=settings["batch_size"],
    )
    fixed = {"binarize": "sample", "redraw": False, "seed": 0}
    if settings["set"] == "omniglot_drawings":
        intensities, test = (drawings(data, split) for split in ("train", "test"))
        test = kr.datasets.binarize(test.batch(1000), "sample", seed=0).cache()
    else:
        intensities = kr.datasets.load(settings["set"], "train")
        test = kr.datasets.load(settings["set"], "test", **fixed).batch(1000)
    optimizer = make_optimizer(settings)
    train = kr.datasets.shuffled_batches(
        intensities,
        settings["batch_size"],
        seed=settings["seed"],
        iterations=optimizer.iterations,
    )
    train = kr.datasets.binarize(
        train, "sample", seed=settings["seed"], iterations=optimizer.iterations
    )
    deviation, base_rate = STARTS[settings["start"]]
    model = make_model(
        intensities, settings["hidden_units"], settings["seed"], deviation, base_rate
    )
    model.compile(optimizer, rule=rule, steps_per_execution=10)
    backup = folder / f"{name}.backup"
    curve = Curve(folder / f"{name}.json", test, every, betas, backup.exists())
    resume = keras.callbacks.BackupAndRestore(backup, double_checkpoint=True)
    model.fit(train, epochs=settings["epochs"], callbacks=[curve, resume], verbose=2)
    model.save(folder / f"{name}.keras")
    write_record(record, settings | {"temperatures": betas} | curve.curve)


def make_optimizer(settings):
    """Returns plain gradient descent, or stochastic spectral descent.

    The latter's rate is for the biases; the kernel has a tenth of it.
    """
    rate = settings["rate"]
    if settings["rule"] == "SSD":
        return kr.optimizers.StochasticSpectralDescent(rate, rate / 10.0)
    return keras.optimizers.SGD(rate)
