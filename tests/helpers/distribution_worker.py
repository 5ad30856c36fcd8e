"""A worker of the tests of several processes; prints its results as JSON."""

import json
import os
import pathlib
import sys
import time

import keras
import numpy as np
import tensorflow as tf

# Before any other use of TensorFlow.
LIMIT = float(os.environ.get("COLLECTIVE_TIMEOUT", "0")) or None
STRATEGY = tf.distribute.MultiWorkerMirroredStrategy(
    communication_options=tf.distribute.experimental.CommunicationOptions(
        timeout_seconds=LIMIT
    )
)

import keras_rbm as kr  # noqa: E402

EPOCHS = 4


def data():
    rng = np.random.default_rng(0)
    return (rng.integers(0, 2, (40, n)).astype("float32") for n in (6, 5))


def make_crbm():
    with STRATEGY.scope():
        crbm = kr.CRBM(4, num_visible=5, num_features=6, inference="mean_field", seed=1)
        metrics = [kr.metrics.PixelError()]
        crbm.compile(keras.optimizers.SGD(0.5), metrics=metrics)
    return crbm


def learn():
    x, y = data()
    crbm = make_crbm()
    history = crbm.fit(
        x, y, batch_size=10, epochs=3, verbose=0, validation_data=(x, y)
    ).history
    with STRATEGY.scope():
        rbm = kr.RBM(4, num_visible=6, seed=1)
        rule = kr.rules.PersistentContrastiveDivergence(num_chains=7)
        rbm.compile(keras.optimizers.SGD(0.5), rule=rule)
    loss = rbm.fit(x, batch_size=10, epochs=2, verbose=0).history["loss"]
    z = rbm.log_partition("ais", num_chains=50)
    return {
        "history": history,
        "kernel": crbm.kernel.numpy().tolist(),
        "rbm_kernel": rbm.kernel.numpy().tolist(),
        "rbm_loss": loss,
        "chains": rule.chains.value.values[0].numpy().tolist(),
        "log_partition": float(z.value),
        "exact": float(rbm.log_partition("exact").value),
    }


def resume(folder, falls):
    """Trains from the chief's last file, and writes one after each epoch."""
    x, y = data()
    folder.mkdir(exist_ok=True)
    chief = STRATEGY.cluster_resolver.task_id == 0
    path = folder / "model.keras"
    if path.exists():
        with STRATEGY.scope():
            crbm = keras.saving.load_model(path)
    else:
        crbm = make_crbm()
    start = int(crbm.optimizer.iterations.numpy()) // 4

    def fall(epoch, logs):
        if falls and not chief and epoch == 2:
            os._exit(9)

    callbacks = [keras.callbacks.LambdaCallback(on_epoch_begin=fall)]
    if chief:
        callbacks.append(keras.callbacks.ModelCheckpoint(path))
    crbm.fit(
        x, y, batch_size=10, epochs=EPOCHS, initial_epoch=start, callbacks=callbacks,
        verbose=0,
    )  # fmt: skip
    return {"started_at": start, "kernel": crbm.kernel.numpy().tolist()}


def go_on(sleeps):
    """Trains until it is stopped from outside, and tells the epochs."""
    x, y = data()

    def begin(epoch, logs):
        print(epoch, flush=True)
        if sleeps and epoch == 3 and STRATEGY.cluster_resolver.task_id == 1:
            time.sleep(600)

    tell = keras.callbacks.LambdaCallback(on_epoch_begin=begin)
    crbm = make_crbm()
    crbm.fit(x, y, batch_size=10, epochs=10**6, callbacks=[tell], verbose=0)


if __name__ == "__main__":
    folder, task = pathlib.Path(sys.argv[1]), sys.argv[2]
    if task in ("go on", "sleep"):
        go_on(sleeps=task == "sleep")
    result = learn() if task == "learn" else resume(folder, falls=task == "fall")
    print(json.dumps(result))
