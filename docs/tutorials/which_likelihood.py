# %% [markdown]
# # Which likelihood to trust
#
# The loss of training is no likelihood. This page scores models whose truth is known,
# by every method, and shows how an estimate fails and how one sees it. Half a minute.

# %%
import keras
import numpy as np

import keras_rbm as kr

data = kr.datasets.load("digits", "train", binarize="sample", redraw=False)
train = data.batch(2000).get_single_element().numpy()

rbm = kr.RBM(15, seed=0)  # few enough hidden units to enumerate
falling = keras.optimizers.schedules.PolynomialDecay(0.2, 1800, 0.0)
rbm.compile(keras.optimizers.SGD(falling), rule="pcd")
rbm.fit(train, batch_size=20, epochs=30, verbose=0)

# %% [markdown]
# ## All methods side by side
#
# `score_report` anneals, tempers and enumerates, and says which interval to quote.

# %%
report = kr.score_report(rbm, train)
print(report)
kr.plots.score_report(report)

# %% [markdown]
# ## Too few temperatures
#
# Annealing walks from a model without coupling to this one, over temperatures in
# between. With fewer of them the estimate is further off, and the interval is wider:
# it holds log Z all the same.

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
# Weights of a large model can be such that annealed chains never reach some of its
# states. Forwards and back then do not meet; the upper end is infinite, and `note` says
# why, since no number would be honest. Here are weights at random, far too strong.

# %%
rng = np.random.default_rng(0)
strange = kr.RBM(200, num_visible=200, seed=0)
strange.kernel.assign(rng.normal(0.0, 1.5, (200, 200)))
z = strange.log_partition("bidirectional", betas=100)
print(f"log Z {z.value:.0f} [{z.lower:.0f}, {z.upper:.0f}]")
print(z.note)

# %% [markdown]
# **Next:** [can I trust this likelihood?](../../guides/trust-the-likelihood/) counts
# how often each interval holds.
