# %% [markdown]
# # Find rows that do not fit
#
# Two files were joined, and some rows got the second half of another patient. Each
# number is right for somebody. `RBMOutlierDetector` finds half of these rows, where an
# isolation forest finds one in five, and says which cells disagree. Then `TableModel`
# finds wrong words in a table of words, numbers and gaps.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from keras_rbm.sklearn import RBMOutlierDetector, TableModel

tumors = load_breast_cancer(as_frame=True)
first, second = tumors.data.iloc[:, :10], tumors.data.iloc[:, 20:]
slipped = np.random.default_rng(0).choice(len(first), 28, replace=False)
second = second.copy()
second.iloc[slipped] = second.iloc[np.roll(slipped, 1)].to_numpy()
table = first.join(second)
wrong = table.index.isin(slipped)
print(f"{len(table)} tumors, {table.shape[1]} measurements, {wrong.sum()} rows wrong")

# %% [markdown]
# The first half of a row has means over the cells of a picture, the second half their
# largest values. Each of the 28 rows has the second half of another one of them.
#
# ## Find them
#
# Both detectors learn from the whole table, wrong rows and all; neither knows which
# they are. With `contamination=0.05` one row in twenty is called an outlier.

# %%
detector = RBMOutlierDetector(contamination=0.05, random_state=0).fit(table)
forest = IsolationForest(contamination=0.05, random_state=0).fit(table)
for name, model in {"RBMOutlierDetector": detector, "IsolationForest": forest}.items():
    area = roc_auc_score(wrong, -model.score_samples(table))
    outliers = model.predict(table) == -1
    print(
        f"{name:18}  {outliers.sum()} outliers, {(outliers & wrong).sum()} of them "
        f"wrong; area under the ROC curve {area:.2f}"
    )

# %% [markdown]
# The score of a row is its log-density. The forest looks for rows that are cut off by
# few thresholds of single columns, as those with extreme numbers are. In these rows it
# is the pairs that are odd.
#
# ## Which cells?
#
# `explain` says by how many nats a cell is less likely, given the rest of its row, than
# the median one of its column.

# %%
excess = pd.DataFrame(detector.explain(table), table.index, table.columns)
least = np.argsort(detector.score_samples(table))[:12]
for row in least[:3]:
    cells = excess.loc[row].nlargest(3).round(1)
    print(f"row {row}, {'wrong' if wrong[row] else 'as it was'}: {cells.to_dict()}")

# %%
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 4.6), width_ratios=[1.0, 1.5], layout="constrained"
)
outliers = detector.predict(table) == -1
x, y = table["mean radius"], table["worst radius"]
for name, rows in {"as it was": ~wrong, "wrong": wrong}.items():
    left.scatter(x[rows], y[rows], s=10, label=name)
style = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.8}
left.scatter(x[outliers], y[outliers], s=45, label="outlier", **style)
left.set(xlabel="mean radius", ylabel="worst radius")
left.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
image = right.imshow(excess.loc[least].clip(0.0, 10.0), cmap="Reds", aspect="auto")
right.set_xticks(range(len(excess.columns)), excess.columns, rotation=90, fontsize=8)
names = [f"{row}, wrong" if wrong[row] else str(row) for row in least]
right.set_yticks(range(len(least)), names, fontsize=8)
right.set_title("explain: the least likely rows, nats", fontsize=10)
_ = figure.colorbar(image, ax=right)

# %% [markdown]
# *Left*: some wrong rows have two radii that fit by chance, and are hard to find.
# *Right*: where two columns disagree, both have much. So `explain` says which cells do
# not fit, not which of them are wrong. Outliers that nobody touched are rare tumors: no
# detector tells them from errors, but their cells say where to look.
#
# ## Words and numbers
#
# `TableModel` takes words and gaps, too. In this table 20 diagnoses are wrong. A gap
# counts as a word of its own, and a rare one: what `explain` says of gaps is left out.

# %%
columns = ["mean radius", "mean texture", "mean smoothness", "mean concavity"]
columns += ["worst area", "worst concavity"]
frame = tumors.data[columns]
frame.insert(0, "diagnosis", tumors.target.map({0: "malignant", 1: "benign"}))
rng = np.random.default_rng(0)
frame = frame.mask(rng.random(frame.shape) < 0.05)
known = frame.index[frame["diagnosis"].notna()]
flipped = frame.index.isin(rng.choice(known, 20, replace=False))
other = {"malignant": "benign", "benign": "malignant"}
frame.loc[flipped, "diagnosis"] = frame.loc[flipped, "diagnosis"].map(other)

model = TableModel(random_state=0).fit(frame)
excess = model.explain(frame).where(frame.notna())
for name, score in {
    "score of the row": -model.score_samples(frame),
    "explain, diagnosis": excess["diagnosis"].fillna(0.0),
}.items():
    found = flipped[np.argsort(score)[-20:]].sum()
    area = roc_auc_score(flipped, score)
    print(f"{name:18}  area {area:.2f}, {found} of the 20 highest are wrong")
named = (excess.idxmax(axis=1) == "diagnosis").to_numpy()
wrongly, others = named[flipped].mean(), named[~flipped].mean()
print(f"highest cell of its row: {wrongly:.0%} of the wrong, {others:.0%} of others")

# %% [markdown]
# The score says how rare a row is as a whole. One wrong word of seven cells changes it
# by little. `explain` asks for each cell whether it fits the others.

# %%
worst = excess["diagnosis"].nlargest(5).index
shown = frame.loc[worst].round(2)
shown.insert(1, "explain", excess.loc[worst, "diagnosis"].round(1))
shown.assign(wrong=flipped[worst])

# %% [markdown]
# **Next:** [tables of any columns](../../guides/tables/),
# [find anomalies among real numbers](../real_valued_data/).
