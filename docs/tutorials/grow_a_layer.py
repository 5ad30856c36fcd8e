# %% [markdown]
# # Grow a hidden layer
#
# How many hidden units do the data need? An `InfiniteRBM` adds one unit at a time. It
# searches for the unit that raises the likelihood most, estimates the gain with its
# error, and rejects a unit that gains nothing.

# %%
import numpy as np

import keras_rbm as kr


def digits(split, count):
    data = kr.datasets.load("digits", split, binarize="sample", redraw=False)
    return next(iter(data.batch(count))).numpy()


train, test = digits("train", 1000), digits("test", 300)
grown = kr.InfiniteRBM(max_hidden_units=20, seed=0)
grown.adapt(train)
grown.compile(rule=kr.rules.FrankWolfe(num_samples=1000))
history = grown.fit(train, batch_size=len(train), epochs=12, verbose=0)
for number, gain in enumerate(history.history["gain"], 1):
    print(f"unit {number:2}: {gain:6.3f} nats a digit")

# %% [markdown]
# ## What each unit adds
#
# Early units find large strokes. Later units refine them.

# %%
kr.plots.filters(grown, (8, 8))

# %% [markdown]
# ## A start for other rules
#
# The grown model becomes an RBM, which any rule can train further.

# %%
rbm = grown.to_rbm()
before = np.mean(rbm.log_likelihood(test, "exact"))
rbm.compile()
history = rbm.fit(train, epochs=20, verbose=0)
after = np.mean(rbm.log_likelihood(test, "exact"))
print(f"{rbm.hidden_units} units, test log-likelihood {before:.2f}, then {after:.2f}")

# %% [markdown]
# **Next:** [grow the hidden layer](../../guides/grow-the-hidden-layer/).
