import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_potentials, rbm_like
from sklearn.datasets import load_digits
from steps import gradients_of, step_of

import keras_rbm
from keras_rbm import inference, units

RNG = np.random.default_rng(0)
DATA = RNG.integers(0, 2, (34, 6)).astype("float32")


def compiled(kernel_regularizer="auto", **kwargs):
    options = {"kernel_regularizer": kernel_regularizer, "seed": 0}
    rbm = keras_rbm.RBM(4, num_visible=6, **options)
    rbm.compile(keras.optimizers.SGD(0.1), **kwargs)
    return rbm


def test_likelihood_and_moments_are_enumerations():
    potentials = random_potentials(6, 4)
    truth = Enumerated(potentials)
    rbm = rbm_like(potentials)
    z = rbm.log_partition("exact")
    np.testing.assert_allclose(z.value, truth.log_partition, rtol=1e-6)
    assert z.stderr == 0 and z.lower == z.value == z.upper
    log_p = rbm.log_likelihood(truth.v, log_partition=z)
    np.testing.assert_allclose(log_p, np.log(truth.p_visible), atol=1e-5)
    for same in (float(z.value), "exact"):
        again = rbm.log_likelihood(truth.v, log_partition=same)
        np.testing.assert_allclose(log_p, again, rtol=1e-6)


def test_all_estimates_agree_on_a_small_model():
    rbm = rbm_like(random_potentials(8, 5))
    truth = rbm.log_partition("exact").value
    ais = rbm.log_partition("ais")
    assert abs(ais.value - truth) < 4 * ais.stderr
    assert ais.lower <= truth <= ais.upper
    reverse = rbm.log_partition("reverse_ais", num_chains=400)
    assert abs(reverse.value - truth) < 4 * reverse.stderr + 0.01
    annealing = rbm.anneal()
    some = DATA[:5, [0] * 8]
    below = keras_rbm.inference.annealed_log_likelihood(
        rbm.potentials(),
        some,
        base=annealing.base,
        betas=annealing.betas,
        num_chains=100,
    )
    log_p = rbm.log_likelihood(some, log_partition=truth)
    np.testing.assert_allclose(below, log_p, atol=0.3)


def test_annealing_starts_from_the_base_rate():
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    np.testing.assert_array_equal(rbm._base_natural(rbm.potentials()), np.zeros(6))
    rbm.adapt(DATA)
    rate = DATA.mean(0)
    logit = np.log(rate / (1 - rate))
    np.testing.assert_allclose(rbm.visible_bias, logit, rtol=1e-4)
    np.testing.assert_allclose(rbm._base_natural(rbm.potentials()), logit, rtol=1e-4)


@pytest.mark.parametrize("make", [np.asarray, tf.constant, lambda x: x.tolist()])
def test_adapt_takes_any_array(make):
    rbm = keras_rbm.RBM(4)
    rbm.adapt(make(DATA))
    np.testing.assert_allclose(rbm.base_rate, DATA.mean(0), rtol=1e-6)


@pytest.mark.parametrize("batched", [True, False])
def test_adapt_takes_a_dataset(batched):
    dataset = tf.data.Dataset.from_tensor_slices((DATA, np.arange(34)))
    rbm = keras_rbm.RBM(4)
    rbm.adapt(dataset.batch(10) if batched else dataset)
    np.testing.assert_allclose(rbm.base_rate, DATA.mean(0), rtol=1e-6)


def test_predict_reconstruct_and_call():
    rbm = rbm_like(random_potentials(6, 4))
    hidden = 1 / (1 + np.exp(-(DATA @ rbm.kernel.numpy() + rbm.hidden_bias.numpy())))
    np.testing.assert_allclose(rbm.predict(DATA, verbose=0), hidden, rtol=1e-5)
    np.testing.assert_allclose(rbm(DATA), hidden, rtol=1e-5)
    visible = hidden @ rbm.kernel.numpy().T + rbm.visible_bias.numpy()
    np.testing.assert_allclose(
        rbm.reconstruct(DATA), 1 / (1 + np.exp(-visible)), rtol=1e-4
    )
    assert rbm.compute_output_shape((None, 6)) == (None, 4)


def test_many_rows_are_the_same_as_few():
    rbm = rbm_like(random_potentials(6, 4))
    many = np.tile(DATA, (70, 1))
    for method in (rbm.free_energy, rbm.pseudo_log_likelihood, rbm.reconstruct):
        np.testing.assert_allclose(method(many)[-34:], method(DATA), rtol=1e-5)


def test_sample():
    rbm = rbm_like(random_potentials(6, 4))
    samples = rbm.sample(20, steps=3)
    assert samples.shape == (20, 6) and set(np.unique(samples)) <= {0.0, 1.0}
    assert (rbm.sample(20, steps=3) != samples).numpy().any()
    again = [rbm.sample(20, steps=3, seed=5) for _ in range(2)]
    np.testing.assert_array_equal(*again)
    start = rbm.sample(34, steps=0, initial_visible=DATA)
    np.testing.assert_array_equal(start, DATA)
    gaps = np.where(np.arange(6) < 3, DATA, np.nan)
    completed = rbm.sample(34, steps=20, initial_visible=gaps, seed=1)
    np.testing.assert_array_equal(completed[:, :3], DATA[:, :3])
    assert set(np.unique(completed)) == {0.0, 1.0}
    traced = tf.function(lambda x: rbm.sample(34, steps=20, initial_visible=x, seed=1))
    np.testing.assert_array_equal(traced(gaps.astype("float32")), completed)


def test_as_a_layer_it_fine_tunes(recwarn):
    digits = load_digits()
    x, y = (digits.data / 16).astype("float32")[:600], digits.target[:600]
    rbm = keras_rbm.RBM(32, seed=0)
    rbm.adapt(x)
    rbm.compile(keras.optimizers.SGD(0.1))
    rbm.fit(x, epochs=3, verbose=0)
    before = [weight.numpy() for weight in rbm.weights]
    classifier = keras.Sequential([rbm, keras.layers.Dense(10, activation="softmax")])
    classifier.compile(
        keras.optimizers.Adam(0.01),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    history = classifier.fit(x, y, epochs=8, verbose=0).history
    assert history["accuracy"][-1] > 0.85
    kernel, visible_bias, hidden_bias, *_ = rbm.weights
    assert (kernel.numpy() != before[0]).any()
    assert (hidden_bias.numpy() != before[2]).any()
    np.testing.assert_array_equal(visible_bias, before[1])
    assert not [w for w in recwarn if "radients" in str(w.message)]


def test_layer_file_round_trip(tmp_path):
    inputs = keras.Input((6,))
    outputs = keras.layers.Dense(2)(keras_rbm.RBM(4, seed=0)(inputs))
    model = keras.Model(inputs, outputs)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        model.predict(DATA, verbose=0), again.predict(DATA, verbose=0), rtol=1e-6
    )


def test_compiled_metrics_see_reconstructions():
    rbm = compiled(metrics=["mse"])
    rbm.fit(DATA, validation_data=DATA, verbose=0)
    result = rbm.evaluate(DATA, verbose=0, return_dict=True)
    error = np.mean((rbm.reconstruct(DATA) - DATA) ** 2)
    np.testing.assert_allclose(result["mse"], error, rtol=1e-5)


def test_loss_is_the_pseudo_likelihood():
    rbm = compiled()
    data = np.repeat(DATA[:2], 4000, 0)
    loss = rbm.evaluate(data, batch_size=1000, verbose=0)
    exact = rbm.pseudo_log_likelihood(DATA[:2]).numpy().mean()
    np.testing.assert_allclose(-loss, exact, rtol=0.02)


def test_training_raises_the_exact_likelihood():
    patterns = np.repeat(np.float32([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]), 1200, 0)
    for rule in ("cd", "pcd"):
        rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
        rbm.compile(keras.optimizers.SGD(0.2), rule=rule)
        before = rbm.log_likelihood(patterns, "exact").numpy().mean()
        rbm.fit(patterns, batch_size=20, verbose=0)
        after = rbm.log_likelihood(patterns, "exact").numpy().mean()
        assert before < -4 and after > -2


def test_data_of_many_kinds_gives_the_same_training():
    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return DATA[10 * index : 10 * index + 10]

    def generator():
        for index in range(4):
            yield (DATA[10 * index : 10 * index + 10],)

    dataset = tf.data.Dataset.from_tensor_slices(DATA).batch(10)
    # The prior of a pipeline counts its last batch as full.
    for data in (DATA, DATA.astype("uint8"), tf.constant(DATA), Batches(), dataset):
        rbm = compiled(None)
        rbm.fit(
            data,
            batch_size=10 if hasattr(data, "shape") else None,
            shuffle=False,
            verbose=0,
        )
        expected = expected if data is not DATA else rbm.kernel.numpy()  # noqa: F821
        np.testing.assert_allclose(rbm.kernel, expected, rtol=1e-6)
    rbm = compiled(None)
    rbm.fit(generator(), steps_per_epoch=4, verbose=0)
    np.testing.assert_allclose(rbm.kernel, expected, rtol=1e-6)


def test_shuffling_is_new_each_epoch_and_a_function_of_the_seed():
    seen = []

    class Spy(keras_rbm.rules.ContrastiveDivergence):
        def phases(self, step):
            tf.py_function(lambda v: seen.append(v.numpy()), [step.visible], [])
            return super().phases(step)

    data = np.eye(20, dtype="float32")
    for _ in range(2):
        rbm = keras_rbm.RBM(2, num_visible=20, seed=3)
        rbm.compile(rule=Spy())
        rbm.fit(data, batch_size=10, epochs=2, verbose=0)
    orders = [np.concatenate(seen[i : i + 2]).argmax(1) for i in range(0, 8, 2)]
    assert all(sorted(order) == list(range(20)) for order in orders)
    assert (orders[0] != orders[1]).any()
    np.testing.assert_array_equal(orders[:2], orders[2:])


def test_validation_split_takes_the_last_rows():
    rbm = compiled()
    history = rbm.fit(DATA, validation_split=0.25, verbose=0)
    loss = rbm.evaluate(DATA[25:], verbose=0)
    np.testing.assert_allclose(history.history["val_loss"], loss, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_trains_without_nan(policy):
    keras.config.set_dtype_policy(policy)
    for visible, data in (("bernoulli", DATA), ("gaussian", DATA - 0.5)):
        rbm = keras_rbm.RBM(8, visible=visible, seed=0)
        rbm.adapt(data)
        rbm.compile(
            keras.optimizers.SGD(0.01), rule="pcd", jit_compile=visible == "gaussian"
        )
        history = rbm.fit(data, epochs=20, verbose=0)
        assert np.isfinite(history.history["loss"]).all()
        assert rbm.kernel.dtype == "float32"
        assert rbm.predict(data, verbose=0).dtype == policy.removeprefix("mixed_")
        assert np.isfinite(rbm.free_energy(data)).all()
        # Scores are of the weights, which are float32.
        full = keras_rbm.RBM(8, visible=visible, num_visible=6, dtype="float32")
        full.set_weights(rbm.get_weights())
        for method in ("exact", "ais"):
            z, expected = (m.log_partition(method, precision=9.0) for m in (rbm, full))
            np.testing.assert_array_equal(z.value, expected.value)
        np.testing.assert_array_equal(rbm.free_energy(data), full.free_energy(data))


@pytest.mark.filterwarnings("ignore:Training has diverged")  # it began so
@pytest.mark.parametrize(
    ("weight", "fill"),
    [(50.0, 0.0), (-50.0, 1.0), pytest.param(0.0, 1.0, marks=pytest.mark.slow)],
)
def test_extreme_weights_and_data_stay_finite(weight, fill):
    rbm = keras_rbm.RBM(4, num_visible=9, seed=0)
    data = np.full((20, 9), fill, "float32")
    rbm.adapt(data)
    rbm.kernel.assign(np.full((9, 4), weight, "float32"))
    rbm.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    rbm.fit(data, verbose=0)
    assert all(np.isfinite(weight).all() for weight in rbm.weights)
    assert np.isfinite(rbm.free_energy(data)).all()
    assert np.isfinite(rbm.log_likelihood(data)).all()
    assert np.isfinite(rbm.pseudo_log_likelihood(data)).all()
    potentials, weights = rbm.potentials(), tf.fill([20], 0.05)
    positive = inference.conditional_moments(potentials, tf.constant(data), weights)
    negative = rbm.rule.negative_phase(
        step_of(potentials, data, weights, tf.constant([0, 1]), rbm)
    )
    gradients = gradients_of(rbm, positive, negative).values()
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_gaussian_units_learn_correlated_data():
    mixing = RNG.normal(size=(3, 3))
    data = (RNG.normal(size=(2000, 3)) @ mixing + [5.0, -3.0, 0.0]).astype("float32")
    rbm = keras_rbm.RBM(6, visible=units.Gaussian(standardize=True), seed=0)
    rbm.adapt(data)
    before = rbm.log_likelihood(data, rbm.log_partition("exact")).numpy().mean()
    schedule = keras.optimizers.schedules.CosineDecay(0.02, 600)
    rbm.compile(keras.optimizers.Adam(schedule), rule="pcd")
    rbm.fit(data, epochs=30, batch_size=100, verbose=0)
    after = rbm.log_likelihood(data, rbm.log_partition("exact")).numpy().mean()
    assert after > before + 0.2
    samples = rbm.sample(4000, steps=200, seed=1).numpy()
    np.testing.assert_allclose(samples.mean(0), data.mean(0), atol=0.3)
    np.testing.assert_allclose(np.cov(samples.T), np.cov(data.T), atol=1.0)
