"""Errors of logistic regression on a model's features, and on others of its size."""

import keras
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import keras_rbm as kr

#: What each kind of features is.
KINDS = {
    "pixels": "none: of the pixels, in which the hidden units' logits are linear",
    "grown": "of the grown model",
    "sparse-grown": "the same, then 12 epochs of CD-1 with a sparsity term",
    "sparse": "of an RBM by the same CD-1 from a random start",
    "network": "of a classifier trained by backpropagation, which sees the labels",
}
#: Numbers of principal components that hidden units are left to see.
COMPONENTS = (20, 40, 80)


def features(rbm, splits):
    """Returns dict of split to E[h | v] and the labels."""
    return {
        split: (rbm.predict(images, batch_size=1000, verbose=0), labels)
        for split, (images, labels) in splits.items()
    }


def test_error(features):
    """Returns the percentage of errors; the penalty is chosen on the validation set."""
    best = None
    for penalty in (0.01, 0.1, 1.0):
        classifier = make_pipeline(
            StandardScaler(), LogisticRegression(C=penalty, max_iter=300)
        )
        classifier.fit(*features["train"])
        accuracy = classifier.score(*features["validation"])
        if best is None or accuracy > best[0]:
            best = accuracy, classifier.score(*features["test"])
    return 100.0 * (1.0 - best[1])


def error_of(kind, splits, grown):
    """Returns the test error of one of `KINDS`, of as many features as `grown` has."""
    if kind == "pixels":
        return test_error(splits)
    if kind == "network":
        return test_error(features(_hidden_layer(splits, grown.hidden_units), splits))
    rbm = grown
    if kind == "sparse":
        rbm = kr.RBM(grown.hidden_units, kernel_regularizer=None, seed=0)
        rbm.adapt(splits["train"][0])
    if kind != "grown":
        _train_sparse(rbm, splits["train"][0])
    return test_error(features(rbm, splits))


def errors_by_components(rbm, splits):
    """Returns dict of a number of components to the error of features that see those.

    A hidden unit's weights w become P w, where P projects on the first principal
    components of the training images. What the unit makes of the mean image stays. The
    key "all" is for the model as it is.
    """
    images = splits["train"][0]
    analysis = PCA(max(COMPONENTS), svd_solver="covariance_eigh").fit(images)
    errors = {}
    for count in COMPONENTS:
        components = analysis.components_[:count]
        seen = kr.RBM.from_config(rbm.get_config())
        seen.build(images.shape)
        seen.set_weights(rbm.get_weights())
        seen.kernel.assign(components.T @ (components @ rbm.kernel.numpy()))
        lost = analysis.mean_ @ (rbm.kernel - seen.kernel).numpy()
        seen.hidden_bias.assign(rbm.hidden_bias + lost)
        errors[str(count)] = test_error(features(seen, splits))
    return errors | {"all": test_error(features(rbm, splits))}


def _train_sparse(rbm, images, epochs=12):
    rule = kr.rules.ContrastiveDivergence(
        1, sparsity_target=0.1, sparsity_cost=1.0, centered=False
    )
    rate = keras.optimizers.schedules.PolynomialDecay(
        0.1, epochs * -(-len(images) // 100), 0.0
    )
    optimizer = keras.optimizers.SGD(rate, momentum=0.5, weight_decay=0.002)
    rbm.compile(optimizer, rule=rule, steps_per_execution=10)
    rbm.fit(images, batch_size=100, epochs=epochs, verbose=2)


def _hidden_layer(splits, units):
    """Returns the hidden layer of a network at its least validation error."""
    keras.utils.set_random_seed(0)
    labels = splits["train"][1]
    hidden = keras.Sequential([keras.layers.Dense(units, activation="sigmoid")])
    network = keras.Sequential([hidden, keras.layers.Dense(int(labels.max()) + 1)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile("adam", loss, metrics=["accuracy"])
    stop = keras.callbacks.EarlyStopping(
        "val_accuracy", patience=5, restore_best_weights=True
    )
    network.fit(
        *splits["train"],
        validation_data=splits["validation"],
        batch_size=100,
        epochs=60,
        callbacks=[stop],
        verbose=2,
    )
    return hidden
