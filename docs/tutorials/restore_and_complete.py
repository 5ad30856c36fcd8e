# %% [markdown]
# # Restore and complete pictures
#
# A conditional RBM learns p(clean picture | noisy picture) and removes the noise. An
# RBM completes the missing half of a picture by sampling.

# %%
import keras
import numpy as np

import keras_rbm as kr

data = kr.datasets.load("mnist", "train", binarize="threshold")
clean = next(iter(data.batch(6000))).numpy()
train, test = clean[:5000], clean[5000:]
rng = np.random.default_rng(0)


def with_noise(pictures):
    return np.abs(pictures - (rng.random(pictures.shape) < 0.1))


# %% [markdown]
# ## Restore
#
# Given the noisy picture, the clean pixels still depend on each other. Belief
# propagation takes this into account, in training and in prediction. The noise is drawn
# again in each epoch, which works like more data.

# %%
crbm = kr.CRBM(64, inference=kr.inference.BeliefPropagation(max_iterations=5), seed=0)
crbm.compile(
    keras.optimizers.SGD(0.02, momentum=0.9),
    rule="maximum_likelihood",
    metrics=[kr.metrics.PixelError()],
)
for _ in range(4):
    crbm.fit(with_noise(train), train, batch_size=40, verbose=0)

noisy = with_noise(test)
restored = crbm.predict(noisy, verbose=0)
wrong = [np.mean((pictures > 0.5) != (test > 0.5)) for pictures in (noisy, restored)]
print(f"wrong pixels: {wrong[0]:.1%} before, {wrong[1]:.1%} after")
rows = {"clean": test[:10], "noisy": noisy[:10], "restored": restored[:10]}
kr.plots.comparison(rows)

# %% [markdown]
# ## Complete
#
# An RBM needs no pairs. Known pixels keep their values, while Gibbs sampling draws the
# others, which are NaN. Each chain gives one of many possible answers.

# %%
rbm = kr.RBM(200, seed=0)
rbm.compile()
history = rbm.fit(train, epochs=20, verbose=0)

known = np.arange(784) < 392  # the upper half
hidden = np.where(known, test[:10], 0.5)
rows = {"hidden": hidden}
for number in range(3):
    start = np.where(known, test[:10], np.nan)
    drawn = rbm.sample(10, initial_visible=start, steps=500, seed=number)
    rows[f"answer {number + 1}"] = np.where(known, test[:10], rbm.reconstruct(drawn))
kr.plots.comparison(rows)

# %% [markdown]
# **Next:** [structured prediction](../../guides/structured-prediction/), and the
# [reproduced tables of the paper](../../results/structured_prediction/).
