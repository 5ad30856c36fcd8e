"""Many labels at once: is it worth to couple them?

    python examples/multi_label.py
    python examples/multi_label.py --files FOLDER

Predicts labels that depend on one another, by a logistic regression for each, by a
network with independent outputs, and by the same network with coupled ones: a CRBM on
it, trained by likelihood, and the layer `Marginals` in the place of its sigmoid. The
labels are by default those of scikit-learn's `make_multilabel_classification`. FOLDER
holds 20news_w100.mat (https://cs.nyu.edu/~roweis/data): which of 100 words are in each
of 16,242 posts; half of the words are to be told from the others.

Prints micro-averaged F1, the share of rows without a wrong label, and the mean
log-likelihood of a row. Coupled labels are predicted in two ways: each one's marginal
above 1/2, for F1, and the most probable row, for rows without a wrong label.
"""

import argparse
import pathlib

import keras
import numpy as np
import scipy.io
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import keras_rbm as kr


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=pathlib.Path, help="folder of 20news_w100.mat")
    parser.add_argument("--hidden", type=int, default=16, help="units that couple")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    args = parser.parse_args()
    data = [part.astype("float32") for part in load(args.files)]
    rows = {"logistic regressions": [regressions(data)]}
    for name, learn in {
        "network, independent": independent,
        "network, Marginals": marginals,
        "network, CRBM": coupled,
    }.items():
        rows[name] = [learn(data, args, seed) for seed in args.seeds]
    print("| | F1, % | rows without an error, % | nats a row |\n| - | - | - | - |")
    for name, results in rows.items():
        mean = np.mean(results, 0)
        spread = np.std(results, 0)
        cells = [f"{a:.2f} ± {b:.2f}" for a, b in zip(mean, spread, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |")


def load(files):
    """Returns features and labels to learn from, and to predict."""
    if files is None:
        x, y = make_multilabel_classification(
            6000, n_features=40, n_classes=20, n_labels=6, length=60, random_state=0
        )
        x = x / 3.0
    else:
        words = scipy.io.loadmat(files / "20news_w100.mat")["documents"]
        words = np.asarray(words.todense()).T
        words = words[np.random.default_rng(0).permutation(len(words))]
        x, y = words[:, ::2], words[:, 1::2]
    cut = len(x) * 2 // 3
    return x[:cut], y[:cut], x[cut:], y[cut:]


def scores(states, rows, targets, log_likelihood):
    """Returns F1 of states, errors of rows, both in percent, and nats."""
    f1 = f1_score(targets, states, average="micro", zero_division=0)
    exact = np.mean(np.all(rows == targets, 1))
    return 100 * f1, 100 * exact, float(np.mean(log_likelihood))


def of_independent(p, targets):
    p = np.clip(p, 1e-6, 1 - 1e-6)
    nats = np.sum(np.log(np.where(targets > 0.5, p, 1 - p)), 1)
    return scores(p > 0.5, p > 0.5, targets, nats)


def regressions(data):
    x, y, test_x, test_y = data
    columns = [
        LogisticRegression(max_iter=1000).fit(x, column).predict_proba(test_x)[:, 1]
        for column in y.T
    ]
    return of_independent(np.transpose(columns), test_y)


def network(data, seed):
    """Returns inputs and features of a network."""
    keras.utils.set_random_seed(seed)
    inputs = keras.Input((data[0].shape[1],))
    hidden = keras.layers.Dense(128, "relu")(inputs)
    return inputs, keras.layers.Dropout(0.2)(hidden)


def trained(model, data, args):
    x, y, *_ = data
    steps = args.epochs * -(-len(x) // 32)
    rate = keras.optimizers.schedules.CosineDecay(0.001, steps)
    model.compile(keras.optimizers.Adam(rate), "binary_crossentropy")
    model.fit(x, y, epochs=args.epochs, verbose=0)
    return model


def independent(data, args, seed):
    inputs, hidden = network(data, seed)
    outputs = keras.layers.Dense(data[1].shape[1], "sigmoid")(hidden)
    model = trained(keras.Model(inputs, outputs), data, args)
    return of_independent(model.predict(data[2], verbose=0), data[3])


def marginals(data, args, seed):
    inputs, hidden = network(data, seed)
    logits = keras.layers.Dense(data[1].shape[1])(hidden)
    biases = keras.layers.Dense(args.hidden)(hidden)
    layer = kr.layers.Marginals(args.hidden, seed=seed)
    model = keras.Model(inputs, layer([logits, biases]))
    trained(model, data, args)
    heads = keras.Model(inputs, [logits, biases])
    visible, biases = heads.predict(data[2], verbose=0)
    potentials = kr.inference.Potentials(
        layer.kernel.numpy(), visible, biases + layer.hidden_bias.numpy()
    )
    return of_coupled(potentials, model.predict(data[2], verbose=0), data[3])


def coupled(data, args, seed):
    inputs, hidden = network(data, seed)
    crbm = kr.CRBM(args.hidden, backbone=keras.Model(inputs, hidden), seed=seed)
    crbm.compile()
    crbm.fit(data[0], data[1], epochs=args.epochs, verbose=0)
    potentials = crbm.potentials(data[2])
    return of_coupled(potentials, crbm.predict(data[2], verbose=0), data[3])


def of_coupled(potentials, p, targets):
    nats = -potentials.free_energy(targets) - np.float32(
        kr.inference.exact_log_partition(potentials)
    )
    likeliest = kr.inference.mixed_product(potentials).visible
    return scores(p > 0.5, likeliest, targets, nats)


if __name__ == "__main__":
    main()
