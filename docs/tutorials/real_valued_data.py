# %% [markdown]
# # Find anomalies among real numbers
#
# With Gaussian visible units an RBM is a density of real numbers. Here it learns the
# measurements of benign breast tumors, draws new rows, and detects anomalies: an
# outlier, or anomaly, is a row of low likelihood.

# %%
import keras
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

import keras_rbm as kr

table = load_breast_cancer()
benign = table.data[table.target == 1]
malignant = table.data[table.target == 0]
train, test = benign[:250], benign[250:]
print(f"{len(train)} benign tumours to learn from, {table.data.shape[1]} measurements")

# %% [markdown]
# ## Train
#
# The rows need no preprocessing: `fit` standardizes the columns inside the model, and
# samples and likelihoods come back in the units of the data. The learning rate is a
# third of what binary data would need, because precisions are learned too.

# %%
rbm = kr.RBM(16, visible="gaussian", seed=0)
falling = keras.optimizers.schedules.CosineDecay(0.003, 100 * 10)
rbm.compile(keras.optimizers.Adam(falling), rule="pcd")
history = rbm.fit(train, batch_size=25, epochs=100, verbose=0)

# %% [markdown]
# ## Score
#
# With 16 binary hidden units the log-density is exact. The baseline is a model without
# couplings: one normal distribution for each column.

# %%
z = rbm.log_partition("exact")
columns = kr.RBM(1, visible="gaussian", kernel_initializer="zeros")
columns.adapt(train)
for name, model, log_z in (("RBM", rbm, z), ("columns alone", columns, "exact")):
    scores = np.array(model.log_likelihood(test, log_z))
    error = scores.std() / np.sqrt(len(scores))
    print(f"{name:13} {scores.mean():6.2f} ± {error:.2f} nats a row, benign, not seen")

# %% [markdown]
# ## Draw new rows
#
# The hidden units carry what the columns have in common. The left plot shows a limit:
# the area is nearly a function of the radius, but an RBM gives each column its own
# noise. Leave out such a column, or replace the pair by a ratio.

# %%
drawn = rbm.sample(250, steps=500, seed=0).numpy()
pairs = [(0, 3), (5, 6), (1, 9)]
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
for axis, (a, b) in zip(axes, pairs, strict=True):
    axis.scatter(train[:, a], train[:, b], s=8, label="data")
    axis.scatter(drawn[:, a], drawn[:, b], s=8, label="drawn")
    axis.set(xlabel=table.feature_names[a], ylabel=table.feature_names[b])
_ = axes[0].legend()

# %% [markdown]
# ## Find unusual rows
#
# The model has seen no malignant tumors. They have a lower log-density than benign ones
# that it has not seen either.

# %%
fresh, unusual = (np.array(rbm.log_likelihood(rows, z)) for rows in (test, malignant))
truth = np.repeat([0, 1], [len(fresh), len(unusual)])
area = roc_auc_score(truth, -np.concatenate([fresh, unusual]))
print(f"area under the ROC curve: {area:.3f}")

figure, axis = plt.subplots(figsize=(7, 2.8), layout="constrained")
bins = np.linspace(-150, 80, 70)
for name, scores in (("benign", fresh), ("malignant", unusual)):
    axis.hist(np.clip(scores, -150, None), bins, alpha=0.6, label=name)
axis.set(xlabel="log-density, nats (lower ones at the left edge)", ylabel="rows")
_ = axis.legend()

# %% [markdown]
# **Next:** [real-valued data](../../guides/gaussian-units/),
# [which unit for which data](../../guides/which-unit-for-which-data/).
