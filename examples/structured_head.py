"""Put a CRBM behind a ConvNet, beside the same network with independent outputs.

    python examples/structured_head.py --images 10000 --epochs 6
    python examples/structured_head.py --tasks occluded noisy

The network reads corrupted digits of MNIST and returns a logit for each pixel of the
clean ones. Given these the pixels are independent (`independent`, by cross-entropy), or
coupled by hidden units: a `CRBM`, learned by maximum likelihood with belief propagation
(`likelihood`), by a loss of its marginals (`marginals`) or by max-margin (`margin`).
`wide` is independent, with about the weights of a CRBM in a second map to the pixels.
Network, start, batches, noise, rates and epochs are the same. Noise is drawn again in
each epoch, for validation and test once.

Writes epochs and test into `--record`, weights and each test image's scores beside it.
Differences to `independent` are of the same images. After a cut the same command goes
on from the last complete epoch.
"""

import argparse
import functools
import itertools
import json
import pathlib
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

import keras_rbm as kr

TASKS = {"occluded": kr.datasets.occlude(12), "noisy": kr.datasets.flip(0.1)}
BP = kr.inference.BeliefPropagation
HEADS = {  # inference, and how to learn
    "likelihood": (BP(max_iterations=10), {"rule": "maximum_likelihood"}),
    "marginals": (BP(max_iterations=5), {"loss": "binary_crossentropy"}),
    "margin": (BP("mixed_product", max_iterations=10), {"rule": "max_margin"}),
}
HIDDEN = 64


def network(mean, seed):
    """Returns images, a picture of logits that starts at the mean, and features.

    Maps are 14×14, then 7×7, then 14×14 again.
    """
    keras.utils.set_random_seed(seed)

    options = {"padding": "same", "activation": "relu"}
    options["kernel_initializer"] = "he_normal"
    convolution = functools.partial(layers.Conv2D, **options)

    def residual(maps):
        return layers.Add()([maps, convolution(maps.shape[-1], 3)(maps)])

    inputs = keras.Input((784,))
    picture = layers.Reshape((28, 28, 1))(inputs)
    fine = residual(convolution(32, 4, strides=2)(picture))
    coarse = residual(residual(convolution(64, 3, strides=2)(fine)))
    features = layers.Flatten()(convolution(8, 1)(coarse))
    features = layers.Dense(HIDDEN, "relu")(features)
    larger = layers.Conv2DTranspose(32, 2, strides=2)(coarse)
    fine = residual(layers.ReLU()(layers.Add()([larger, fine])))
    pixels = layers.Conv2DTranspose(1, 4, strides=2, padding="same")(fine)
    pixels = layers.Add()([pixels, layers.Conv2D(1, 3, padding="same")(picture)])
    # A bias for each pixel. If they began at 0, hidden units would learn the mean image
    # first, and be saturated from then on.
    own = layers.EinsumDense("bhwc,cd->bhwd", (28, 28, 1), bias_axes="hwd")
    pixels = own(pixels)
    own.bias.assign(np.log(mean / (1.0 - mean)).reshape(28, 28, 1))
    return inputs, pixels, features


def nats(clean, logits):
    """Returns `-log p(clean | x)` of independent pixels."""
    return tf.reduce_sum(tf.math.softplus(logits) - clean * logits, -1)


def compiled(args, method, task):
    """Returns a compiled model, and its batches for training."""
    images = kr.datasets.load("mnist", binarize="threshold").take(args.images)
    mean = images.batch(args.images).get_single_element().numpy().mean(0)
    inputs, pixels, features = network(np.clip(mean, 1e-4, 1.0 - 1e-4), args.seed)
    steps = args.epochs * -(-len(images) // args.batch_size)
    rate = keras.optimizers.schedules.PolynomialDecay(args.rate, steps, 0.0)
    optimizer = keras.optimizers.Adam(rate)
    if method in HEADS:
        inference, learning = HEADS[method]
        model = kr.CRBM(
            HIDDEN,
            num_visible=784,
            backbone=keras.Model(inputs, [pixels, features]),
            inference=inference,
            visible_bias_initializer="zeros",  # the network has it
            kernel_regularizer=None,  # no two data are the same
            seed=args.seed,
        )
        model.build((None, 784))
        model.compile(optimizer, **learning)
    else:
        logits = layers.Flatten()(pixels)
        if method == "wide":
            hidden = layers.Dense(HIDDEN, "sigmoid")(features)
            logits = layers.Add()([logits, layers.Dense(784, use_bias=False)(hidden)])
        model = keras.Model(inputs, logits)
        model.compile(optimizer, nats)
    order = {"seed": args.seed, "iterations": optimizer.iterations}
    batches = kr.datasets.shuffled_batches(images, args.batch_size, **order)
    return model, kr.datasets.corrupt(batches, TASKS[task], redraw=True, **order)


def held_out(split, task, count=10_000):
    """Returns corrupted and clean images, (N, 784) each."""
    clean = kr.datasets.load("mnist", split, binarize="threshold")
    pairs = kr.datasets.corrupt(clean, TASKS[task], seed=1 + (split == "test"))
    return [part.numpy() for part in pairs.batch(count).take(1).get_single_element()]


def wrong_pixels(model, x, v):
    """Returns the percentage of wrong pixels of each image, (N,)."""
    threshold = 0.5 if isinstance(model, kr.CRBM) else 0.0
    found = model.predict(x, batch_size=1000, verbose=0)
    return 100.0 * np.mean((found > threshold) != v, 1)


def log_likelihoods(model, x, v):
    """Returns log p(v | x) of each image: estimates (N,), lower and upper ends."""
    if not isinstance(model, kr.CRBM):
        return np.tile(-nats(v, model.predict(x, verbose=0)), (3, 1))
    parts = []
    for rows in np.split(np.arange(len(x)), range(20, len(x), 20)):
        z = model.log_partition(x[rows], "bidirectional", num_chains=30)
        free = np.float64(model.free_energy(x[rows], v[rows]))
        parts.append([-free - end for end in (z.value, z.upper, z.lower)])
    return np.concatenate(parts, 1)


def trained(args, method, task, run, write, path):
    """Returns a trained model, from its file if it was trained before."""
    model, pairs = compiled(args, method, task)
    run["rate"] = args.rate
    run["weights"] = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    weights = path.with_suffix(".weights.h5")
    if weights.exists():
        model.load_weights(weights)
        return model
    validation = held_out("validation", task, args.validation)

    def record(epoch, logs):
        row = {"epoch": epoch + 1, "loss": float(logs["loss"])}
        row["pixel_error"] = float(np.mean(wrong_pixels(model, *validation)))
        run["epochs"][epoch:] = [row | {"cpu_seconds": time.process_time()}]
        write()
        print(*(f"{key} {value:.4g}" for key, value in row.items()), flush=True)

    callbacks = [  # what is written before a backup is written again after a cut
        keras.callbacks.LambdaCallback(on_epoch_end=record),
        keras.callbacks.BackupAndRestore(
            path.with_suffix(".backup"), double_checkpoint=True
        ),
    ]
    model.fit(pairs, epochs=args.epochs, shuffle=False, verbose=0, callbacks=callbacks)
    model.save_weights(weights)
    return model


def test(args, model, task, path):
    """Returns what the test images give, and writes each one's scores."""
    x, v = held_out("test", task)
    wrong = wrong_pixels(model, x, v)
    found = log_likelihoods(model, x[: args.likelihoods], v[: args.likelihoods])
    scores = {"pixel_error": wrong, "whole_images": 100.0 * (wrong == 0.0)}
    scores["log_likelihood"] = found[0]
    np.savez_compressed(path.with_suffix(".npz"), **scores)
    return means(scores) | {"interval": np.mean(found[1:], 1).tolist()}


def means(scores):
    """Returns each score's mean and its standard error."""
    errors = {name: np.std(each) / len(each) ** 0.5 for name, each in scores.items()}
    return {
        name: [float(np.mean(scores[name])), float(errors[name])] for name in errors
    }


def main():
    args = parse_arguments()
    args.record.parent.mkdir(parents=True, exist_ok=True)
    results = {"settings": vars(args) | {"record": str(args.record)}, "runs": {}}
    if args.record.exists():
        results |= {"runs": json.loads(args.record.read_text())["runs"]}

    def write():
        part = args.record.with_suffix(".part")
        part.write_text(json.dumps(results, indent=1) + "\n")
        part.replace(args.record)

    for task, method in itertools.product(args.tasks, args.methods):
        path = args.record.with_name(f"{task}_{method}")
        run = results["runs"].setdefault(path.name, {"epochs": []})
        if "test" not in run:
            print(path.name, flush=True)
            model = trained(args, method, task, run, write, path)
            run["test"] = test(args, model, task, path)
        other = path.with_name(f"{task}_independent.npz")
        if method != "independent" and other.exists():
            ours, theirs = np.load(path.with_suffix(".npz")), np.load(other)
            run["difference"] = means({k: ours[k] - theirs[k] for k in ours.files})
        write()
        print(path.name, run["test"], run.get("difference", ""), flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    methods = ["independent", "wide", *HEADS]
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["occluded"])
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods)
    parser.add_argument("--images", type=int, default=50_000, help="for training")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--rate", type=float, default=0.004, help="of Adam, falls to 0")
    parser.add_argument("--validation", type=int, default=2000, help="images")
    parser.add_argument("--likelihoods", type=int, default=200, help="test images")
    parser.add_argument("--seed", type=int, default=0)
    record = pathlib.Path("out/structured_head/record.json")
    parser.add_argument("--record", type=pathlib.Path, default=record)
    return parser.parse_args()


if __name__ == "__main__":
    main()
