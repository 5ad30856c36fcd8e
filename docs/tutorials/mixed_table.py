# %% [markdown]
# # Fill gaps in a table
#
# `TableModel` fills the gaps of a data frame as it is, numbers and words at once. On
# this table its numbers are as close as those of linear regressions, and nine of ten
# words are right. Draws say how sure it is of a cell.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from keras_rbm.sklearn import TableModel

wine = load_wine(as_frame=True)
numbers = ["alcohol", "malic_acid", "magnesium", "flavanoids", "color_intensity"]
numbers += ["hue", "proline"]
full = wine.data[numbers].assign(cultivar=wine.target.map(dict(enumerate("ABC"))))
hidden = np.random.default_rng(0).random(full.shape) < 0.2
frame = full.mask(hidden).convert_dtypes()
frame.head()

# %% [markdown]
# A fifth of the cells of 178 wines are hidden. The model learns from what is left:
# nothing has to be scaled or encoded, and no row has to be complete. `convert_dtypes`
# makes whole numbers `Int64`, so that what is filled is whole, too.

# %%
model = TableModel(random_state=0).fit(frame)
filled = model.impute(frame)
filled.head().round(2)

# %% [markdown]
# ## How far off is it?
#
# Here the hidden cells are known. `IterativeImputer` predicts each column by a linear
# regression on all others; it needs the three words as two columns of 0 and 1.

# %%
codes = pd.get_dummies(frame["cultivar"], dtype=float)[["B", "C"]]
codes[frame["cultivar"].isna()] = np.nan
known = frame[numbers].astype(float).join(codes)
linear = IterativeImputer(max_iter=50, random_state=0).fit_transform(known)
linear = pd.DataFrame(linear, columns=known.columns)
shares = linear.assign(A=1.0 - linear["B"] - linear["C"])[["A", "B", "C"]]
common = frame["cultivar"].mode()[0]
guesses = {
    "mean, most frequent word": known.fillna(known.mean()).assign(cultivar=common),
    "linear regressions": linear.assign(cultivar=shares.idxmax(axis=1)),
    "TableModel": filled,
}
cells, words = hidden[:, :-1], hidden[:, -1]
for name, guess in guesses.items():
    errors = (guess[numbers] - full[numbers]).abs() / full[numbers].std()
    error = errors.to_numpy(float)[cells].mean()
    right = (guess["cultivar"] == full["cultivar"])[words].mean()
    print(f"{name:24}  error {error:.2f} deviations, {right:.0%} of the words right")

# %% [markdown]
# The error is the mean of all hidden numbers, in standard deviations of their columns.
# The model has no better numbers than the regressions: it saves the encoding, and it
# has a distribution of each cell.
#
# ## How sure is it?
#
# `"sample"` draws what could be there: each draw is another table. 80 % of the numbers
# should be between the lowest and the highest tenth of the draws.

# %%
draws = [model.impute(frame, "sample", random_state=seed) for seed in range(40)]
drawn = np.stack([draw[numbers].to_numpy(float) for draw in draws])
low, high = np.quantile(drawn, (0.1, 0.9), axis=0)
truth = full[numbers].to_numpy()
inside = ((low <= truth) & (truth <= high))[cells]
print(f"{inside.mean():.0%} of {inside.size} numbers are between")

errors = (np.abs(filled[numbers].to_numpy(float) - truth) / truth.std(0))[cells]
order = np.argsort((drawn.std(0) / truth.std(0))[cells])
least, more, most = np.array_split(order, 3)
for name, third in {"least": least, "more": more, "most": most}.items():
    print(f"error {errors[third].mean():.2f} of the third whose draws differ {name}")

# %% [markdown]
# Nearly as many are. Cells whose draws differ less are filled better: so the draws say
# which of the filled cells to trust.

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for axis, name in zip(axes, ("flavanoids", "proline"), strict=True):
    k = numbers.index(name)
    own = hidden[:, k]
    middle = filled[name].to_numpy(float)[own]
    ends = np.clip([middle - low[own, k], high[own, k] - middle], 0.0, None)
    axis.errorbar(
        truth[own, k], middle, ends, fmt="o", ms=4, lw=1, label="filled, 80 % of draws"
    )
    axis.axline((truth[own, k].mean(),) * 2, slope=1, color="0.6", lw=1)
    axis.set(title=name, xlabel="hidden", ylabel="filled")
_ = axes[0].legend()

# %% [markdown]
# **Next:** [tables of any columns](../../guides/tables/),
# [missing values](../../guides/missing-values/),
# [how well gaps are filled](../../results/gaps/).
