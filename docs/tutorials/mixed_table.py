# %% [markdown]
# # A table with every kind of column
#
# Tabular data, such as a survey: one model handles bools, categories, counts and
# measurements. The unit types are read from a pandas table. The RBM scores rows, draws
# new ones, fills gaps and finds unusual rows. (A table that has gaps already can be
# learned from as it is: [missing values](../../guides/missing-values/).)

# %%
import keras
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

import keras_rbm as kr

raw = load_diabetes(as_frame=True, scaled=False)
classes = pd.cut(
    raw.data["bmi"], [0, 25, 30, np.inf], labels=["normal", "over", "obese"]
)
frame = pd.DataFrame(
    {
        "male": raw.data["sex"] == 2,
        "age": raw.data["age"].astype(int),
        "weight": classes,
        "pressure": raw.data["bp"],
        "sugar": raw.data["s6"],
        "progression": raw.target,
    }
)
frame.head()

# %% [markdown]
# `from_dataframe` turns the table into numbers and chooses a unit type for each column.
# Only counts have to be named.

# %%
rows, visible = kr.units.from_dataframe(frame, counts=["age"])
print(visible.parts)
rows = np.random.default_rng(0).permutation(rows)
train, test = rows[:340], rows[340:]

rbm = kr.RBM(4, visible=visible, hidden="gaussian", seed=0)
falling = keras.optimizers.schedules.CosineDecay(0.01, 300 * 7)
rbm.compile(keras.optimizers.Adam(falling), rule="pcd")
history = rbm.fit(train, batch_size=50, epochs=300, verbose=0)

# %% [markdown]
# ## What do the columns say about each other?
#
# The answer is the gain over a model without couplings, on held-out rows.

# %%
alone = kr.RBM(1, visible=visible, kernel_initializer="zeros")
alone.adapt(train)
scores = [np.array(m.log_likelihood(test, "bidirectional")) for m in (alone, rbm)]
gain = scores[1] - scores[0]
error = gain.std() / np.sqrt(len(gain))
print(f"gain {gain.mean():.2f} ± {error:.2f} nats a row")

# %% [markdown]
# ## New rows
#
# New rows come back as a table with the same columns, which depend on each other as in
# the data.

# %%
new = kr.units.to_dataframe(rbm.sample(442, steps=1000, seed=0), frame)
new.head().round(1)

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
for axis, table, title in zip(axes, (frame, new), ("data", "drawn"), strict=True):
    for name, group in table.groupby("weight", observed=True):
        axis.scatter(group["sugar"], group["progression"], s=8, label=name)
    axis.set(title=title, xlabel="sugar")
axes[0].set(ylabel="progression")
_ = axes[0].legend(title="weight")

# %% [markdown]
# ## Fill gaps
#
# Hide the sugar and the weight class of all held-out rows. `impute` fills NaN by what
# is expected given the rest of the row. The mean error of sugar is compared with that
# of the column's mean, and of a linear regression on the known columns.

# %%
gaps = [list(frame.columns).index(name) for name in ("weight", "sugar")]
known = np.delete(np.arange(rows.shape[1]), gaps)
holes = test.copy()
holes[:, gaps] = np.nan

sugar = gaps[1]
regression = LinearRegression().fit(train[:, known], train[:, sugar])
guesses = {
    "mean": np.full(len(test), train[:, sugar].mean()),
    "linear regression": regression.predict(test[:, known]),
    "RBM": rbm.impute(holes).numpy()[:, sugar],
}
wrong = {name: np.abs(guess - test[:, sugar]) for name, guess in guesses.items()}
for name, own in wrong.items():
    more = own - wrong["RBM"]
    error = more.std() / np.sqrt(len(more))
    print(f"{name:18} {own.mean():5.2f}, more by {more.mean():5.2f} ± {error:.2f}")

# %% [markdown]
# Draws say how sure the model is, row by row. A guess is not better in each row.

# %%
draws = [rbm.impute(holes[:5], "sample", seed=seed).numpy() for seed in range(50)]
pd.DataFrame(
    {
        "sugar": test[:5, sugar],
        "RBM": guesses["RBM"][:5].round(),
        "±": np.std(draws, 0)[:, sugar].round(),
        "mean": guesses["mean"][:5].round(),
    }
)

# %% [markdown]
# ## Anomalies
#
# These are the held-out rows that the model finds least likely.

# %%
score = scores[1]
least = np.argsort(score)[:5]
kr.units.to_dataframe(test[least], frame).round(1).assign(nats=score[least].round(1))

# %% [markdown]
# **Next:** [a table that has gaps](../../guides/missing-values/),
# [which unit for which data](../../guides/which-unit-for-which-data/).
