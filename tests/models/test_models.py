"""Each model with its rules, its defaults, and its files."""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states
from model_test_case import run_file_test, run_model_test, run_rule_test
from small_models import binary, compiled, fitted, quick, randomized, reloaded, slow

from keras_rbm import CRBM, DBM, DBN, RBM, InfiniteRBM, inference, rules, units

RNG = np.random.default_rng(0)
BINARY, NARROW = binary(34, 6), binary(34, 5)
REAL = RNG.normal(1.0, 0.5, (34, 5)).astype("float32")


def crbm(infer="mean_field", scale=0.1, **options):
    sizes = {"num_visible": 6, "num_features": 5, "seed": 0}
    return randomized(CRBM(4, inference=infer, **sizes, **options), scale)


def gaussian(hidden):
    visible = units.Gaussian(standardize=True)
    rbm = RBM(4, visible=visible, hidden=hidden, seed=1)
    rbm.adapt(REAL)
    return rbm


class ExactGradient(rules.LearningRule):
    """The exact negative phase of six binary units: draws nothing."""

    def negative_phase(self, step):
        states = tf.constant(binary_states(6), tf.float32)
        p = tf.nn.softmax(-step.potentials.free_energy(states))
        total = tf.distribute.get_strategy().num_replicas_in_sync
        return inference.conditional_moments(step.potentials, states, p / total)


class ExactFast(rules.FastPersistentContrastiveDivergence):
    """Moves its chains, and learns by the exact negative phase."""

    def negative_phase(self, step):
        super().negative_phase(step)
        return ExactGradient.negative_phase(self, step)


#: Rules of an RBM of binary units.
RULES = {
    "cd": rules.ContrastiveDivergence,
    "sparse-cd": lambda: rules.ContrastiveDivergence(
        3, sparsity_target=0.1, sparsity_cost=0.1
    ),
    "pcd": lambda: rules.PersistentContrastiveDivergence(2, num_chains=7),
    "centered-cd": lambda: rules.ContrastiveDivergence(centered=True),
    "centered-sdcp": lambda: rules.SDCP(2, 1, centered=True),
    "fpcd": lambda: rules.FastPersistentContrastiveDivergence(num_chains=7),
    "maximum likelihood": lambda: rules.MaximumLikelihood("exact"),
    "tempering": lambda: rules.ParallelTempering(
        2, num_chains=7, num_replicas=4, num_ladders=3
    ),
}
#: Rules of a conditional model, by inference, and whether they draw.
CONDITIONAL = {
    "MLE-MF": ("mean_field", rules.MaximumLikelihood, False),
    "MLE-BP": ("sum_product", rules.MaximumLikelihood, False),
    "MLE-exact": ("exact", rules.MaximumLikelihood, False),
    "MSSVM": ("mixed_product", rules.MaxMargin, False),
    "LSSVM": ("max_product", rules.MaxMargin, False),
    "CD": ("mean_field", lambda: rules.ContrastiveDivergence(2), True),
    "CD-PercLoss": (
        "mean_field",
        lambda: rules.ContrastiveDivergencePerceptron(3),
        True,
    ),
    "SDCP": ("mean_field", lambda: rules.SDCP(2, 1), True),
    "marginal loss": ("exact", rules.MarginalLoss, False),
}


def conditional(infer):
    # The prior would count 40 rows in the batches of a dataset, 34 in arrays.
    return lambda: crbm(infer, kernel_regularizer=None)


#: What is run, and a model, a rule, data, and whether the rule draws.
BATTERY = {
    name: (run_rule_test, lambda: RBM(4, num_visible=6, seed=1), rule, BINARY)
    for name, rule in RULES.items()
}
BATTERY |= {
    name: (run_rule_test, conditional(infer), rule, NARROW, BINARY, draws)
    for name, (infer, rule, draws) in CONDITIONAL.items()
    if name != "MLE-MF"
}
BATTERY |= {
    f"gaussian, {hidden}": (
        run_rule_test,
        lambda hidden=hidden: gaussian(hidden),
        rules.PersistentContrastiveDivergence,
        REAL,
    )
    for hidden in ("bernoulli", "gaussian")
}
BATTERY["two hidden layers"] = (
    run_model_test,
    lambda: DBM([4, 3], num_visible=5, kernel_regularizer=None, seed=1),
    lambda: rules.PersistentContrastiveDivergence(2, 7, centered=True),
    NARROW,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", BATTERY)
def test_model_with_rule(name):
    run, *arguments = BATTERY[name]
    run(*arguments)


#: Models and rules that draw nothing, with data.
EXACT = {
    f"centered={centered}": (
        lambda: RBM(4, num_visible=6, kernel_regularizer=None, seed=1),
        lambda centered=centered: ExactGradient(centered=centered),
        BINARY,
    )
    for centered in (False, True)
}
EXACT["fast"] = EXACT["centered=True"][0], lambda: ExactFast(1, 7, 0.3, 0.8), BINARY
EXACT["MLE-MF"] = conditional("mean_field"), rules.MaximumLikelihood, NARROW, BINARY


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_model_with_a_rule_that_draws_nothing(name):
    own = {cls.__name__: cls for cls in (ExactGradient, ExactFast)}
    with keras.saving.custom_object_scope(own):
        run_model_test(*EXACT[name], stochastic=False, weights_everywhere=True)


PATTERNS = RNG.integers(0, 2, (2, 8))
DATA = np.abs(PATTERNS[RNG.integers(0, 2, 200)] - (RNG.random((200, 8)) < 0.1))
DATA = DATA.astype("float32")
MODELS = {
    "RBM": lambda **k: RBM(6, **k),
    "CRBM": lambda **k: CRBM(6, **k),
    "CRBM of counts": lambda **k: CRBM(6, visible=units.Binomial(2), **k),
    "InfiniteRBM": lambda **k: InfiniteRBM(6, **k),
    "DBM": lambda **k: DBM([6, 4], **k),
    "DBN": lambda **k: DBN([6, 4], **k),
}


def pairs(name):
    return [DATA, DATA] if "CRBM" in name else [DATA]


def likelihood(model):
    if isinstance(model, CRBM):
        return model.log_likelihood(DATA, DATA, "exact")
    if isinstance(model, (DBM, DBN)):
        return model.log_likelihood_bound(DATA, "exact")
    return model.log_likelihood(DATA, "exact")


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("name", quick(MODELS, "RBM", "CRBM"))  # others: 5 s each
def test_model_with_its_defaults(name, tmp_path):
    """Compiled without arguments, a model learns, scores, samples, and is a file."""
    model = compiled(MODELS[name](seed=0))
    history = model.fit(*pairs(name), batch_size=50, epochs=5, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    scores = likelihood(model)
    assert np.mean(scores) > -8 * np.log(3 if name == "CRBM of counts" else 2)
    first = DATA[:5] if "CRBM" in name else 5
    samples = model.sample(first, steps=20, seed=1)
    assert samples.shape == (5, 8)
    assert set(np.unique(samples)) <= {0.0, 1.0, 2.0}
    loaded = reloaded(model, tmp_path)
    np.testing.assert_array_equal(likelihood(loaded), scores)
    np.testing.assert_array_equal(loaded.sample(first, steps=20, seed=1), samples)
    predictions = [each.predict(DATA, verbose=0) for each in (loaded, model)]
    np.testing.assert_array_equal(*predictions)


LABELED = units.Joined([("bernoulli", 5), (units.Categorical(2), 1)])
FILES = {
    "RBM": (lambda: RBM(4, seed=1), rules.PersistentContrastiveDivergence),
    "RBM without a seed": (lambda: RBM(4), rules.PersistentContrastiveDivergence),
    "DBN": (
        lambda: DBN([RBM(5, seed=0), RBM(4, seed=1)]),
        lambda: rules.PersistentContrastiveDivergence(num_chains=7),
    ),
    "DBM": (
        lambda: DBM([4, 3, 2], inference="belief_propagation", seed=1),
        rules.PersistentContrastiveDivergence,
    ),
    "label": (
        lambda: RBM(4, visible=LABELED, seed=1),
        lambda: rules.HybridDiscriminative(0.1, "pcd"),
    ),
    "growing": (
        lambda: InfiniteRBM(8, seed=0),
        lambda: rules.FrankWolfe(num_samples=50),
    ),
}


@pytest.mark.filterwarnings("ignore:Expected units that gain")
@pytest.mark.parametrize("name", quick(FILES, "RBM without a seed", "DBN", "label"))
def test_a_file_goes_on_as_the_model(name, tmp_path):
    """The random state of the file counts, not that of the new process."""
    make, rule = FILES[name]
    model = make()
    optimizer = () if name == "growing" else (keras.optimizers.SGD(0.1),)
    run_file_test(compiled(model, *optimizer, rule=rule()), BINARY, folder=tmp_path)
    bare = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert not any(part.compiled for part in getattr(bare, "rbms", [bare]))


@pytest.mark.parametrize("name", ["RBM", "CRBM", "DBM"])
def test_half_precision(name):
    """Variables stay float32, and outputs are near those of full precision.

    Scores are of the weights, so they are the same.
    """
    model = compiled(MODELS[name](seed=0, dtype="mixed_bfloat16"), metrics=["mse"])
    history = model.fit(*pairs(name), batch_size=200, verbose=0).history
    assert np.isfinite(history["loss"] + history["mse"]).all()
    assert model.kernel.dtype == "float32"
    whole = type(model).from_config(model.get_config() | {"dtype": "float32"})
    whole.set_weights(model.get_weights())
    if name == "RBM":
        energies = [each.free_energy(DATA) for each in (model, whole)]
        np.testing.assert_array_equal(*energies)
    method = "predict_on_batch" if name == "CRBM" else "reconstruct"
    found = [np.float32(getattr(each, method)(DATA)) for each in (model, whole)]
    np.testing.assert_allclose(*found, atol=0.05)


@pytest.mark.parametrize("deep", [False, True], ids=["RBM", "DBN"])
def test_nothing_keeps_a_fitted_model(deep):
    """`tf.data` keeps the Python functions it calls, and all they refer to."""
    model = compiled(RBM(4, seed=1))
    if deep:
        model = compiled(DBN([model, RBM(3, seed=1)]))
    fitted(model, BINARY)
    alive = weakref.ref(model.rbms[1] if deep else model)
    del model
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    ("infer", "rule"),
    [
        (None, "cd"),
        ("exact", "maximum_likelihood"),
        slow("mixed_product", "max_margin"),
        slow("exact", "cd"),
        slow("mixed_product", rules.MaximumLikelihood("exact")),
    ],
)
def test_metrics_are_of_the_model_before_the_step(infer, rule):
    """`None` for inference is a model of the data alone."""
    model = crbm(infer, 1.0) if infer else randomized(RBM(4, num_visible=6, seed=0))
    data = [NARROW, BINARY] if infer else [BINARY]

    def error():
        predict = model.predict_on_batch if infer else model.reconstruct
        return np.abs(predict(data[0]) - BINARY).mean()

    compiled(model, keras.optimizers.SGD(2.0), rule=rule, metrics=["mae"])
    if not infer:
        model.adapt(BINARY)
    before = error()
    logged = model.fit(*data, batch_size=34, verbose=0).history["mae"][0]
    assert logged == pytest.approx(before, rel=1e-5)
    after = error()
    assert model.evaluate(*data, verbose=0)[1] == pytest.approx(after, rel=1e-5)
    assert abs(after - logged) > 1e-3
