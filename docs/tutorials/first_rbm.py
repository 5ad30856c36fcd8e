# %% [markdown]
# # A first RBM
#
# Train an RBM on handwritten digits, look at what it has learned, and estimate its
# likelihood with an error.

# %%
import pathlib

import keras
import numpy as np

import keras_rbm as kr


def digits(split, count):
    """Returns pictures (count, 784) of zeros and ones."""
    data = kr.datasets.load("mnist", split, binarize="sample", redraw=False)
    return next(iter(data.batch(count))).numpy()


train, test = digits("train", 20_000), digits("test", 1000)
kr.plots.samples(train[:20], num_columns=10, title="Training digits")

# %% [markdown]
# ## Train
#
# The gradient of the likelihood compares averages under the data with averages under
# the model. The latter are too costly to compute; a *learning rule* estimates them.
# *Persistent contrastive divergence*, the default, keeps chains of samples and moves
# them one step per batch. The learning rate falls to 0 until the last epoch, so that
# the chains keep up.

# %%
rbm = kr.RBM(200, seed=0)
rbm.compile()
history = rbm.fit(train, validation_data=test, epochs=15, verbose=0)
kr.plots.history(history)

# %% [markdown]
# The loss is minus the *pseudo*-likelihood. It shows quickly whether training works,
# but it is not the likelihood.
#
# ## Look
#
# A hidden unit responds to a pattern, its column of the kernel. Red pixels excite the
# unit and blue ones inhibit it. The patterns show strokes and where no stroke may be.

# %%
kr.plots.filters(rbm, max_units=60)

# %% [markdown]
# New digits are the last states of Gibbs chains. A chain alternates between drawing the
# hidden units given the pixels and the pixels given the hidden units. `reconstruct`
# shows expected pixels instead of drawn ones.

# %%
pictures = rbm.reconstruct(rbm.sample(20, steps=2000, seed=1))
kr.plots.samples(pictures, num_columns=10, title="New digits")

# %% [markdown]
# ## Score
#
# The log-likelihood of a digit needs log Z, the logarithm of a sum over all 2^784
# images. Annealing forward and back estimates it, with an interval that contains log Z
# in at least 95 % of cases, or is open where the end is unknown.

# %%
z = rbm.log_partition("bidirectional")
score = np.mean(rbm.log_likelihood(test, z))
print(f"log Z = {z.value:.1f} [{z.lower:.1f}, {z.upper:.1f}]")
print(f"test log-likelihood: {score:.1f} nats a digit")

mean = np.clip(train.mean(0), 1e-3, 1 - 1e-3)
alone = np.log(np.where(test > 0.5, mean, 1 - mean)).sum(1).mean()
print(f"pixels on their own: {alone:.1f}")

# %% [markdown]
# ## Save
#
# The file also holds the optimizer, the rule, its chains and the random state, so
# training continues where it stopped.

# %%
path = pathlib.Path("out")
path.mkdir(exist_ok=True)
rbm.save(path / "rbm.keras")
again = keras.saving.load_model(path / "rbm.keras")
features = [model.predict(test, verbose=0) for model in (rbm, again)]
print("the same features:", np.array_equal(*features))

# %% [markdown]
# **Next:** [which rule](../../guides/which-rule-for-an-rbm/),
# [can I trust this likelihood?](../../guides/trust-the-likelihood/),
# [restore and complete pictures](../restore_and_complete/).
