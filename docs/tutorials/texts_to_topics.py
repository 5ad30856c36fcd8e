# %% [markdown]
# # Tell the topics of texts
#
# A text may have several topics, and topics go together. A classifier for each topic
# does not know that. Here a CRBM learns both from a list of strings: what words say of
# each topic, and which topics come together. So it gives the probability of a whole
# set of topics.
#
# The texts are messages to a shop. They are invented: each topic of a message is said
# in one of four ways, or, two times in five, not at all.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier

from keras_rbm.sklearn import CRBMClassifier

SAYINGS = {
    "broken": "it is broken / the screen has a crack / it stopped / a part fell off",
    "refund": "I want my money back / please refund me / cancel it / I will return it",
    "late": "it came too late / where is my parcel / days of waiting / no delivery yet",
    "address": "I moved / wrong street / the courier could not find us / other town",
    "price": "it was too expensive / charged twice / the bill is wrong / no discount",
    "praise": "I love it / great shop / thank you / works like a charm",
}
TOPICS = [*SAYINGS]
#: What messages are about, and how often.
SETS = {
    "broken refund": 0.2,
    "broken": 0.05,
    "late address": 0.2,
    "late refund": 0.1,
    "price refund": 0.15,
    "price": 0.1,
    "praise": 0.2,
}


def messages(count, seed):
    """Returns texts and their topics, an array of 0 and 1."""
    rng = np.random.default_rng(seed)
    sets = rng.choice([*SETS], count, p=[*SETS.values()])
    texts, labels = [], np.zeros((count, len(TOPICS)), int)
    for row, topics in enumerate(map(str.split, sets)):
        labels[row, [TOPICS.index(topic) for topic in topics]] = 1
        said = [topic for topic in topics if rng.random() < 0.6] or [rng.choice(topics)]
        words = [rng.choice(SAYINGS[topic].split(" / ")) for topic in said]
        texts.append(". ".join(["hello", *rng.permutation(words)]))
    return texts, labels


texts, labels = messages(2000, seed=0)
test_texts, test_labels = messages(2000, seed=1)
for text, row in zip(texts[:4], labels[:4], strict=True):
    print(f"{text:60} {[TOPICS[i] for i in np.flatnonzero(row)]}")

# %% [markdown]
# ## Learn
#
# Words become columns, most of them 0: sparse features are taken as they are. Eight
# hidden units couple the topics. Their states are few enough to be enumerated, so the
# likelihood that is learned is exact.

# %%
vectorizer = TfidfVectorizer()
x = vectorizer.fit_transform(texts)
test_x = vectorizer.transform(test_texts)
topics = CRBMClassifier(random_state=0).fit(x, labels)
alone = OneVsRestClassifier(LogisticRegression()).fit(x, labels)

# %% [markdown]
# ## Decide
#
# What is best depends on how errors count. `"marginal"` has the fewest errors by topic,
# `"mode"` the most messages without an error, `"f1"` the greatest F1 of a message.

# %%
rows = {"regression for each topic": alone.predict(test_x)}
for decision in ("marginal", "mode", "f1"):
    topics.set_params(decision=decision)
    rows[f"CRBM, {decision}"] = topics.predict(test_x)
pd.DataFrame(
    {
        name: {
            "wrong topics, %": 100 * np.mean(found != test_labels),
            "messages without an error, %": 100
            * np.mean((found == test_labels).all(1)),
            "F1, %": 100 * f1_score(test_labels, found, average="samples"),
        }
        for name, found in rows.items()
    }
).T.round(1)

# %% [markdown]
# ## Probabilities of sets
#
# A person who has to answer wants to know what else a message may be about. These are
# the likeliest sets of topics of two messages, with their probabilities. A regression
# for each topic cannot give them.

# %%
every = np.array([list(np.binary_repr(number, 6)) for number in range(64)], int)
for text in ("hello. it is broken", "hello. where is my parcel"):
    row = vectorizer.transform([text])
    p = np.exp([topics.log_likelihood(row, state[np.newaxis])[0] for state in every])
    print(f"{text}    (all sets together: {p.sum():.3f})")
    for number in np.argsort(-p)[:3]:
        names = [TOPICS[i] for i in np.flatnonzero(every[number])]
        print(f"    {p[number]:.2f} {' and '.join(names)}")

# %% [markdown]
# ## Which topics go together
#
# These are correlations of topics, in messages and in sets that the model draws. What
# never comes together is as much a part of it as what does.

# %%
features = topics.scaler_.transform(test_x).toarray()
drawn = topics.model_.sample(features, steps=100, seed=0).numpy()
figure, panels = plt.subplots(1, 2, figsize=(7.5, 3.6), layout="constrained")
for axes, (name, states) in zip(
    panels, {"messages": test_labels, "drawn by the model": drawn}.items(), strict=True
):
    image = axes.imshow(np.corrcoef(states.T), cmap="RdBu", vmin=-1.0, vmax=1.0)
    axes.set_title(name)
    axes.set_xticks(range(6), TOPICS, rotation=45)
    axes.set_yticks(range(6), TOPICS)
figure.colorbar(image, ax=panels, label="correlation")
plt.show()

# %% [markdown]
# **Next:** [how this compares with what is published](../../results/multilabel/),
# [classes, labels, few labels](../../guides/classify/).
