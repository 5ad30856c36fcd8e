# %% [markdown]
# # Give an autoencoder a prior
#
# An autoencoder writes a digit as 64 bits and draws it again from them. A prior says
# which bits go together: here an RBM, and for comparison a prior of independent bits.

# %%
import keras
import numpy as np
import tensorflow as tf
from keras import ops

import keras_rbm as kr


def digits(split, **kwargs):  # handwritten, 8x8
    return kr.datasets.load("digits", split, binarize="sample", **kwargs)


train = digits("train").shuffle(2000, seed=0).batch(30)  # pixels drawn in each epoch
train = train.map(lambda x: (x, x))
test = digits("test", redraw=False).batch(300).get_single_element()

# %% [markdown]
# ## Layers
#
# Bits have no gradient, so training takes relaxed ones, between 0 and 1. The layer
# that draws them adds minus their entropy as a loss. A prior adds `-log p(bits)`.


# %%
class RelaxedBits(keras.layers.Layer):
    def __init__(self, temperature=0.3):
        super().__init__()
        self.temperature = temperature
        self.seed_generator = keras.random.SeedGenerator(0)

    def call(self, logits, training=False):
        entropy = ops.softplus(logits) - logits * ops.sigmoid(logits)
        self.add_loss(-ops.mean(ops.sum(entropy, -1)))
        shape, ends = ops.shape(logits), (1e-6, 1.0 - 1e-6)
        u = keras.random.uniform(shape, *ends, seed=self.seed_generator)
        noisy = logits + ops.log(u) - ops.log1p(-u)
        if training:
            return ops.sigmoid(noisy / self.temperature)
        return ops.cast(noisy > 0.0, "float32")


class IndependentBits(keras.layers.Layer):
    def build(self, input_shape):
        self.bias = self.add_weight(shape=(input_shape[-1],), initializer="zeros")

    def call(self, bits):
        log_p = ops.sum(bits * self.bias - ops.softplus(self.bias), -1)
        self.add_loss(-ops.mean(log_p))
        return bits


# %% [markdown]
# `RBMPrior` is the same for an RBM, up to log Z. It takes the gradient of log Z from
# Gibbs chains of its own.


# %%
def nats(x, logits):  # -log p(x)
    return ops.sum(ops.softplus(logits) - x * logits, -1)


def trained(prior, epochs=200):
    keras.utils.set_random_seed(0)
    dense = keras.layers.Dense
    encoder = keras.Sequential([dense(128, "relu"), dense(64)])
    model = keras.Sequential([encoder, RelaxedBits(), prior, dense(64)])
    falling = keras.optimizers.schedules.CosineDecay(0.01, epochs * len(train))
    model.compile(keras.optimizers.Adam(falling), loss=nats)
    model.fit(train, epochs=epochs, shuffle=False, verbose=0)
    return model


independent = trained(IndependentBits())
coupled = trained(kr.layers.RBMPrior(kr.RBM(64, seed=0), seed=0))

# %% [markdown]
# ## Which prior is better?
#
# Minus the loss is a bound of the log-likelihood. The loss with an RBM lacks log Z,
# which is estimated once, with an interval. Outside of training, bits are bits. They
# are drawn 20 times for each test digit.

# %%
rbm = coupled.layers[2].rbm
z = rbm.log_partition("bidirectional")
print(f"log Z = {z.value:.2f} [{z.lower:.2f}, {z.upper:.2f}]")


def bound(model, log_z=0.0):
    many = tf.repeat(test, 20, 0)
    return -model.evaluate(many, many, batch_size=6000, verbose=0) - log_z


print(f"independent bits {bound(independent):.2f} nats a digit")
print(f"RBM              {bound(coupled, z.value):.2f}")

# %% [markdown]
# ## Decode and draw
#
# The decoder makes digits of the bits of test digits, and of bits that a prior has
# drawn. With so few pixels the priors look alike; on MNIST they do not.

# %%
means = ops.sigmoid(independent.layers[2].bias)
bits = ops.cast(kr.random.uniform((12, 64), 0) < means, "float32")
rows = {
    "test": test[:12],
    "decoded": ops.sigmoid(coupled(test[:12])),
    "drawn: RBM": ops.sigmoid(coupled.layers[3](rbm.sample(12, steps=2000, seed=0))),
    "independent": ops.sigmoid(independent.layers[3](bits)),
}
kr.plots.comparison({name: np.asarray(row) for name, row in rows.items()})

# %% [markdown]
# **Next:** [an RBM as a prior](../../guides/rbm-as-a-prior/) says what to watch, and
# compares both priors on MNIST.
