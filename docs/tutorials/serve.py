# %% [markdown]
# # Serve a model
#
# Export a trained model as a TensorFlow SavedModel that loads without this library. It
# has endpoints that predict, reconstruct, score and sample.

# %%
import numpy as np
import tensorflow as tf

import keras_rbm as kr

train = kr.datasets.load("digits", "train", binarize="sample", as_numpy=True)
rbm = kr.RBM(64, seed=0)
rbm.compile()
history = rbm.fit(train, epochs=20, verbose=0)
rbm.export("out/exported", verbose=False)

# %% [markdown]
# ## Another program
#
# The serving program needs only TensorFlow. The endpoints are signatures with named
# outputs.

# %%
served = tf.saved_model.load("out/exported")
print(sorted(served.signatures))

rows = tf.constant(train[:100])
features = served.signatures["transform"](rows)["features"]
energy = served.signatures["free_energy"](rows)["free_energy"]
print(features.shape, energy.shape)
print("as the model says:", np.allclose(features, rbm.predict(train[:100], verbose=0)))

# %%
drawn = served.signatures["sample"](
    num_samples=tf.constant(20), steps=tf.constant(500), seed=tf.constant(1)
)
kr.plots.samples(
    list(drawn.values())[0], num_columns=10, title="Samples by the endpoint"
)

# %% [markdown]
# **Next:** [deploy a model](../../guides/deploy/), its features also to ONNX.
