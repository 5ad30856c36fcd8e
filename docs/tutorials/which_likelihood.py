# %% [markdown]
# # Which likelihood to trust
#
# The training loss is not a likelihood. This page scores a model whose true likelihood
# is known, by every method, and another whose first estimate fails. It shows how to
# notice that.

# %%
import warnings

import keras

import keras_rbm as kr

data = kr.datasets.load("digits", "train", binarize="sample", redraw=False)
train = data.batch(2000).get_single_element().numpy()

rbm = kr.RBM(15, seed=0)  # few enough hidden units to enumerate
rbm.compile()
history = rbm.fit(train, epochs=30, verbose=0)

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
# between. `log_partition` takes as many as its interval needs. With fewer the error is
# larger and the interval wider, in the end without an upper end, but it still contains
# log Z.

# %%
exact = rbm.log_partition("exact").value
print(f"exact {exact:.2f}")
base = rbm.anneal().base
for betas in (4, 16, 64, 256, 1024):
    z = kr.inference.annealed_importance_sampling(
        rbm.potentials(), base=base, betas=betas, num_chains=20
    )
    inside = "holds it" if z.lower <= exact <= z.upper else "misses it"
    print(
        f"{betas:4} temperatures: {z.value:.2f} [{z.lower:.2f}, {z.upper:.2f}] {inside}"
    )

# %% [markdown]
# ## An interval that is open
#
# With strong weights and few chains, most annealed chains never reach the states
# that matter, and a few carry all the weight. The upper end of the interval is then
# infinite, because no number would be honest, and `note` says why. A warning says the
# same.

# %%
strong = keras.initializers.RandomNormal(stddev=3.0, seed=0)
strange = kr.RBM(40, num_visible=60, kernel_initializer=strong, seed=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    z = strange.log_partition("ais", num_chains=20)
print(f"log Z at least {z.lower:.0f}, upper end {z.upper}")
print("warning:", str(caught[-1].message)[:90], "…")

# %% [markdown]
# More chains, and annealing both ways, close the interval.

# %%
z = strange.log_partition("bidirectional")
print(f"log Z = {z.value:.2f} [{z.lower:.2f}, {z.upper:.2f}]")

# %% [markdown]
# **Next:** [can I trust this likelihood?](../../guides/trust-the-likelihood/) counts
# how often each interval contains the true value.
