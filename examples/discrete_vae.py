"""An RBM as the prior of a discrete variational autoencoder, beside independent bits.

    python examples/discrete_vae.py
    python examples/discrete_vae.py --dataset digits

Trains an encoder from images to bits, a prior of these, and a decoder back to images:
with `keras_rbm.layers.RBMPrior`, and with a prior of independent bits whose means are
learned. Networks, batches, steps and noise are the same. Training takes relaxed bits.
Scores take bits: the bound (ELBO) of the test log-likelihood, the tighter bound of 100
samples weighted by importance, and what the interval of log Z adds to them. Pixels are
drawn with their intensity, again in each epoch of training, and once for test images.

Writes each run into `scores.json`, goes on from there after a cut, and prints a table.
Also writes `digits.png` and each model.
"""

import argparse
import itertools
import json
import pathlib
import time

import keras
import matplotlib
import numpy as np
import tensorflow as tf
from keras import ops

import keras_rbm as kr

# The encoder's and the decoder's hidden layers; none is a linear map.
RECIPES: dict[str, dict] = {
    "digits": dict(codes=64, hidden=64, encoder=[128], decoder=[]),
    "mnist": dict(codes=128, hidden=128, encoder=[400], decoder=[400]),
}
RECIPES["digits"] |= dict(epochs=200, batch_size=20, rates=[0.001, 0.003, 0.01])
RECIPES["mnist"] |= dict(epochs=100, batch_size=100, rates=[0.0003, 0.001, 0.003])
PRIORS = ("rbm", "independent")
_AT_ONCE = 100  # images that are scored at once
_STEPS = 100  # that are timed at once


@keras.saving.register_keras_serializable("discrete_vae")
class RelaxedBits(keras.layers.Layer):
    """Draws bits from their logits, in training relaxed ones (Maddison et al., 2017).

    Adds minus the entropy of the bits as a loss, in nats.
    """

    def __init__(self, temperature=0.3, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.temperature = temperature
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, logits, training=False):
        entropy = ops.softplus(logits) - logits * ops.sigmoid(logits)
        self.add_loss(-ops.mean(ops.sum(entropy, -1)))
        shape = ops.shape(logits)
        u = keras.random.uniform(shape, 1e-6, 1.0 - 1e-6, seed=self.seed_generator)
        noisy = logits + ops.log(u) - ops.log1p(-u)
        if training:
            return ops.sigmoid(noisy / self.temperature)
        return ops.cast(noisy > 0.0, "float32")

    def get_config(self):
        own = {"temperature": self.temperature, "seed": self.seed}
        return super().get_config() | own


@keras.saving.register_keras_serializable("discrete_vae")
class IndependentPrior(keras.layers.Layer):
    """Returns codes as they are, and adds `-log p(z)` of independent bits as a loss."""

    def build(self, input_shape):
        self.bias = self.add_weight(shape=(input_shape[-1],), initializer="zeros")

    def log_likelihood(self, codes):
        return ops.sum(codes * self.bias - ops.softplus(self.bias), -1)

    def call(self, codes):
        self.add_loss(-ops.mean(self.log_likelihood(codes)))
        return codes


@keras.saving.register_keras_serializable("discrete_vae")
def reconstruction(images, logits):
    """Returns `-log p(x | z)`, in nats."""
    return ops.sum(ops.softplus(logits) - images * logits, -1)


def autoencoder(args, prior, seed):
    """Returns a model of layers `encoder`, `bits`, `prior`, `decoder`."""
    keras.utils.set_random_seed(seed)
    dense = keras.layers.Dense
    pixels = 64 if args.dataset == "digits" else 784
    encoder = [dense(width, "relu") for width in args.encoder] + [dense(args.codes)]
    decoder = [dense(width, "relu") for width in args.decoder] + [dense(pixels)]
    if prior == "rbm":
        rbm = kr.RBM(args.hidden, seed=seed)
        prior = kr.layers.RBMPrior(rbm, seed=seed, name="prior")
    else:
        prior = IndependentPrior(name="prior")
    return keras.Sequential(
        [
            keras.Input((pixels,)),
            keras.Sequential(encoder, name="encoder"),
            RelaxedBits(seed=seed, name="bits"),
            prior,
            keras.Sequential(decoder, name="decoder"),
        ]
    )


def compiled(model, args, rate):
    """Compiles a model; returns its training images, drawn again in each epoch."""
    intensities = kr.datasets.load(args.dataset)
    steps = args.epochs * -(-len(intensities) // args.batch_size)
    falling = keras.optimizers.schedules.CosineDecay(rate, steps)
    optimizer = keras.optimizers.Adam(falling)
    model.compile(optimizer, reconstruction)
    order = {"seed": 0, "iterations": optimizer.iterations}
    images = kr.datasets.shuffled_batches(intensities, args.batch_size, **order)
    images = kr.datasets.binarize(images, "sample", **order)
    return images.map(lambda x: (x, x))


def held_out(name, split):
    return kr.datasets.load(name, split, binarize="sample", as_numpy=True)


def trained(args, prior, rate, seed):
    """Returns a model, and the record of its training."""
    model = autoencoder(args, prior, seed)
    train = compiled(model, args, rate)
    start = time.perf_counter()
    history = model.fit(train, epochs=args.epochs, shuffle=False, verbose=0).history
    minutes = (time.perf_counter() - start) / 60.0
    record = {"prior": prior, "rate": rate, "seed": seed, "minutes": round(minutes, 1)}
    return model, record | {"losses": [round(loss, 2) for loss in history["loss"]]}


def scored(args, model):
    """Returns the bounds of a model, in nats an image."""
    validation, test = (held_out(args.dataset, part) for part in ("validation", "test"))
    log_z, interval = log_partition(model)
    loss = model.evaluate(validation, validation, batch_size=1000, verbose=0)
    elbo, weighted = scores(model, test, log_z)
    shares = ops.sigmoid(model.get_layer("encoder").predict(test, verbose=0))
    return {
        "validation": -loss - log_z,
        "log_z": log_z,
        "interval": interval,
        "elbo": float(np.mean(elbo)),
        "importance": float(np.mean(weighted)),
        "error": float(np.std(weighted) / np.sqrt(len(weighted))),
        "used": int(np.sum(np.std(shares, 0) > 0.1)),
    }


def log_partition(model):
    """Returns log Z of the prior, and the ends of its interval, in nats."""
    prior = model.get_layer("prior")
    if isinstance(prior, IndependentPrior):
        return 0.0, [0.0, 0.0]
    # More chains than by default: many are annealed back from related states.
    z = prior.rbm.log_partition("bidirectional", num_chains=1000)
    return float(z.value), [float(z.lower), float(z.upper)]


def scores(model, images, log_z, draws=100):
    """Returns two bounds of the log-likelihoods, arrays (N,), in nats."""
    encoder, prior, decoder = map(model.get_layer, ("encoder", "prior", "decoder"))

    @tf.function
    def log_weights(x, seed):
        logits = encoder(x)
        noise = kr.random.uniform((draws, *logits.shape), seed)
        z = tf.cast(noise < tf.sigmoid(logits), "float32")
        log_q = -reconstruction(z, logits)
        codes = tf.reshape(z, (-1, z.shape[-1]))
        if isinstance(prior, IndependentPrior):
            log_p = prior.log_likelihood(codes)
        else:
            log_p = -prior.rbm.potentials().free_energy(codes) - log_z
        pixels = tf.reshape(decoder(codes), (draws, *x.shape))
        return tf.reshape(log_p, (draws, -1)) - reconstruction(x, pixels) - log_q

    parts = []
    for number in range(len(images) // _AT_ONCE):
        x = images[number * _AT_ONCE : (number + 1) * _AT_ONCE]
        weights = log_weights(x, tf.constant([0, number]))
        many = tf.reduce_logsumexp(weights, 0) - np.log(draws)
        parts.append((tf.reduce_mean(weights, 0), many))
    return np.concatenate(parts, 1)


def step_times(args):
    """Returns the milliseconds of a step with each prior, the least of 20 rounds."""
    models = {prior: autoencoder(args, prior, 0) for prior in PRIORS}
    batches = {name: compiled(model, args, 1e-3) for name, model in models.items()}
    found = dict.fromkeys(PRIORS, np.inf)
    for _, name in itertools.product(range(21), PRIORS):  # the first one compiles
        start = time.perf_counter()
        models[name].fit(batches[name].take(_STEPS), shuffle=False, verbose=0)
        taken = 1000.0 * (time.perf_counter() - start) / _STEPS
        found[name] = min(found[name], taken)
    return found


def best_runs(results):
    """Returns of each prior the name and the run of the best validation bound."""
    runs = sorted(results["runs"].items(), key=lambda run: run[1]["validation"])
    best = {run["prior"]: (name, run) for name, run in runs}
    return [best[prior] for prior in PRIORS]


def print_table(results):
    """Prints the bounds of the test images as a table in Markdown."""
    print("| prior | rate | ELBO | 100 samples | error of log Z | ms a step |")
    print("| --- | --- | --- | --- | --- | --- |")
    for _, run in best_runs(results):
        bounds = f"{run['elbo']:.2f} | {run['importance']:.2f}"
        lower, upper = (run["log_z"] - end for end in reversed(run["interval"]))
        taken = results["milliseconds"][run["prior"]]
        print(f"| {run['prior']} | {run['rate']} | {bounds} ", end="")
        print(f"| {lower:+.2f} to {upper:+.2f} | {taken:.1f} |")


def draw(args, out, results):
    """Draws test images, what their bits give, and what bits of each prior give."""
    images = held_out(args.dataset, "test")[:10]
    rows = {"test": images}
    for name, run in best_runs(results):
        model = keras.saving.load_model(out / f"{name}.keras")
        layers = {layer.name: layer for layer in model.layers}
        bits = layers["bits"](layers["encoder"](images))
        rows[f"{run['prior']}: decoded"] = ops.sigmoid(layers["decoder"](bits))
        if run["prior"] == "rbm":
            bits = layers["prior"].rbm.sample(10, steps=5000, seed=0)
        else:
            noise = kr.random.uniform(bits.shape, 0)
            bits = tf.cast(noise < ops.sigmoid(layers["prior"].bias), "float32")
        rows[f"{run['prior']}: drawn"] = ops.sigmoid(layers["decoder"](bits))
    rows = {name: np.asarray(row) for name, row in rows.items()}
    gray = "#888888"  # for light pages and dark ones
    with matplotlib.rc_context({"ytick.color": gray}):
        figure = kr.plots.comparison(rows)
        figure.savefig(out / "digits.png", dpi=110, transparent=True)


def main():
    args = parse_arguments()
    out = pathlib.Path(args.out or f"out/discrete_vae_{args.dataset}")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "scores.json"
    results = {"settings": vars(args), "runs": {}}
    if path.exists():
        results = json.loads(path.read_text())

    def write():
        path.write_text(json.dumps(results, indent=1) + "\n")

    for rate, prior in itertools.product(args.rates, PRIORS):
        name = f"{prior}_{rate}_{args.seed}"
        if name not in results["runs"]:
            model, record = trained(args, prior, rate, args.seed)
            model.save(out / f"{name}.keras")
            results["runs"][name] = record
            write()
        if "elbo" not in results["runs"][name]:
            model = keras.saving.load_model(out / f"{name}.keras")
            results["runs"][name] |= scored(args, model)
            write()
            print(name, {k: results["runs"][name][k] for k in ("validation", "elbo")})
    if "milliseconds" not in results:
        results["milliseconds"] = step_times(args)
        write()
    print_table(results)
    draw(args, out, results)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=sorted(RECIPES), default="mnist")
    parser.add_argument("--codes", type=int, help="bits of an image")
    parser.add_argument("--hidden", type=int, help="units of the RBM that couple them")
    parser.add_argument("--encoder", type=int, nargs="*", help="its hidden layers")
    parser.add_argument("--decoder", type=int, nargs="*", help="its hidden layers")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--rates", type=float, nargs="+", help="of Adam, tried")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="folder, by default out/discrete_vae_<dataset>")
    dataset = parser.parse_known_args()[0].dataset
    parser.set_defaults(**RECIPES[dataset])
    return parser.parse_args()


if __name__ == "__main__":
    main()
