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

train = kr.datasets.load("digits", "train", binarize="sample", as_numpy=True)

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
# ## How precise
#
# By default an interval is within ± 0.05 nats if that takes no more than 1000
# temperatures. A smaller precision takes more of them; more chains help, too.

# %%
exact = rbm.log_partition("exact").value
print(f"exact {exact:.3f}")
for chains, precision in ((20, 1.0), (100, 0.1), (400, 0.01)):
    z = rbm.log_partition("bidirectional", num_chains=chains, precision=precision)
    inside = "holds it" if z.lower <= exact <= z.upper else "misses it"
    print(f"{chains:4} chains: {z.value:.3f} [{z.lower:.3f}, {z.upper:.3f}] {inside}")

# %% [markdown]
# ## An interval that is open
#
# With strong weights most chains that are annealed forward never reach the states that
# matter, and a few carry all the weight. The upper end of the interval is then
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
z = strange.log_partition("bidirectional", precision=0.05)
print(f"log Z = {z.value:.2f} [{z.lower:.2f}, {z.upper:.2f}]")

# %% [markdown]
# **Next:** [can I trust this likelihood?](../../guides/trust-the-likelihood/) counts
# how often each interval contains the true value.
