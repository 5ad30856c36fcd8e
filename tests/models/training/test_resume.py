"""An interrupted and resumed run equals an uninterrupted one, bit for bit."""

import copy
import json

import keras
import numpy as np
import pytest
from same import assert_same, refused
from small_models import binary, compiled, fitted, quick, reloaded

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


class Cut(keras.callbacks.Callback):
    """Interrupts training before the fourth epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 3:
            raise KeyboardInterrupt


def by_sgd(rule="pcd", **options):
    model = keras_rbm.RBM(3, num_visible=6, seed=0)
    return compiled(model, keras.optimizers.SGD(0.1, **options), rule=rule)


X = np.random.default_rng(0).normal(size=(300, 6)).astype("float32")
HALVES = np.repeat(np.float32([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]), 25, 0)
#: Models whose steps are counted in several ways, or whose prior is chosen by data.
RUNS = {
    "accumulated gradients": lambda: by_sgd(gradient_accumulation_steps=8),
    "chosen prior": lambda: compiled(keras_rbm.CRBM(2, seed=0)),
    "inner steps": lambda: by_sgd(keras_rbm.rules.SDCP(2, 1), momentum=0.5),
    "falling rate": lambda: compiled(keras_rbm.RBM(3, num_visible=6, seed=0)),
    "growing": lambda: compiled(
        keras_rbm.InfiniteRBM(20, seed=0),
        rule=keras_rbm.rules.FrankWolfe(num_samples=200),
        run_eagerly=True,
    ),
}


def resumable(name, folder, *callbacks, **options):
    """Returns a model after five epochs with a backup, and which of them it ran."""
    model = RUNS[name]()
    backup = keras.callbacks.BackupAndRestore(folder, double_checkpoint=True)
    options = {"batch_size": 10, "epochs": 5, "verbose": 0} | options
    data = {"chosen prior": (X, X[:, :2] > 0.0), "growing": (HALVES,)}.get(
        name, (DATA,)
    )
    return model, model.fit(*data, callbacks=[backup, *callbacks], **options).epoch


@pytest.mark.usefixtures("traced")
@pytest.mark.filterwarnings("ignore:Expected units that gain")
@pytest.mark.parametrize("name", quick(RUNS, *[*RUNS][:4]))
def test_a_resumed_run_is_the_same(name, tmp_path):
    """Batches count, neither updates nor gradients."""
    whole, _ = resumable(name, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        resumable(name, tmp_path / "part", Cut())
    part, epochs = resumable(name, tmp_path / "part")
    assert epochs == [3, 4]
    assert_same(whole, part)
    if name == "chosen prior":
        priors = [model.kernel.regularizer.stddev for model in (whole, part)]
        assert priors[0] == priors[1] > 0.55


def test_a_resumed_run_may_have_other_batches(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        resumable("inner steps", tmp_path, Cut(), batch_size=5)
    assert resumable("inner steps", tmp_path, batch_size=7)[1] == [3, 4]


def test_a_backup_interrupted_between_its_two_files(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        resumable("inner steps", tmp_path, Cut())
    record = tmp_path / "training_metadata.json"
    record.write_text(json.dumps({"epoch": 2, "batch": 0}))
    with pytest.warns(UserWarning, match="weights are of epoch 3, its record says 2"):
        resumed, _ = resumable("inner steps", tmp_path)
    assert_same(resumed, resumable("inner steps", tmp_path / "whole")[0])


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
