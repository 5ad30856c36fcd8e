# %% [markdown]
# # Deep models
#
# The hidden units of one RBM can be the data of another. A deep belief network (`DBN`)
# is a stack of RBMs, trained one after the other. Its weights are a good start for a
# classifier when labels are few.

# %%
import keras
import numpy as np

import keras_rbm as kr

data = kr.datasets.load("mnist", "train", binarize="sample", with_labels=True)
images, labels = (part.numpy() for part in next(iter(data.batch(12_000))))
train, test = images[:10_000], images[10_000:]
test_labels = labels[10_000:]

# %% [markdown]
# ## Train without labels
#
# The first RBM learns from the pictures. The second learns from states of the first
# one's hidden units, drawn given the pictures.

# %%
dbn = kr.DBN([kr.RBM(300, seed=0), kr.RBM(200, seed=1)])
dbn.adapt(train)
dbn.compile()
history = dbn.fit(train, epochs=15, verbose=0)  # of each RBM
print("features:", dbn.predict(train[:5], verbose=0).shape)

# %% [markdown]
# Sampling runs Gibbs steps in the top RBM and then goes down once. The figure shows
# expected pixels.

# %%
drawn = dbn.rbms[0].reconstruct(dbn.sample(20, steps=2000, seed=0))  # expected pixels
kr.plots.samples(drawn, num_columns=10, title="New digits")

# %% [markdown]
# ## Train with 200 labels
#
# `to_classifier` returns a plain Keras network that starts with the stack's weights.
# Comparing it with the same network started at random shows what the 10,000 pictures
# without labels were worth.

# %%
few, few_labels = images[:200], labels[:200]


def error(network):
    network.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    network.fit(few, few_labels, epochs=60, batch_size=20, verbose=0)
    return 1.0 - network.evaluate(test, test_labels, verbose=0)[1]


stacked = dbn.to_classifier(num_classes=10)
keras.utils.set_random_seed(0)
random_start = keras.Sequential(
    [
        keras.layers.Dense(300, "sigmoid"),
        keras.layers.Dense(200, "sigmoid"),
        keras.layers.Dense(10, "softmax"),
    ]
)
for name, network in (("stacked", stacked), ("random start", random_start)):
    share = error(network)
    sd = np.sqrt(share * (1.0 - share) / len(test))
    print(f"{name:12} {share:.1%} ± {sd:.1%} of the test pictures are wrong")

# %% [markdown]
# **Next:** [stack and fine-tune](../../guides/stack-and-fine-tune/), which also covers
# deep Boltzmann machines and bounds of the likelihood.
