# %% [markdown]
# # Which likelihood to trust
#
# The training loss is not a likelihood. This page scores models whose true likelihood
# is known, by every method. It shows how an estimate fails and how to notice it. Half a
# minute.

# %%
import keras
import numpy as np

import keras_rbm as kr

data = kr.datasets.load("digits", "train", binarize="sample", redraw=False)
train = data.batch(2000).get_single_element().numpy()

rbm = kr.RBM(15, seed=0)  # few enough hidden units to enumerate
falling = keras.optimizers.schedules.PolynomialDecay(0.2, 1800, 0.0)
rbm.compile(keras.optimizers.SGD(falling), rule="pcd")
history = rbm.fit(train, batch_size=20, epochs=30, verbose=0)

# %% [markdown]
# ## All methods side by side
#
# `score_report` estimates by annealing, tempering and enumeration, and says which
# interval to quote.

# %%
report = kr.score_report(rbm, train)
print(report)
kr.plots.score_report(report)

# %% [markdown]
# ## Too few temperatures
#
# Annealing moves from a model without coupling to this one, over temperatures in
# between. With fewer temperatures the error is larger and the interval wider, but it
# still contains log Z.

# %%
exact = rbm.log_partition("exact").value
print(f"exact {exact:.2f}")
for betas in (2, 4, 8, 16, 64, 256):
    z = rbm.log_partition("bidirectional", betas=betas, num_chains=20)
    inside = "holds it" if z.lower <= exact <= z.upper else "misses it"
    print(
        f"{betas:4} temperatures: {z.value:.2f} [{z.lower:.2f}, {z.upper:.2f}] {inside}"
    )

# %% [markdown]
# ## An interval that is open
#
# If the weights of a large model are too strong, annealed chains never reach some of
# its states. Forward and backward annealing then do not meet. The upper end of the
# interval is infinite, because no number would be honest, and `note` says why. This
# model has random weights that are far too strong.

# %%
rng = np.random.default_rng(0)
strange = kr.RBM(200, num_visible=200, seed=0)
strange.kernel.assign(rng.normal(0.0, 1.5, (200, 200)))
z = strange.log_partition("bidirectional", betas=100)
print(f"log Z {z.value:.0f} [{z.lower:.0f}, {z.upper:.0f}]")
print(z.note)

# %% [markdown]
# **Next:** [can I trust this likelihood?](../../guides/trust-the-likelihood/) counts
# how often each interval contains the true value.
