"""Which unit for gray levels? Digits with 17 levels, as counts, categories, numbers.

    python examples/gray_levels.py

Trains three RBMs on scikit-learn's digits, 8×8 pixels of 0 to 16, and scores held-out
digits in bits a pixel of the integers: `Binomial(16)` and `Categorical(17)` have
probabilities of them, `Gaussian` a density, which is integrated over each pixel's bin
from k - 1/2 to k + 1/2. The base rate is that of pixels on their own.
"""

import argparse
import math

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

import keras_rbm as kr

#: Visible units, learning rate of Adam.
MODELS = {
    "Binomial(16)": (kr.units.Binomial(16), 0.003),
    "Categorical(17)": (kr.units.Categorical(17), 0.005),
    "Gaussian": (kr.units.Gaussian(), 0.003),
}
_DRAWS = 200


def split(seed=0):
    """Returns training and test digits (n, 64), whole numbers from 0 to 16."""
    digits = load_digits().data.astype("float32")
    order = np.random.default_rng(seed).permutation(len(digits))
    return digits[order[:1500]], digits[order[1500:]]


def binned_log_likelihood(rbm, digits, log_z):
    """Returns log P(v - 1/2 < x < v + 1/2) of real-valued units, (n,), in nats.

    The mean over h drawn from p(h | v) of p(h) P(bin | h) / p(h | v): unbiased.
    """
    potentials = rbm.potentials()
    visible, hidden = potentials.visible, potentials.hidden
    natural = potentials.hidden_natural(tf.constant(digits))
    deviation = visible.scale * tf.exp(-0.5 * visible.log_precision)
    weights = []
    for seed in range(_DRAWS):
        noise = kr.random.uniform(natural.shape, seed)
        h = hidden.sample(natural, noise)
        proposal = kr.inference.potentials.log_conditional(hidden, h, natural)
        given = potentials.visible_natural(h)
        own = kr.inference.potentials.own_log_weight(hidden, h)
        of_h = own + tf.reduce_sum(visible.log_partition(given), -1)
        high, low = (
            (digits + side - visible.mean(given)) / deviation for side in (0.5, -0.5)
        )
        flip = tf.where(low > 0.0, -1.0, 1.0)  # differences of small numbers
        ends = [_normal(flip * end) for end in (high, low)]
        mass = tf.abs(ends[0] - ends[1])
        in_bin = tf.reduce_sum(tf.math.log(tf.maximum(mass, 1e-30)), -1)
        weights.append(of_h + in_bin - proposal)
    total = tf.reduce_logsumexp(tf.cast(tf.stack(weights), tf.float64), 0)
    return total.numpy() - math.log(_DRAWS) - float(log_z)


def _normal(x):
    return 0.5 * tf.math.erfc(-x * 0.5**0.5)


def independent_bits(train, test):
    """Returns the base rate: bits a pixel, each with the frequencies of its levels."""
    levels = np.arange(17)
    counts = (train[:, :, np.newaxis] == levels).sum(0) + 1.0 / 17
    log_p = np.log2(counts / counts.sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_p[np.newaxis], test[..., np.newaxis].astype(int), 2)
    return -chosen.mean()


def trained(unit, rate, train, hidden, epochs):
    rbm = kr.RBM(hidden, visible=unit, kernel_regularizer=None, seed=0)
    steps = epochs * -(-len(train) // 50)
    falling = keras.optimizers.schedules.CosineDecay(rate, steps)
    rule = kr.rules.PersistentContrastiveDivergence(gibbs_steps=5, centered=False)
    rbm.compile(keras.optimizers.Adam(falling), rule=rule)
    rbm.fit(train, batch_size=50, epochs=epochs, verbose=0)
    return rbm


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hidden", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=200)
    args = parser.parse_args()
    train, test = split()
    bits = 1.0 / (test.shape[1] * math.log(2.0))
    print(f"held-out digits, bits a pixel ({len(test)} digits, ± standard error)")
    print(f"{'base rate':16} {independent_bits(train, test):.3f}")
    for name, (unit, rate) in MODELS.items():
        rbm = trained(unit, rate, train, args.hidden, args.epochs)
        z = rbm.log_partition("bidirectional")
        if name == "Gaussian":
            scores = binned_log_likelihood(rbm, test, z.value)
        else:
            scores = rbm.log_likelihood(test, z).numpy()
        error = bits * scores.std() / math.sqrt(len(scores))
        ends = [
            -bits * float(scores.mean() + float(z.value - e))
            for e in (z.lower, z.upper)
        ]
        print(
            f"{name:16} {-bits * scores.mean():.3f} ± {error:.3f}, by the interval of "
            f"log Z {min(ends):.3f} to {max(ends):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
