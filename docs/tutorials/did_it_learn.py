# %% [markdown]
# # Did it learn?
#
# A loss that falls does not say so. This page compares samples of models with their
# data: one that has learned digits, one whose chains have lost a part of the data,
# which a loss cannot tell, and one that has kept it.

# %%
import numpy as np

import keras_rbm as kr


def digits(split):
    return kr.datasets.load("digits", split, binarize="sample", as_numpy=True)


rbm = kr.RBM(64, seed=0)
rbm.compile()
history = rbm.fit(digits("train"), epochs=50, verbose=0)
report = kr.quality_report(rbm, digits("train"), digits("test"))
print(report)
kr.plots.quality_report(report)

# %% [markdown]
# *Left*: samples lie where the data lie, in the first two principal components.
# *Middle*: pairs of pixels vary together as in the data. *Right*: how often a nearest
# neighbor tells samples from data, by the length of the chains. Those that began at
# noise and those that began at data meet, so the chains forget their start.

# %% [markdown]
# ## Two kinds of data, far apart
#
# Seven of ten images are white on the left, the others on the right; one pixel in
# twenty is flipped. No Gibbs sweep leads from one kind to the other.

# %%
rng = np.random.default_rng(0)
left = np.zeros((8, 8))
left[:, :4] = 1.0
kinds = np.stack([left, 1.0 - left]).reshape(2, 64)


def images(count):
    smaller = rng.random(count) < 0.3
    own = kinds[smaller.astype(int)]
    flipped = np.where(rng.random(own.shape) < 0.05, 1.0 - own, own)
    return flipped.astype("float32"), smaller


train, _ = images(1000)
test, smaller = images(1000)
models = {}
for rule in ("pcd", "parallel_tempering"):
    rbm = models[rule] = kr.RBM(8, seed=0)
    rbm.compile(rule=rule)
    history = rbm.fit(train, epochs=200, verbose=0)
    scores = rbm.log_likelihood(test, "exact").numpy()
    print(f"{rule}: loss {history.history['loss'][-1]:.1f}, log-likelihood of the")
    print(
        f"  larger kind {scores[~smaller].mean():.1f}, "
        f"smaller {scores[smaller].mean():.1f}, both {scores.mean():.1f}"
    )

# %% [markdown]
# The losses are alike, but the model by PCD has no place for the smaller kind. Its
# chains were all in one place, and when the model moved mass away from it, they stayed.
# The default rule, `"parallel_tempering"`, lets a few of its chains at a time exchange
# states with tempered ones, and learns from both kinds in each step.
#
# The report needs no log Z to tell that something is wrong with the chains of PCD:

# %%
report = kr.quality_report(models["pcd"], train, test, steps=100)
print(*report.verdict, sep="\n")
kr.plots.quality_report(report)

# %% [markdown]
# ## Samples of both kinds
#
# That is said of the better model, too, and it is true: block Gibbs chains of `sample`
# stay in the kind in which they begin, and from the base rate they all meet the larger
# one. `method="tempering"` goes on from the chains and temperatures that training has
# left. With 11 equal temperatures of its own it does not find the smaller kind.

# %%
rbm = models["parallel_tempering"]
white = kr.inference.exact_moments(rbm.potentials()).visible.bias.numpy()
exact = (0.95 - white[0]) / 0.9  # the first pixel is on the left; one in 20 is flipped
print(f"white on the right: data {0.3:.0%}, the model, by enumeration, {exact:.0%}")
own = np.linspace(0.0, 1.0, 11)
for name, options in {
    "gibbs": {},
    "tempering, equal": {"method": "tempering", "betas": own},
    "tempering": {"method": "tempering"},
}.items():
    samples = rbm.sample(1000, steps=300, seed=0, **options).numpy()
    share = np.mean(samples @ (kinds[1] - kinds[0]) > 0.0)
    print(f"{name:17}: {share:.0%}")

# %% [markdown]
# **Next:** [which rule for an RBM?](../../guides/which-rule-for-an-rbm/), and
# [can I trust this likelihood?](../../guides/trust-the-likelihood/)
