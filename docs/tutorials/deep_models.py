# %% [markdown]
# # Stack layers
#
# The hidden units of one RBM can be the data of another. A deep belief network (`DBN`)
# is a stack of RBMs, trained one after the other. Its features, and its weights as the
# start of a network, are worth the most when labels are few.

# %%
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

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
# ## Classify with 200 labels
#
# What were 10,000 pictures without labels worth? Logistic regression on the features of
# the top is compared with classifiers of the pixels, for five draws of 200 labels.

# %%
features, test_features = (dbn.predict(x, verbose=0) for x in (train, test))
errors = []
for draw in range(5):
    few = np.random.default_rng(draw).permutation(len(train))[:200]
    pairs = {
        "features of the stack": (
            LogisticRegression(max_iter=2000).fit(features[few], labels[few]),
            test_features,
        ),
        "pixels": (
            LogisticRegression(max_iter=2000).fit(train[few], labels[few]),
            test,
        ),
        "pixels, SVM": (SVC().fit(train[few], labels[few]), test),
    }
    errors.append(
        {name: 1.0 - model.score(x, test_labels) for name, (model, x) in pairs.items()}
    )
for name in errors[0]:
    own = np.array([each[name] for each in errors])
    error = own.std(ddof=1) / np.sqrt(len(own))
    print(f"{name:22} {own.mean():.1%} ± {error:.1%} of the test pictures are wrong")

# %% [markdown]
# **Next:** [stack and fine-tune](../../guides/stack-and-fine-tune/), which also covers
# networks that start with the stack's weights, deep Boltzmann machines, and bounds of
# the likelihood.
