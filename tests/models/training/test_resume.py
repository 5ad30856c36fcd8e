"""An interrupted and resumed run equals an uninterrupted one, bit for bit."""

import copy

import keras
import numpy as np
import pytest
from same import assert_same, refused
from small_models import binary, compiled, fitted, reloaded

import keras_rbm

DATA = binary(50)


def made(hidden_units=4, rule="pcd"):
    rbm = keras_rbm.RBM(hidden_units, num_visible=6, seed=1)
    return compiled(rbm, keras.optimizers.SGD(0.1), rule=rule)


def stored(model):
    store = {}
    model.save_own_variables(store)
    return {name: np.asarray(value) for name, value in store.items()}


def test_weights_that_do_not_fit_change_nothing():
    other, store = made(5), stored(made())
    with refused(r"kernel of shape \(6, 5\).*shape \(6, 4\)", other):
        other.load_own_variables(store)
    del store["hidden_bias"]
    rbm = made()
    with refused(r"Missing: \['hidden_bias'\]", rbm):
        rbm.load_own_variables(store)


def test_chains_are_restored_only_if_saved():
    rbm, other = fitted(made(), DATA), made(rule="cd")
    other.load_own_variables(stored(rbm))
    np.testing.assert_array_equal(rbm.kernel, other.kernel)
    store = {k: v for k, v in stored(rbm).items() if not k.startswith("rule.")}
    fresh = made()
    chains = fresh.rule.chains.numpy()
    fresh.load_own_variables(store)
    np.testing.assert_array_equal(fresh.rule.chains, chains)


def test_training_before_the_backed_up_fit_is_no_interruption(tmp_path):
    """An epoch was skipped where the backup began after a warm-up."""
    history, rbm, resumed = [], fitted(made(), DATA), made()
    spy = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: history.append(epoch)
    )

    def backup(**options):
        restore = keras.callbacks.BackupAndRestore
        return restore(tmp_path, double_checkpoint=True, **options)

    fitted(rbm, DATA, epochs=2, callbacks=[backup(delete_checkpoint=False)])
    fitted(resumed, DATA, epochs=4, callbacks=[backup(), spy])
    assert history == [2, 3]
    fitted(resumed, DATA, epochs=2, callbacks=[spy])  # a run of its own
    assert history == [2, 3, 0, 1]


class Stopped(keras.callbacks.Callback):
    """Interrupts training before the fourth epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("accumulated", "first", "then"), [(8, 10, 10), (None, 5, 7)])
def test_resume_counts_batches(tmp_path, accumulated, first, then):
    """With accumulated gradients, which are no updates, and another batch size."""
    data = binary(20, 4)

    def fit(batch_size, *callbacks):
        rbm = keras_rbm.RBM(3, num_visible=4, seed=0)
        optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=accumulated)
        compiled(rbm, optimizer, run_eagerly=True)
        options = {"epochs": 5, "verbose": 0, "callbacks": list(callbacks)}
        return rbm, rbm.fit(data, batch_size=batch_size, **options).epoch

    with pytest.raises(KeyboardInterrupt):
        fit(first, keras.callbacks.BackupAndRestore(tmp_path), Stopped())
    rbm, epochs = fit(then, keras.callbacks.BackupAndRestore(tmp_path))
    assert epochs == [3, 4]
    if first == then:
        assert_same([rbm.kernel], [fit(first)[0].kernel])


def test_a_file_is_whole_whatever_the_default_of_floats(tmp_path):
    rbm = compiled(keras_rbm.RBM(4, num_visible=6, seed=0), run_eagerly=True)
    fitted(rbm, DATA).save(tmp_path / "rbm.keras")
    keras.config.set_floatx("float64")
    try:
        loaded = keras.saving.load_model(tmp_path / "rbm.keras")
    finally:
        keras.config.set_floatx("float32")
    np.testing.assert_array_equal(loaded.kernel, rbm.kernel)


@pytest.mark.filterwarnings("ignore:You are saving a model that has not yet been built")
@pytest.mark.parametrize("units", [3, [3, 2]], ids=["rbm", "dbn"])
def test_models_that_are_not_built(units, tmp_path):
    cls = keras_rbm.RBM if units == 3 else keras_rbm.DBN
    assert not reloaded(cls(units), tmp_path).built
    assert not copy.deepcopy(cls(units)).built
