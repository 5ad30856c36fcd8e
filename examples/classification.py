"""Classify digits by RBMs that have a label, also where most labels are missing.

    python examples/classification.py
    python examples/classification.py --mnist --methods hybrid --hidden 1500 --epochs 40
    python examples/classification.py --mnist --labels 1000

`discriminative` is a `CRBM` of the label given the picture, by exact maximum
likelihood. The others are `RBM`s of both together: `generative` learns log p(x, y),
`hybrid` log p(y | x) + α log p(x, y). With `--labels`, so many pictures keep their
label; the RBMs learn from the others, too, beside methods of scikit-learn and a Keras
network of the same size. Pixels are gray; a binary unit draws its state in each step.
"""

import argparse
import json
import pathlib
import time

import keras
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.semi_supervised import LabelSpreading

import keras_rbm as kr

#: Rows that LabelSpreading, whose time grows with their square, takes.
SPREAD = 10_000


def digits(args):
    """Returns pictures and labels for training, validation and test."""
    if args.mnist:
        import tensorflow_datasets as tfds

        sets = tfds.as_numpy(tfds.load("mnist", batch_size=-1))
        x, y = (
            np.concatenate([sets[split][name] for split in ("train", "test")])
            for name in ("image", "label")
        )
        x = x.reshape(len(x), -1).astype("float32") / 255.0
        cuts = [50_000, 60_000]
    else:
        data = load_digits()
        parts = train_test_split(data.data / 16.0, data.target, random_state=0)
        x, y = (np.concatenate(pair) for pair in (parts[:2], parts[2:]))
        x, cuts = x.astype("float32"), [1100, 1347]
    parts = zip(np.split(x, cuts), np.split(y, cuts), strict=True)
    (x, y), *others = parts
    if args.labels:
        order = np.random.default_rng(args.seed).permutation(len(x))
        x, y = x[order], y[order].astype("float32")
        y[args.labels :] = np.nan
    return (x, y), *others


def joint(x, y):
    """Returns pictures with their label as the last column."""
    return np.column_stack([x, y]).astype("float32")


def without_label(x):
    return joint(x, np.full(len(x), np.nan))


class BestError(keras.callbacks.Callback):
    """Keeps the weights of the epoch with the least validation error."""

    def __init__(self, predict, data):
        super().__init__()
        self.predict, self.data, self.errors = predict, data, []

    def on_epoch_end(self, epoch, logs=None):
        x, y = self.data
        self.errors.append(100.0 * np.mean(self.predict(x) != y))
        if self.errors[-1] <= min(self.errors):
            self.weights = self.model.get_weights()
        print(f"epoch {epoch + 1}: {self.errors[-1]:.2f} % wrong", flush=True)

    def on_train_end(self, logs=None):
        self.model.set_weights(self.weights)


def rbm(args, train, validation, rule):
    """Returns a function that predicts labels by a trained RBM, and its errors."""
    (x, y), width = train, train[0].shape[1]
    kinds = [(kr.units.Bernoulli(), width), (kr.units.Categorical(10), 1)]
    model = kr.RBM(
        args.hidden,
        visible=kr.units.Joined(kinds),
        missing="latent",
        seed=args.seed,
    )
    model.compile(args.optimizer, rule=rule)

    def predict(x):
        return np.argmax(model.marginals(without_label(x))[:, width:], 1)

    best = BestError(predict, validation)
    model.fit(
        joint(x, y),
        batch_size=args.batch_size,
        epochs=args.epochs,
        callbacks=[best],
        verbose=0,
    )
    return predict


def generative(args, train, validation):
    return rbm(args, train, validation, "pcd")


def hybrid(args, train, validation):
    rule = kr.rules.HybridDiscriminative(args.alpha)
    return rbm(args, train, validation, rule)


def labelled(train):
    """Returns the pictures that have a label, with labels as whole numbers."""
    x, y = train
    known = ~np.isnan(y)
    return x[known], y[known].astype(int)


def fitted(args, model, x, y, validation):
    """Fits a model that predicts classes; returns a function that does."""

    def predict(x):
        return np.argmax(model.predict(x, batch_size=1000, verbose=0), 1)

    best = BestError(predict, validation)
    model.fit(x, y, args.batch_size, args.epochs, callbacks=[best], verbose=0)
    return predict


def discriminative(args, train, validation):
    x, y = labelled(train)
    model = kr.CRBM(
        args.hidden,
        visible=kr.units.Categorical(10),
        kernel_regularizer=None if args.mnist else "auto",
        seed=args.seed,
    )
    model.compile(args.optimizer)
    return fitted(args, model, x, y, validation)


def network(args, train, validation):
    x, y = labelled(train)
    keras.utils.set_random_seed(args.seed)
    layers = keras.layers
    model = keras.Sequential(
        [layers.Dense(args.hidden, "relu"), layers.Dense(10, "softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return fitted(args, model, x, y, validation)


def logistic(args, train, validation):
    return LogisticRegression(max_iter=1000).fit(*labelled(train)).predict


def spreading(args, train, validation):
    x, y = train
    y = np.nan_to_num(y, nan=-1.0).astype(int)[:SPREAD]
    return LabelSpreading("knn", n_neighbors=7).fit(x[:SPREAD], y).predict


METHODS = {
    "discriminative": discriminative,
    "hybrid": hybrid,
    "generative": generative,
    "network": network,
    "logistic": logistic,
    "spreading": spreading,
}


def main():
    args = parse_arguments()
    train, validation, test = digits(args)
    record = json.loads(args.record.read_text()) if args.record.exists() else {}
    for name in args.methods:
        start = time.process_time()
        predict = METHODS[name](args, train, validation)
        seconds = time.process_time() - start
        x, y = test
        wrong = 100.0 * np.mean(predict(x) != y)
        print(f"{name}: {wrong:.2f} % wrong, {seconds:.0f} s of a core", flush=True)
        settings = {
            k: v for k, v in vars(args).items() if k not in ("record", "methods")
        }
        sizes = args.labels, args.hidden, args.epochs, args.alpha, args.seed
        key = ".".join(map(str, (name, *sizes)))
        record[key] = settings | {"wrong": wrong, "cpu_seconds": seconds}
        args.record.parent.mkdir(parents=True, exist_ok=True)
        args.record.write_text(json.dumps(record, indent=1))


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mnist", action="store_true", help="by default 8×8 digits")
    parser.add_argument("--methods", nargs="+", choices=METHODS)
    parser.add_argument("--labels", type=int, default=0, help="0 for all")
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--alpha", type=float, default=0.01)
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--record", type=pathlib.Path, default="out/classification.json"
    )
    args = parser.parse_args()
    if args.methods is None:
        args.methods = [m for m in METHODS if args.labels or m != "spreading"]
    return args


if __name__ == "__main__":
    main()
