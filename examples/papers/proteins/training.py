"""Training and scoring of the RBMs of `experiment.py`."""

import time

import keras
import numpy as np
import tensorflow as tf
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut, cross_val_score

import keras_rbm as kr
from examples.papers.records import write_record

STATES = len(kr.datasets.PROTEINS)
#: Hidden units of each family, as published.
HIDDEN = {"ww": 50, "kunitz": 100}
UNITS = ("double_rectified", "rectified", "gaussian", "bernoulli")
#: Share of the sites that differ from the nearest sequence of another set: "far".
_FAR = 0.3
_SAMPLES = 1000


class UnitScale(keras.callbacks.Callback):
    """Keeps the scale of real-valued hidden units, which the model leaves open.

    h → s h, W → W / s changes nothing but the penalty on W. After each epoch s is set
    so that the mean of Var(h | v) over data is 1.
    """

    def __init__(self, sequences, weights):
        super().__init__()
        self.sequences, self.weights = sequences, weights / weights.sum()

    def on_epoch_end(self, epoch, logs=None):
        rbm = self.model
        natural = rbm.potentials().hidden_natural(self.sequences)
        with tf.GradientTape() as tape:
            tape.watch(natural)
            means = rbm.potentials().hidden.mean(natural)
        variances = tape.gradient(means, natural)
        scale = tf.sqrt(tf.linalg.matvec(variances, self.weights, transpose_a=True))
        rbm.kernel.assign(rbm.kernel * scale)
        for name in rbm.hidden.variables():
            variable = getattr(rbm, f"hidden_{name}")
            if name in ("bias", "threshold"):
                variable.assign(variable * scale)
            elif name.startswith("log_precision"):
                variable.assign(variable + 2.0 * tf.math.log(scale))
            if variable.constraint:
                variable.assign(variable.constraint(variable))


def read(folder, family):
    """Returns sequences (N, sites) and their weights."""
    sequences, _ = kr.datasets.fasta(folder / f"{family}.fasta")
    return sequences, kr.datasets.sequence_weights(sequences)


def fold(count, seed=0):
    """Returns row numbers: four fifths to train on, one to score."""
    order = np.random.default_rng(seed).permutation(count)
    return np.sort(order[count // 5 :]), np.sort(order[: count // 5])


def trained(
    sequences, weights, hidden, unit, penalty, epochs, rate, scaled=True, centered=False
):
    """Returns an RBM of categorical sites, trained by PCD-10.

    With `scaled`, real-valued hidden units keep their scale.
    """
    rbm = kr.RBM(
        hidden,
        visible=kr.units.Categorical(STATES),
        hidden=unit,
        kernel_regularizer=kr.regularizers.L1Block(penalty),
        seed=0,
    )
    options = {"num_chains": 200, "centered": centered}
    rule = kr.rules.PersistentContrastiveDivergence(10, **options)
    steps = epochs * -(-len(sequences) // 100)
    schedule = keras.optimizers.schedules.CosineDecay(rate, steps)
    rbm.compile(keras.optimizers.Adam(schedule, beta_2=0.99), rule=rule)
    scaled = scaled and unit != "bernoulli"
    callbacks = [UnitScale(sequences, weights)] if scaled else []
    data = {"sample_weight": weights, "batch_size": 100, "verbose": 0}
    rbm.fit(sequences, epochs=epochs, callbacks=callbacks, **data)
    return rbm


def run(settings, folder, records):
    """Trains and scores one RBM, unless its record is there."""
    path = records / ".".join(str(value) for value in settings.values())
    path = path.with_name(path.name + ".json")
    if path.exists():
        return
    family = settings["family"]
    sequences, weights = read(folder, family)
    train = held_out = np.arange(len(sequences))
    if settings["rows"] == "four-fifths":
        train, held_out = fold(len(sequences))
    start = time.perf_counter()
    rbm = trained(
        sequences[train],
        weights[train],
        HIDDEN[family],
        *(settings[key] for key in ("unit", "penalty", "epochs", "rate")),
    )
    record = settings | {"minutes": (time.perf_counter() - start) / 60.0}
    z = rbm.log_partition("bidirectional", precision=0.05)
    record["log_z"] = [float(value) for value in (z.value, z.lower, z.upper)]
    score = per_site(rbm, sequences[train], weights[train], z)
    record["training"] = score
    if len(held_out) < len(sequences):
        own, w = sequences[held_out], weights[held_out]
        record["held_out"] = per_site(rbm, own, w, z)
        far = nearest(own, sequences[train]) > _FAR
        record["far"] = per_site(rbm, own[far], w[far], z)
        record["sites_alone"] = sites_alone(sequences, weights, train, held_out)
    if family == "kunitz":
        record["contacts"] = contacts(rbm, sequences[train], weights[train], folder)
    else:
        record["types"] = types(rbm, folder)
    record |= new_sequences(rbm, sequences, weights)
    print(record, flush=True)
    if settings["rows"] == "all":
        record["units"] = strongest(rbm)
    write_record(path, record)


def per_site(rbm, sequences, weights, z):
    """Returns the weighted mean log-likelihood per site, its error and interval."""
    scores = rbm.log_likelihood(sequences, z).numpy() / sequences.shape[1]
    share = weights / weights.sum()
    mean = share @ scores
    error = np.sqrt(np.square(share) @ np.square(scores - mean))
    return {
        "mean": float(mean),
        "error": float(error),
        "lower": float(mean + (z.value - z.upper) / sequences.shape[1]),
        "upper": float(mean + (z.value - z.lower) / sequences.shape[1]),
        "sequences": len(scores),
    }


def sites_alone(sequences, weights, train, held_out):
    """Returns the held-out score of letters drawn site by site."""
    letters = np.eye(STATES)[sequences]
    counts = np.einsum("n,nsa->sa", weights[train], letters[train]) + 1.0 / STATES
    log_p = np.log(counts / counts.sum(-1, keepdims=True))
    scores = np.einsum("nsa,sa->n", letters[held_out], log_p)
    total = np.average(scores, weights=weights[held_out])
    return float(total / sequences.shape[1])


def nearest(sequences, others, itself=False):
    """Returns the share of sites that differ from the nearest of others, (N,)."""
    letters = np.eye(STATES, dtype=np.float32)
    flat = letters[others].reshape(len(others), -1)
    found = []
    for rows in np.array_split(sequences, max(1, len(sequences) // 500)):
        same = letters[rows].reshape(len(rows), -1) @ flat.T
        found.append(np.sort(same, 1)[:, -2 if itself else -1])
    return 1.0 - np.concatenate(found) / sequences.shape[1]


def contacts(rbm, sequences, weights, folder):
    """Returns the 50 pairs of highest score, five sites apart, and which are true."""
    true = np.loadtxt(folder / "kunitz_contacts.txt")
    i, j = pairs = by_score(scores_of(rbm, sequences, weights))[:, :50]
    hits = true[i, j] > 0
    return {
        "pairs": pairs.T.tolist(),
        "true": hits.astype(int).tolist(),
        "share": {str(n): float(hits[:n].mean()) for n in (10, 25, 50)},
    }


def scores_of(rbm, sequences, weights):
    """Returns the contact score of each pair of sites, (sites, sites)."""
    couplings = kr.inference.effective_couplings(rbm.potentials(), sequences, weights)
    return kr.inference.contact_scores(couplings, sequences.shape[1])


def by_score(scores):
    """Returns the pairs of sites that are five apart, (2, n), the highest first."""
    pairs = np.stack(np.triu_indices(len(scores), 5))
    return pairs[:, np.argsort(-scores[tuple(pairs)])]


def types(rbm, folder):
    """Returns leave-one-out accuracies on the 68 labeled WW sequences."""
    sequences, names = kr.datasets.fasta(folder / "ww_types.fasta")
    labels = [name.split("_")[0] for name in names]
    inputs = {
        "features": rbm.potentials().hidden_input(sequences.astype("float32")).numpy(),
        "one_hot": np.eye(STATES)[sequences].reshape(len(sequences), -1),
    }
    return {
        name: float(
            cross_val_score(
                LogisticRegression(max_iter=5000), rows, labels, cv=LeaveOneOut()
            ).mean()
        )
        for name, rows in inputs.items()
    }


def new_sequences(rbm, sequences, weights):
    """Returns some samples, and how far samples and data are from the nearest data."""
    start = np.random.default_rng(0).choice(
        len(sequences), _SAMPLES, p=weights / weights.sum()
    )
    samples = rbm.sample(
        _SAMPLES, steps=2000, initial_visible=sequences[start], seed=0
    ).numpy()
    samples = samples.astype(int)
    letters = np.array(list(kr.datasets.PROTEINS))
    edges = np.linspace(0.0, 1.0, 21)
    distances = nearest(samples, sequences)
    own = nearest(sequences[start], sequences, itself=True)
    return {
        "samples": ["".join(letters[row]) for row in samples[:5]],
        "distance": distances[:5].tolist(),
        "distances": np.histogram(distances, edges)[0].tolist(),
        "distances_of_data": np.histogram(own, edges)[0].tolist(),
    }


def strongest(rbm, count=4):
    """Returns the weights (sites, states) of the units with the largest norm."""
    kernel = kr.inference.zero_sum_gauge(rbm.potentials()).kernel.numpy()
    order = np.argsort(-np.square(kernel).sum(0))[:count]
    return [np.round(kernel[:, unit].reshape(-1, STATES), 3).tolist() for unit in order]
