"""What models refuse: the words of the error, and that nothing has changed."""

import copy
import inspect
import pickle

import keras
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from same import refused
from small_models import batches, binary, compiled, fitted

import keras_rbm as kr
from keras_rbm import CRBM, DBM, DBN, RBM, InfiniteRBM, rules, units
from keras_rbm.inference import BeliefPropagation, Exact, MeanField

LAYERS = keras.layers
D, X = binary(20, 6), binary(20, 5, seed=1)
NAN = np.where(np.eye(20, 6) == 1, np.nan, D)
GAPS = np.float32([[0, np.nan, 1]])
LABELS = np.arange(20) % 3
PICTURES = np.random.default_rng(0).normal(size=(20, 3, 3, 1)).astype("float32")
ADAM_OF_TWO = keras.optimizers.Adam(gradient_accumulation_steps=2)


def dataset(*parts):
    return tf.data.Dataset.from_tensors(parts if len(parts) > 1 else parts[0])


def nothing():
    return None


def rbm():
    return compiled(RBM(4, num_visible=6, seed=0), rule="pcd")


def unbuilt():
    return RBM(3)


def latent():
    return compiled(RBM(2, num_visible=3, seed=0, missing="latent"))


def absent():
    return RBM(2, num_visible=3, missing="absent")


def not_a_number():
    model = RBM(3, num_visible=6)
    model.hidden_bias.assign(np.full(3, np.nan))
    return model


def crbm(**options):
    model = CRBM(4, num_visible=6, num_features=5, seed=0, **options)
    return compiled(model, "sgd", rule="maximum_likelihood")


def labels():
    sizes = {"num_visible": 1, "num_features": 5}
    return compiled(CRBM(5, visible=units.Categorical(3), seed=0, **sizes))


def unbuilt_crbm():
    return compiled(CRBM(2, seed=0), "sgd")


def spins():
    return fitted(compiled(CRBM(2, visible="spin", seed=0)), X, 2 * D - 1)


def without_finite_z():
    kinds = {"visible": "gaussian", "hidden": "gaussian"}
    model = CRBM(2, num_visible=2, num_features=5, **kinds)
    model.kernel.assign(1.5 * np.eye(2))
    return model


def on_network(backbone=None, **options):
    layers = [LAYERS.Conv2D(2, 2), LAYERS.Flatten(), LAYERS.Dense(5)]
    backbone = keras.Sequential(layers) if backbone is None else backbone
    return compiled(CRBM(3, backbone=backbone, inference="exact", seed=0, **options))


def fitted_on_network():
    return fitted(on_network(), PICTURES, D[:, :4])


def on_pair():
    """Returns a model whose network has biases for four units, and five features."""
    inputs = keras.Input((3, 3, 1))
    flat = LAYERS.Flatten()(inputs)
    return on_network(keras.Model(inputs, [LAYERS.Dense(n)(flat) for n in (4, 5)]))


def on_dict():
    return on_network(LAYERS.Lambda(lambda x: {"a": x}), num_visible=4)


def of_many_states():
    unit = units.Categorical(3)
    return CRBM(30, visible=unit, num_visible=20, num_features=5)


def dbm(**options):
    return compiled(DBM([2, 2], num_visible=6, seed=0, **options), rule="pcd")


def categories():
    hidden = ["spin", "gaussian"]
    return DBM([2, 2], visible=units.Categorical(3), hidden=hidden, num_visible=6)


def sparse_rule():
    return rules.ContrastiveDivergence(sparsity_target=0.1, sparsity_cost=1.0)


def dbn(*sizes, **options):
    sizes = sizes or (3, 2)
    return DBN([RBM(size, seed=i, **options) for i, size in enumerate(sizes)])


def compiled_dbn():
    return compiled(dbn(), keras.optimizers.SGD(0.1))


def built_dbn():
    return compiled(DBN([RBM(3, num_visible=6, seed=0), RBM(2, seed=1)]))


def grown(capacity=5):
    model = InfiniteRBM(capacity, num_visible=6, seed=0)
    for bias in (0.5, -1.0):
        model.insert_unit(np.ones(6), bias)
    return model


def of_new_units():
    return compiled(InfiniteRBM(4, num_visible=6))


def distribution():
    return RBM(3, num_visible=6, seed=0).distribution("exact")


def of_width(width, **options):
    return RBM(3, num_visible=width, **options)


def each(words, call, values):
    """Returns rows of the table: a call of a model with one value after the other."""
    return [(lambda m, v=v: call(m, v), words) for v in values]


EITHER = TypeError, ValueError
EXPECTED = r"(?s)Expected.*Received"
TF_FUNCTION = "outside of a tf.function"
AS_KERAS = "Expected (kernel|visible_bias)_initializer as Keras takes it"
SIZES = 0, -1, 2.5, True, "4"
SEEDS = "text", 0.5, True, 2**64, D
INITIALIZERS = "text", 3, {1, 2}, {"class_name": "Dense"}
REAL, REAL_FEATURES = (
    of_width(4, **{side: "gaussian"}) for side in ("visible", "hidden")
)
UNBUILT = dict.fromkeys("free_energy pseudo_log_likelihood reconstruct".split(), [D])
UNBUILT |= {"predict": [D], "evaluate": [D], "sample": [3]}
UNBUILT |= {"potentials": [], "log_partition": []}
SHAPES = (None,), (None, None), (None, 2, 3), (None, 0)
ONES = np.ones(6)
BAD_UNITS = (ONES[:5], 0.0), (ONES * np.nan, 0.0), (ONES, [0.0, 1.0]), (ONES, np.inf)
BAD_UNITS += ("a", 0.0), (None, 0.0)
STARTS = [], "input", ["x"], [None], 3, [np.ones(3)]
LABEL_OF_ROW_7 = [np.where(np.arange(20) == 7, v, LABELS) for v in (3.0, -1.0, 0.5)]
#: Of a model and the error's class: calls, and words of the error.
REFUSALS = {
    (rbm, ValueError): [
        (lambda m: m.fit(D, D), "data without targets.*Received: y"),
        (lambda m: m.fit(dataset(D, D[:, 0])), "data without targets"),
        (lambda m: m.fit(dataset(D * 255)), "from 0 to 255"),
        (lambda m: m.fit(batches(D).take(0)), "at least one batch"),
        (lambda m: m.fit(D, sample_weight=np.ones(3)), r"one length.*\[20, 3\]"),
        (lambda m: m.fit(D, sample_weight=-np.ones(20)), "finite sample_weight ≥ 0"),
        (lambda m: m.fit(dataset(D, (), -np.ones(20))), "finite sample_weight ≥ 0"),
        (lambda m: m.fit(D, class_weight={0: 1.0}), "class_weight"),
        (lambda m: m.fit(D, steps_per_epoch=-1), "steps_per_epoch ≥ 1"),
        (lambda m: m.fit(D, validation_steps=0), "validation_steps ≥ 1"),
        (lambda m: m.fit(D, batch_size=0), "batch_size ≥ 1. Received: batch_size=0"),
        (lambda m: m.fit((D, D[:, 0])), "x as one array.*as x and y"),
        (lambda m: m.fit(NAN), "missing='latent'"),
        (lambda m: m.sample(0), "num_samples ≥ 1. Received: num_samples=0"),
        (lambda m: m.sample(2, steps=-1), "steps ≥ 0. Received: steps=-1"),
        (lambda m: m.sample(3, initial_visible=D), r"of shape \(3, 6\).*\(20, 6\)"),
        (lambda m: m.sample(2, seed="a"), "seed to be an int.*seed='a'"),
        (lambda m: m.log_partition("magic"), "one of .'exact', .*Received: 'magic'"),
        (lambda m: m.log_partition(num_chains=1), "num_chains ≥ 2"),
        (lambda m: m.log_partition(num_chains=2**40), r"< 2\*\*31"),
        (lambda m: m.log_likelihood(D, np.nan), "one finite number.*nan"),
        (
            lambda m: m.log_likelihood(D, [1.0, 2.0]),
            r"or one finite number.*\[1.0, 2.0\]",
        ),
        (lambda m: tf.function(m.log_likelihood)(D, "exact"), TF_FUNCTION),
        (lambda m: m.compile(loss="mse"), "no loss.*Pass rule="),
        (lambda m: m.compile(learning_rate=0.1), r"optimizers.Adam\(0.1\)"),
        (lambda m: m.compile("sgd", learning_rate=0.1), r"optimizers.SGD\(0.1\)"),
        (lambda m: m.compile(rule="nce"), "Expected a learning rule.*'nce'"),
        (lambda m: m.compile("sgd", rule="max_margin"), "Use a CRBM"),
        (lambda m: m.compile(rule=rbm().rule), "new rule object for each model"),
        (lambda m: m(D[:, :3]), r"have value 6.*\(20, 3\)"),
        (lambda m: m.predict(dataset(D[:, :3])), r"x of shape \(examples, 6\)"),
        (lambda m: m.adapt(dataset(D, (), D[:, 0]), D[:, 0]), "only with arrays"),
        (lambda m: m.adapt(D, D[:5, 0]), "of one length"),
        (lambda m: m.adapt(D, -D[:, 0]), "sample_weight ≥ 0"),
        (lambda m: m.adapt(D, 0.0 * D[:, 0]), "a weight above 0"),
        (lambda m: m.distribution("exact", steps=-1), "steps"),
    ],
    # Each ended in an error of Keras or TensorFlow, trained on, or hung.
    (rbm, EITHER): [
        (lambda m: m.fit(D, epochs=2**40), EXPECTED),
        (lambda m: m.fit(D, initial_epoch=-1), EXPECTED),
        (lambda m: m.fit(D, shuffle=D), EXPECTED),
        (lambda m: m.fit(tf.sparse.from_dense(D[0])), EXPECTED),
        (lambda m: m.fit(tf.ragged.constant([[0.0], [0.0, 1.0]])), EXPECTED),
        (lambda m: m.evaluate(dataset(D), D), EXPECTED),
        (lambda m: m.predict(batches(D).take(0)), EXPECTED),
        (lambda m: m.predict_on_batch(iter([D])), EXPECTED),
        (lambda m: m.free_energy(dataset({"x": D})), EXPECTED),
        (lambda m: m.log_likelihood(D, {"value": 1.0}), EXPECTED),
        (lambda m: m.sample(2, steps=tf.constant([1, 2])), EXPECTED),
        (lambda m: m.sample(2, method=D), EXPECTED),
        (lambda m: m.compile(metrics="mse"), EXPECTED),
        (lambda m: m.compile("steepest"), EXPECTED),
        (lambda m: m.compile(run_eagerly=D), EXPECTED),
        (lambda m: m.compile(jit_compile="yes"), EXPECTED),
        (lambda m: m.export(""), EXPECTED),
        (lambda m: m.load_weights("text"), EXPECTED),
        (lambda m: m.build(6), EXPECTED),
    ],
    (rbm, TypeError): [
        (lambda m: m.distribution(3.0), "LogPartition"),
        (lambda m: m.export("no", input_signature=[]), "input_signature"),
    ],
    (rbm, NotImplementedError): [(lambda m: m.quantize("int8"), "quantize")],
    (rbm, AttributeError): [
        (lambda m: m.score, "RBM. Received: 'score'. Here it is log_likelihood"),
        (lambda m: m.transform, "it is predict"),
        (lambda m: m.complete, "it is impute or sample"),
        (lambda m: m.generate, "it is sample"),
        (lambda m: m.predict_proba, "it is marginals or predict"),
        (lambda m: m.decode, "'RBM' object has no attribute 'decode'"),
    ],
    (crbm, AttributeError): [
        (lambda m: m.marginals, "CRBM. Received: 'marginals'. Here it is predict"),
        (lambda m: m.predict_proba, "it is predict"),
    ],
    (dbm, AttributeError): [(lambda m: m.score, "it is log_likelihood_bound")],
    (unbuilt, ValueError): [
        *(
            (
                lambda m, n=n: getattr(m, n)(*UNBUILT[n]),
                rf"model in {n}\(\).*num_visible=",
            )
            for n in UNBUILT
        ),
        (lambda m: m.export("no"), "built model in export"),
        (lambda m: m.distribution(), "built"),
        *each("input of shape", lambda m, shape: m.build(shape), SHAPES),
    ],
    (nothing, ValueError): [
        *each("int hidden_units ≥ 1. Received", lambda _, n: RBM(n), [*SIZES, None]),
        *each("int num_visible ≥ 1. Received", lambda _, n: of_width(n), SIZES),
        *each("max_hidden_units ≥ 1", lambda _, n: InfiniteRBM(n), [*SIZES, None]),
        *each("Expected seed as a 64-bit int", lambda _, s: RBM(3, seed=s), SEEDS),
        *each("Expected seed as a 64-bit int", lambda _, s: DBN([3], seed=s), SEEDS),
        *each(AS_KERAS, lambda _, v: RBM(3, kernel_initializer=v), INITIALIZERS),
        *each(AS_KERAS, lambda _, v: RBM(3, visible_bias_initializer=v), INITIALIZERS),
        *each("Expected starts", lambda _, s: MeanField(starts=s), STARTS),
        (lambda _: RBM(3, visible="softmax"), "Expected a unit type.*'softmax'"),
        (lambda _: RBM(3, dtype="float64"), "float32 variables.*'float64'"),
        (lambda _: RBM(2, missing="gone"), "Received: missing='gone'"),
        (lambda _: RBM(2, input_dim=6), r"input_dim=6. Call build\(\(None, columns"),
        (lambda _: CRBM(2, input_shape=(6,)), r"no input_shape. Received.*\(6,\)"),
        (lambda _: DBN([2], input_shape=(6,)), "no input_shape"),
        (lambda _: CRBM(4, inference="magic"), "Received: 'magic'"),
        (lambda _: CRBM(4, num_features=0), "Received: num_features=0"),
        (lambda _: CRBM(4).build((None, 5)), "num_visible="),
        (lambda _: CRBM(4, num_visible=6).build((None, 2, 2)), "Flatten"),
        (
            lambda _: CRBM(2, visible="spin", inference="sum_product"),
            "'mean_field' for",
        ),
        (lambda _: CRBM(2, visible="rectified"), "hidden"),
        (lambda _: CRBM(8).compile("adam", "cd"), "which is a learning rule"),
        (lambda _: CRBM(8).compile("adam", rules.SDCP()), "which is a learning rule"),
        (lambda _: DBM([3]), "at least two"),
        (lambda _: DBM(3), "at least two"),
        (lambda _: DBM([3, 0]), "int hidden_units ≥ 1"),
        (lambda _: dbm(inference=BeliefPropagation("max_product")), "yields marginals"),
        (lambda _: dbm(inference=MeanField(starts=["input"])), "starts at the input"),
        (lambda _: dbm(hidden=["spin"]), "one hidden, or a list of 2"),
        (lambda _: DBN([REAL_FEATURES]).to_classifier(2), "binary hidden units"),
        (lambda _: DBN([]), "at least one RBM"),
        (lambda _: DBN([RBM(3)] * 2), "each only once"),
        (lambda _: DBN([RBM(3), of_width(4)]), "3 visible units"),
        (lambda _: dbn(visible="gaussian"), r"hidden units below, Bernoulli\(\)"),
        (lambda _: InfiniteRBM(4, num_visible=6).to_rbm(), "a model with hidden units"),
        (lambda _: InfiniteRBM(4).hidden_units, "Expected a built model"),
        (lambda _: InfiniteRBM(4).compile(ADAM_OF_TWO), "only counts the steps"),
        (lambda _: grown(1), "room for a unit.*from_rbm"),
        (lambda _: InfiniteRBM.from_rbm(RBM(3), 5), "built model.*Received"),
        (lambda _: InfiniteRBM.from_rbm(of_width(4), 2), "_units ≥ 3.*Received"),
        (lambda _: InfiniteRBM.from_rbm(of_width(4), 0), "_units ≥ 1.*Received"),
        (lambda _: InfiniteRBM.from_rbm(REAL, 5), "binary units.*Received"),
        (lambda _: InfiniteRBM.from_rbm(REAL_FEATURES, 5), "binary units.*Received"),
    ],
    (nothing, TypeError): [
        (lambda _: CRBM(3, backbone=lambda x: x), "backbone"),
        (lambda _: DBN([RBM(3), LAYERS.Dense(3)]), "list of RBM"),
        (lambda _: DBN(RBM(3)), "list of RBM"),
        (lambda _: InfiniteRBM(5, visible="spin"), "visible"),
        (lambda _: InfiniteRBM(5, hidden="spin"), "hidden"),
        (lambda _: InfiniteRBM.from_rbm(None, 5), "Expected an RBM or InfiniteRBM"),
    ],
    (latent, ValueError): [
        (lambda m: m.fit(np.float32([[0, np.nan, 1]] * 2)), r"columns \[1\]"),
        (lambda m: m.fit(np.float32([[0, np.inf, 1], [1, 0, 0]])), "infinite"),
        (lambda m: m.fit(np.float32([[0, 2, 1], [1, np.nan, 0]])), "row 0, column 1"),
        (lambda m: m.adapt(GAPS), r"columns \[1\]"),
        (lambda m: m.free_energy(GAPS), "log_likelihood"),
        (lambda m: m.pseudo_log_likelihood(GAPS), "log_likelihood"),
        (lambda m: m.log_partition("nope", observed=GAPS), "method='nope'"),
    ],
    (absent, ValueError): [
        (lambda m: m.compile(rule="pcd"), "without absent units"),
        (lambda m: m.pseudo_log_likelihood(GAPS), "log_likelihood"),
    ],
    (not_a_number, ValueError): [
        (lambda m: m.log_partition("exact"), "NaN .* hidden_bias"),
        (lambda m: m.log_likelihood(D), "NaN .* hidden_bias"),
    ],
    (crbm, ValueError): [
        (lambda m: m.fit(X), "fit\\(x, y\\)"),
        (lambda m: m.fit(X, D + 0.5), "y, states of Bernoulli units"),
        (lambda m: m.fit(X, NAN), "finite y"),
        (lambda m: m.fit(np.where(X > 2, X, np.inf), D), "finite x"),
        (lambda m: m.fit(X[:, :3], D), r"x of shape \(examples, 5\)"),
        (lambda m: m.fit(X, D[:, :3]), r"y of shape \(examples, 6\)"),
        (lambda m: m.fit(X[:5], D), "one length"),
        (lambda m: m.fit(X, D, validation_split=1.0), "validation_split=1.0"),
        (lambda m: m.fit(X, D, validation_split=0.99), "on either side.*0.99 of 20"),
        (lambda m: m.fit(X, D, validation_data=(X, D[:, :3])), "y of shape"),
        (lambda m: m.fit(X, D, validation_data=dataset(X, 2 * D)), "y, states"),
        (lambda m: m.fit(X, D, sample_weight=D), "each example"),
        (lambda m: m.evaluate(X[:, :3], D), r"x of shape \(examples, 5\)"),
        (lambda m: m.evaluate(X), "fit\\(x, y\\)"),
        (lambda m: m.evaluate(dataset(X, D[:, :3])), "y of shape"),
        (lambda m: m.predict(np.full((3, 5), np.nan)), "finite x"),
        (lambda m: m.predict_map(X[:, :3]), r"x of shape \(examples, 5\)"),
        (lambda m: m.free_energy(X, D[:4]), "equal length"),
        (lambda m: m.log_partition(X, "magic"), "Received: method='magic'"),
        (lambda m: m.log_partition(X, "tempering"), "Received: method='tempering'"),
        (lambda m: m.log_likelihood(X, D, m.log_partition(X[:1])), "the same x"),
        (lambda m: m.log_likelihood(X, D + 1, "ais"), "v, states of Bernoulli units"),
        (
            lambda m: tf.function(lambda x: m.log_likelihood(x, D, "ais"))(X),
            TF_FUNCTION,
        ),
        (lambda m: m.sample(X, steps=-1), "Received: steps=-1"),
        (lambda m: m.potentials(), "features=None"),
    ],
    (crbm, TypeError): [
        (lambda m: m.fit(X.astype(str), D), "dtype <U"),
        (lambda m: m.fit(batches(X), D), "x as an array with y"),
    ],
    (labels, ValueError): [
        *each("row 7", lambda m, y: m.fit(X, y), LABEL_OF_ROW_7),
        (lambda m: m.fit(X, LABELS + 1), "units: whole numbers from 0 to 2"),
        (lambda m: m.compile(rule="max_margin"), "finds states for MaxMargin"),
    ],
    # The error names the cure for classes, not the states of units.
    (unbuilt_crbm, ValueError): [
        *each(
            "keras.utils.to_categorical",
            lambda m, y: m.fit(np.ones((4, 3)), y),
            [np.arange(4), np.arange(4)[:, np.newaxis], np.array(list("abca"))],
        ),
        (lambda m: m.fit(X, D, validation_data=(X[:, :3], D)), "as wide as"),
        (lambda m: m.fit(scipy.sparse.csr_array(X), D[:5]), "one length"),
    ],
    (spins, ValueError): [
        (lambda m: setattr(m, "inference", "belief_propagation"), "='mean_field' for"),
        (lambda m: m.log_partition(X, "bethe"), "binary"),
    ],
    # Mean field and Gibbs sampling ran away, to NaN or 1e15, without a word.
    (without_finite_z, ValueError): [
        (lambda m: m.predict(X, verbose=0), "positive definite"),
        (lambda m: m.predict_map(X), "positive definite"),
        (lambda m: m.sample(X, steps=5), "positive definite"),
        (lambda m: m.log_partition(X, "mean_field"), "positive definite"),
    ],
    (nothing, (ValueError, TypeError)): [
        (lambda _: on_network(LAYERS.Conv2D(2, 2)).fit(PICTURES, D), "Flatten"),
        (lambda _: on_pair().fit(PICTURES, X), "4 numbers|5 numbers"),
        (lambda _: on_dict().build(PICTURES.shape), "pair"),
        (lambda _: on_network(num_features=5), "num_features"),
        (lambda _: Exact()(of_many_states().potentials(X)), "states"),
    ],
    (fitted_on_network, ValueError): [
        (lambda m: m.predict(PICTURES[:, :2], verbose=0), "shape"),
        (lambda m: m.fit(PICTURES[:, :2], D[:, :4]), "shape"),
        (lambda m: m.fit(PICTURES, np.zeros((20, 3, 3))), "Expected y of 4 numbers"),
    ],
    (fitted_on_network, TypeError): [
        (lambda m: m.fit({"a": PICTURES, "b": PICTURES}, D), "rbm.layers.Marginals"),
        (lambda m: m.fit(batches({"a": PICTURES}, D)), "keras_rbm.layers.Marginals"),
    ],
    (dbm, ValueError): [
        (lambda m: m.log_likelihood_bound(X), r"shape \(examples, 6\)"),
        (lambda m: m.pretrain(X, verbose=0), r"shape \(examples, 6\)"),
        (lambda m: m.pretrain(D, epochs=[0, 1]), "int epochs ≥ 1"),
        (lambda m: m.build((None, 5)), "width 6"),
        (lambda m: m.to_classifier(2, dropout=2), "Received: rate=2"),
        (lambda m: m.compile(rule="maximum_likelihood"), "DBM"),
        (lambda m: m.compile(rule="max_margin"), "input"),
        (lambda m: m.compile(rule=sparse_rule()), "deep model"),
    ],
    (categories, ValueError): [
        (lambda m: m.pretrain(D), "binary units in pretrain"),
        (lambda m: m.to_classifier(3), "binary units in to_classifier"),
        (lambda m: m.reconstruct(D + 2), "units: whole numbers from 0 to 2"),
    ],
    (dbn, ValueError): [
        (lambda m: m.predict(D), "built model in predict"),
        (lambda m: m.sample(2), "built model in sample"),
        (lambda m: m.export("no"), "built model in export"),
        (lambda m: m.to_classifier(2), "in to_classifier"),
        (lambda m: m.compile(rule=["cd"]), "one rule"),
        (lambda m: m.compile(rule=["cd", "max_margin"]), "with input"),
    ],
    (compiled_dbn, ValueError): [
        (lambda m: m.fit(D, epochs=[1]), "a list of 2"),
        (lambda m: m.fit(D, epochs=1.5), "int epochs"),
        (lambda m: m.fit(D, epochs=[0, 1]), "in fit"),
        (lambda m: m.fit(D, batch_size=0), "batch_size ≥ 1"),
        (lambda m: m.fit(D * 3), "x, states of Ber"),
        (lambda m: m.fit(D, validation_data=D * 3), "x, states of Ber"),
        (lambda m: m.evaluate(D), "in evaluate"),
    ],
    (compiled_dbn, TypeError): [
        (lambda m: m.fit(iter([D])), "from their beginning"),
        (lambda m: m.fit(D, callbacks=lambda i: [i]), "function of the RBM's index"),
        (lambda m: m.fit(D, initial_epoch=1), r"initial_epoch.*epochs=\[0, 20\]"),
    ],
    (built_dbn, ValueError): [
        (lambda m: m.evaluate(3 * D), "x, states of Ber"),
        (lambda m: m.to_classifier(1), "num_classes ≥ 2"),
        (lambda m: m.log_likelihood_bound(X), r"shape \(examples, 6\)"),
        (
            lambda m: m.log_likelihood_bound(D, [1.0, 2.0]),
            "LogPartition or one finite number",
        ),
        (lambda m: m.sample(2, method="tempering", betas=2**40), "betas that increase"),
    ],
    (grown, EITHER): [
        *each(EXPECTED, lambda m, unit: m.insert_unit(*unit), BAD_UNITS),
    ],
    (of_new_units, ValueError): [
        *each("Expected", lambda m, x: m.fit(x), [X, D * 3, D * np.nan, D[0]]),
    ],
    (distribution, ValueError): [
        (lambda d: d.log_prob(-3.0 * D), "states"),
        (lambda d: d.log_prob(X), "shape"),
    ],
}
CASES = [
    (make, error, *row) for (make, error), rows in REFUSALS.items() for row in rows
]


@pytest.mark.parametrize(("make", "error", "call", "words"), CASES)
def test_refused(make, error, call, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = make()
    models = [model] if isinstance(model, keras.Model) else []
    rule = getattr(model, "rule", None)
    with refused(words, *models, error=error):
        call(model)
    assert getattr(model, "rule", None) is rule
    assert not any(tmp_path.iterdir())


BAD_DATA = [
    (D[0], r"x of shape \(examples, 6\).*x.shape=\(6,\)"),
    (D[:, :5], r"x of shape \(examples, 6\).*x.shape=\(20, 5\)"),
    (D.reshape(20, 2, 3), r"x of shape \(examples, 6\).*\(20, 2, 3\)"),
    (NAN, "finite x.*NaN or infinite"),
    (np.full((3, 6), np.inf), "finite x.*NaN or infinite"),
    (D * 255, "x, states of Bernoulli units.*from 0 to 255"),
    (-D, "x, states of Bernoulli units.*from -1 to 0"),
    (D[:0], "at least one example"),
]
CALLS = "fit evaluate free_energy reconstruct pseudo_log_likelihood log_likelihood"


@pytest.mark.parametrize(("data", "words"), BAD_DATA, ids=range(len(BAD_DATA)))
def test_data(data, words):
    model = rbm()
    for call in CALLS.split():
        with refused(words, model):
            getattr(model, call)(data)
    with refused(words, model):
        model.fit(D, validation_data=data)
    with refused("Expected .*data", model):
        model.adapt(data)


@pytest.mark.parametrize("data", ["text", {"a": D}, 3, None, D.astype(complex)])
def test_things_that_are_no_data(data):
    model = rbm()
    for call in ("fit", "predict", "reconstruct", "free_energy"):
        with refused("Expected", model, error=EITHER):
            getattr(model, call)(data)


def test_names_of_other_libraries_are_no_attributes():
    """They hide no error of a property, and no copy asks for them."""

    class WithProperty(RBM):
        @property
        def broken(self):
            return self.what_is_not_there

    model = WithProperty(3, num_visible=6)
    with refused("what_is_not_there", error=AttributeError):
        _ = model.broken
    plain = of_width(6)
    for copied in (copy.copy(plain), pickle.loads(pickle.dumps(plain))):
        assert not hasattr(copied, "score")
        np.testing.assert_array_equal(copied.kernel, plain.kernel)


def test_one_rule_for_two_unbuilt_models():
    """Compiled before either was built, the second used to move the first's chains."""
    rule = rules.PersistentContrastiveDivergence()
    compiled(RBM(3), rule=rule)
    with refused("new rule object for each model"):
        RBM(3).compile(rule=rule)


def test_a_quantized_network_warns():
    network = keras.Sequential([keras.Input((6,)), rbm(), LAYERS.Dense(2)])
    with pytest.warns(UserWarning, match="quantize"):
        network.quantize("int8")


def test_a_subclass_has_arguments_of_its_own():
    class Named(RBM):
        def __init__(self, width, seed):
            super().__init__(width, seed=seed)

    assert Named(3, 4).seed == 4
    assert [*inspect.signature(RBM).parameters][:2] == ["hidden_units", "visible"]
    assert "rule" in inspect.signature(RBM.compile).parameters
    with refused("missing 1 required positional argument", error=TypeError):
        Named(3)


def test_a_growing_layer_without_units_says_what_to_do(traced):
    model = keras.Sequential([InfiniteRBM(4, num_visible=6), LAYERS.Dense(1)])
    model.compile("adam", "mse")
    with refused(r"none yet. Call fit\(\) first.*to_rbm"):
        model.fit(D, D[:, :1], verbose=0)


def test_mean_without_one_number_a_unit():
    model = RBM(3, visible=units.Categorical(2), num_visible=5, seed=0)
    with refused(None, error=NotImplementedError):
        model.distribution("exact").mean()
    with refused("starts at the input"):
        rbm().compile(rule=rules.MaximumLikelihood(MeanField(starts=["input"])))
    assert kr.RBM(3, seed=np.int64(2)).seed == 2
