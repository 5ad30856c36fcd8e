# %% [markdown]
# # Put a CRBM on a network
#
# A small ConvNet fills holes in pictures. Its output pixels are independent: each is
# right on average, and none knows of the others. A CRBM on the same network couples
# them by hidden units.

# %%
import keras
import numpy as np

import keras_rbm as kr

EPOCHS, HOLE = 40, kr.datasets.occlude(4)


def pairs(split, **options):  # 8x8 digits with a hole of 4x4 pixels
    clean = kr.datasets.load("digits", split, binarize="threshold")
    if split == "train":
        clean = kr.datasets.shuffled_batches(clean, 32, seed=0, **options)
        return kr.datasets.corrupt(clean, HOLE, redraw=True, seed=0, **options)
    pair = kr.datasets.corrupt(clean, HOLE, seed=1).batch(300).get_single_element()
    return [part.numpy() for part in pair]


covered, clean = pairs("test")

# %% [markdown]
# ## The network
#
# It returns two things: a logit for each pixel, and features of the whole picture.


# %%
def network():
    keras.utils.set_random_seed(0)
    inputs = keras.Input((64,))
    maps = keras.layers.Reshape((8, 8, 1))(inputs)
    for _ in range(2):
        maps = keras.layers.Conv2D(32, 3, padding="same", activation="relu")(maps)
    features = keras.layers.Flatten()(maps)
    features = keras.layers.Dense(64, activation="relu")(features)
    logits = keras.layers.Flatten()(keras.layers.Conv2D(1, 1)(maps))
    logits = keras.layers.Add()([logits, keras.layers.Dense(64)(features)])
    return inputs, logits, features


def falling(model, **compiled):  # the same optimizer for both
    steps = EPOCHS * 38  # batches of an epoch
    rate = keras.optimizers.schedules.PolynomialDecay(0.003, steps, 0.0)
    model.compile(keras.optimizers.Adam(rate), **compiled)
    train = pairs("train", iterations=model.optimizer.iterations)
    model.fit(train, epochs=EPOCHS, shuffle=False, verbose=0)


inputs, logits, _ = network()
alone = keras.Model(inputs, keras.layers.Activation("sigmoid")(logits))
falling(alone, loss="binary_crossentropy")

# %% [markdown]
# ## With hidden units
#
# The CRBM takes both as they are: logits are the visible units' biases, and the hidden
# units read the features.

# %%
inputs, logits, features = network()
crbm = kr.CRBM(16, backbone=keras.Model(inputs, [logits, features]), seed=0)
falling(crbm)


def report(name, p, nats):
    wrong = (p > 0.5) != (clean > 0.5)
    print(f"{name}: {100 * np.mean(wrong):.2f} % of the pixels wrong, ", end="")
    print(f"{100 * np.mean(~wrong.any(1)):.1f} % whole, {np.mean(nats):.2f} nats")


p = np.clip(alone.predict(covered, verbose=0), 1e-6, 1 - 1e-6)
marginals = crbm.predict(covered, verbose=0)
report("independent", p, np.sum(np.log(np.where(clean > 0.5, p, 1 - p)), 1))
report("CRBM       ", marginals, crbm.log_likelihood(covered, clean, "exact"))

# %% [markdown]
# On these 1,200 digits the two are alike by the numbers; on MNIST the CRBM is ahead by
# several nats a picture. What it adds are samples whose pixels were drawn together.

# %%
rng = np.random.default_rng(0)
rows = {"clean": clean[:12], "covered": covered[:12], "independent": p[:12]}
rows["its draw"] = (rng.random((12, 64)) < p[:12]).astype("float32")
rows["CRBM"] = marginals[:12]
for number in (1, 2):
    rows[f"drawn {number}"] = crbm.sample(covered[:12], steps=300, seed=number)
kr.plots.comparison({name: np.asarray(row) for name, row in rows.items()})

# %% [markdown]
# **Next:** [a loss instead of a rule, and the other way to couple the outputs of any
# Keras model](../../guides/structured-prediction/).
