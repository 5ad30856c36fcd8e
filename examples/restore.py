"""Complete or restore images with a conditional RBM, trained by belief propagation.

    python examples/restore.py
    python examples/restore.py --task flip
    python examples/restore.py --dataset mnist --task occlude

A model that sees the upper half of images, noisy or occluded ones predicts the whole
ones: a CRBM trained by maximum likelihood with sum-product beliefs, beside logistic
regression on the same data. Prints how likely the true images are and how many pixels
are wrong, and writes `restored.png` (what both make of them; a frame marks what is
occluded), `history.png` and `model.keras`.
"""

import argparse
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is imported

import keras
import matplotlib.patches
import numpy as np
import tensorflow as tf
from progress import Progress

import keras_rbm as kr
from keras_rbm import plots

# What is good for each data set; every figure can be changed on the command line.
RECIPES = {
    "digits": dict(hidden=64, epochs=60, batch_size=20, learning_rate=0.4, size=3),
    "mnist": dict(hidden=256, epochs=20),
    "caltech101_silhouettes": dict(hidden=256, epochs=60, value=1.0, size=12),
}
TASKS = ("complete", "flip", "occlude")
TEST_SEED = 2


def main():
    args = parse_arguments()
    out = pathlib.Path(args.out or f"out/{args.dataset}_{args.task}")
    out.mkdir(parents=True, exist_ok=True)

    # Data: pairs of a corrupted and a clean binary image. Training draws the corruption
    # again for each epoch, validation and test once.
    if args.task == "complete":
        corruption = upper_half
    elif args.task == "flip":
        corruption = kr.datasets.flip(args.probability)
    else:
        corruption = kr.datasets.occlude(args.size, args.value)
    clean = kr.datasets.load(args.dataset, "train", binarize="threshold")
    validation, test = (
        kr.datasets.corrupt(
            kr.datasets.load(args.dataset, split, binarize="threshold"),
            corruption,
            seed=seed,
        ).batch(500)
        for seed, split in ((1, "validation"), (TEST_SEED, "test"))
    )

    def compiled(model, rate, **kwargs):
        """Compiles a model; returns it and its stream of training pairs."""
        steps = args.epochs * -(-len(clean) // args.batch_size)
        optimizer = keras.optimizers.SGD(
            keras.optimizers.schedules.CosineDecay(rate, steps)
        )
        metrics = [kr.metrics.PixelError()]
        model.compile(optimizer=optimizer, metrics=metrics, **kwargs)
        counter = {"seed": args.seed, "iterations": optimizer.iterations}
        batches = kr.datasets.shuffled_batches(clean, args.batch_size, **counter)
        return model, kr.datasets.corrupt(batches, corruption, redraw=True, **counter)

    # The baseline: each pixel by itself, linear in the corrupted image.
    num_pixels = clean.element_spec.shape[0]
    print("Pixels on their own: logistic regression. Loss in nats an image", flush=True)
    logistic, train = compiled(
        keras.Sequential([keras.layers.Dense(num_pixels, "sigmoid")]),
        100.0 * args.learning_rate / num_pixels,
        loss=nats_an_image,
    )
    logistic.fit(
        train, epochs=args.epochs, shuffle=False, callbacks=[Progress()], verbose=0
    )

    print("\nConditional RBM. Loss in nats an image", flush=True)
    infer = kr.inference.BeliefPropagation(max_iterations=7)
    crbm, train = compiled(
        # With new noise in each epoch there is nothing to overfit.
        kr.CRBM(
            args.hidden,
            inference=infer,
            kernel_regularizer="auto" if args.task == "complete" else None,
            seed=args.seed,
        ),
        args.learning_rate,
        rule=kr.rules.MaximumLikelihood(),
    )
    history = crbm.fit(
        train,
        validation_data=validation,
        epochs=args.epochs,
        callbacks=[
            kr.callbacks.IterationSchedule(lambda epoch: 7 + epoch // 2),
            Progress(),
        ],
        verbose=0,
    )

    errors, nats = {}, {}
    models = {"pixels on their own": logistic, "conditional RBM": crbm}
    print(f"\n{args.dataset}, {args.task}, test images:")
    print(f"{'':22}{'wrong pixels':>14}{'of those changed':>18}{'log p, in nats':>16}")
    for name, model in models.items():
        errors[name], nats[name] = (
            pixel_errors(model, test),
            log_likelihood(model, test),
        )
        every, changed = errors[name]
        print(f"{name:22}{every:13.2f}%{changed:17.2f}%{nats[name]:16.2f}")

    given, images = (states[:12] for states in next(iter(test)))
    figure = plots.comparison(rows_of(args, given, images, models))
    if args.task == "occlude":
        covered = covered_pixels(corruption, given.shape)
        draw_frames(figure.axes[0], covered, 5)
    (alone, *_), (coupled, *_) = errors.values()
    gain = nats["conditional RBM"] - nats["pixels on their own"]
    found = (
        f"given what is seen, the CRBM gives the true images {np.exp(gain):.0f} times\n"
        "the probability that pixels on their own give them"
    )
    figure.suptitle(found[0].upper() + found[1:], fontsize=9)
    figure.savefig(out / "restored.png", dpi=150)
    plots.history(history).savefig(out / "history.png")
    crbm.save(out / "model.keras")
    print(
        f"\nFound: {found}: log p is {gain:.1f} nats higher.\n"
        f"Wrong pixels show less of it, {coupled:.2f}% instead of {alone:.2f}%: they "
        "are counted\none by one, and log p asks for all pixels of an image at once.\n"
        f"Picture: {out / 'restored.png'}; history.png and model.keras are beside it."
    )


def nats_an_image(images, odds):
    """Returns -log p of each image, of pixels that do not depend on one another."""
    loss = keras.losses.binary_crossentropy(images, odds)
    return loss * tf.cast(tf.shape(images)[-1], loss.dtype)


def upper_half(images, key):
    """Returns images (B, V) whose lower half is black."""
    seen = tf.range(images.shape[-1]) < images.shape[-1] // 2
    return tf.where(seen, images, tf.zeros_like(images))


def rows_of(args, given, images, models):
    """Returns the rows of the picture."""
    logistic, crbm = models.values()
    means = {name: model(given) for name, model in models.items()}
    draws = [crbm.sample(given, seed=args.seed + i) for i in range(2)]
    if args.task != "complete":
        return {"true": images, "seen": given} | means | {"CRBM, a draw": draws[0]}
    noise = tf.random.stateless_uniform(given.shape, (args.seed, 0))
    drawn = tf.cast(noise < means["pixels on their own"], tf.float32)
    rows = {
        "pixels on their own": drawn,
        "CRBM, a draw": draws[0],
        "CRBM, another": draws[1],
    }
    lower = np.arange(given.shape[1]) >= given.shape[1] // 2
    shown = {name: np.where(lower, row, images) for name, row in rows.items()}
    return {"seen": np.where(lower, np.float32(0.5), images), **shown, "true": images}


def log_likelihood(model, pairs):
    """Returns the mean of log p(image given what is seen), in nats."""
    found = []
    for given, images in pairs:
        if isinstance(model, kr.CRBM):
            found.append(model.log_likelihood(given, images))
        else:
            odds = np.clip(model(given), 1e-6, 1.0 - 1e-6)
            found.append(np.log(np.where(images > 0.5, odds, 1.0 - odds)).sum(1))
    return float(np.mean(np.concatenate(found)))


def covered_pixels(corruption, shape):
    """Returns bools (N, V): where the first N test images are occluded."""
    # The patch belongs to the position in the data, whatever the image there.
    blank = tf.data.Dataset.from_tensor_slices(tf.fill(shape, 2.0))
    pairs = kr.datasets.corrupt(blank, corruption, seed=TEST_SEED)
    return np.stack([covered != clean for covered, clean in pairs.as_numpy_iterator()])


def draw_frames(axes, covered, num_rows):
    """Frames the covered patch of each image, in every row of a comparison."""
    side = int(np.sqrt(covered.shape[1]))
    for column, own in enumerate(covered.reshape(-1, side, side)):
        y, x = np.argwhere(own)[0]
        height, width = np.argwhere(own)[-1] - (y, x) + 1
        for row in range(num_rows):
            corner = np.array([column, row]) * (side + 1) + 0.5 + (x, y)
            frame = matplotlib.patches.Rectangle(
                corner, width, height, fill=False, edgecolor="tab:red", linewidth=0.8
            )
            axes.add_patch(frame)


def pixel_errors(model, pairs):
    """Returns the percentage of wrong pixels, of all and of those changed."""
    every, changed = kr.metrics.PixelError(), kr.metrics.PixelError()
    for noisy, clean in pairs:
        restored = model(noisy)
        every.update_state(clean, restored)
        changed.update_state(clean, restored, noisy != clean)
    return float(every.result()), float(changed.result())


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected an integer ≥ 1, not {text}")
    return int(text)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=sorted(RECIPES), default="digits")
    parser.add_argument("--task", choices=TASKS, default="complete")
    parser.add_argument("--probability", type=float, default=0.1, help="of a flip")
    parser.add_argument("--size", type=int, default=8, help="of the occluded square")
    parser.add_argument("--value", type=float, default=0.0, help="of the square")
    parser.add_argument("--hidden", type=positive, help="number of hidden units")
    parser.add_argument("--epochs", type=positive)
    parser.add_argument("--batch-size", type=positive, default=40)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="folder, by default out/<dataset>_<task>")
    dataset = parser.parse_known_args()[0].dataset
    parser.set_defaults(**RECIPES[dataset])
    return parser.parse_args()


if __name__ == "__main__":
    main()
