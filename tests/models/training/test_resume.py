"""An interrupted and resumed run equals an uninterrupted one, bit for bit."""

import copy

import keras
import numpy as np
import pytest

import keras_rbm

DATA = np.random.default_rng(0).integers(0, 2, (50, 6)).astype("float32")


def make():
    rbm = keras_rbm.RBM(4, num_visible=6, seed=1)
    rbm.compile(keras.optimizers.SGD(0.1), rule="pcd")
    return rbm


def backed_up(rbm, folder, epochs, **kwargs):
    backup = keras.callbacks.BackupAndRestore(
        folder, double_checkpoint=True, delete_checkpoint=False
    )
    rbm.fit(DATA, epochs=epochs, callbacks=[backup], verbose=0, **kwargs)


def test_resume_without_a_seed(tmp_path):
    """The random state of the file counts, not that of the new process."""
    rbm = keras_rbm.RBM(4, num_visible=6)
    rbm.compile(keras.optimizers.SGD(0.1), rule="pcd")
    rbm.fit(DATA, epochs=2, verbose=0)
    rbm.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for model in (rbm, loaded):
        model.fit(DATA, epochs=2, verbose=0)
    np.testing.assert_array_equal(rbm.kernel, loaded.kernel)
    np.testing.assert_array_equal(rbm.sample(5, steps=3), loaded.sample(5, steps=3))


def test_weights_of_another_size_change_nothing(tmp_path):
    rbm = make()
    rbm.save_weights(tmp_path / "small.weights.h5")
    other = keras_rbm.RBM(5, num_visible=6, seed=2)
    other.compile(keras.optimizers.SGD(0.1), rule="pcd")
    before = [weight.numpy() for weight in other.weights]
    with pytest.raises(ValueError, match=r"kernel of shape \(6, 5\).*shape \(6, 4\)"):
        other.load_own_variables(stored(rbm))
    for a, b in zip(other.weights, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_files_that_lack_a_variable(tmp_path):
    rbm = make()
    store = stored(rbm)
    del store["hidden_bias"]
    with pytest.raises(ValueError, match=r"Missing: \['hidden_bias'\]"):
        make().load_own_variables(store)


def test_chains_are_restored_only_if_saved():
    rbm, other = make(), make()
    rbm.fit(DATA, verbose=0)
    other.compile(rule="cd")
    other.load_own_variables(stored(rbm))
    np.testing.assert_array_equal(rbm.kernel, other.kernel)
    store = {k: v for k, v in stored(rbm).items() if not k.startswith("rule.")}
    fresh = make()
    chains = fresh.rule.chains.numpy()
    fresh.load_own_variables(store)
    np.testing.assert_array_equal(fresh.rule.chains, chains)


def stored(model):
    store = {}
    model.save_own_variables(store)
    return {name: np.asarray(value) for name, value in store.items()}


def test_training_before_the_backed_up_fit_is_no_interruption(tmp_path):
    """An epoch was skipped where the backup began after a warm-up."""
    rbm = make()
    rbm.fit(DATA, verbose=0)
    backed_up(rbm, tmp_path, epochs=2)
    resumed = make()
    history = []
    backup = keras.callbacks.BackupAndRestore(tmp_path, double_checkpoint=True)
    spy = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: history.append(epoch)
    )
    resumed.fit(DATA, epochs=4, callbacks=[backup, spy], verbose=0)
    assert history == [2, 3]
    resumed.fit(DATA, epochs=2, callbacks=[spy], verbose=0)  # a run of its own
    assert history == [2, 3, 0, 1]


class Stopped(keras.callbacks.Callback):
    """Interrupts training before the fourth epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("accumulated", "first", "then"), [(8, 10, 10), (None, 5, 7)])
def test_resume_counts_batches(tmp_path, accumulated, first, then):
    """With accumulated gradients, which are no updates, and another batch size."""
    data = np.random.default_rng(0).integers(0, 2, (20, 4)).astype("float32")

    def fit(batch_size, *callbacks):
        rbm = keras_rbm.RBM(3, num_visible=4, seed=0)
        optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=accumulated)
        rbm.compile(optimizer, run_eagerly=True)
        options = {"epochs": 5, "verbose": 0, "callbacks": list(callbacks)}
        return rbm, rbm.fit(data, batch_size=batch_size, **options).epoch

    backup = keras.callbacks.BackupAndRestore(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fit(first, backup, Stopped())
    rbm, epochs = fit(then, keras.callbacks.BackupAndRestore(tmp_path))
    assert epochs == [3, 4]
    if first == then:
        np.testing.assert_array_equal(rbm.kernel, fit(first)[0].kernel)


def test_a_file_is_whole_whatever_the_default_of_floats(tmp_path):
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    rbm.compile(keras.optimizers.Adam(0.01), run_eagerly=True)
    rbm.fit(np.eye(6, dtype="float32"), verbose=0)
    rbm.save(tmp_path / "rbm.keras")
    keras.config.set_floatx("float64")
    try:
        loaded = keras.saving.load_model(tmp_path / "rbm.keras")
    finally:
        keras.config.set_floatx("float32")
    np.testing.assert_array_equal(loaded.kernel, rbm.kernel)


@pytest.mark.filterwarnings("ignore:You are saving a model that has not yet been built")
@pytest.mark.parametrize(
    "make",
    [lambda: keras_rbm.RBM(3), lambda: keras_rbm.DBN([3, 2])],
    ids=["rbm", "dbn"],
)
def test_models_that_are_not_built(tmp_path, make):
    model = make()
    model.save(tmp_path / "model.keras")
    assert not keras.saving.load_model(tmp_path / "model.keras").built
    assert not copy.deepcopy(model).built
