"""Training RBMs one after the other, each on the features of the last."""

import itertools
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_rbm._checks import check_counts
from keras_rbm.models.data.batches import TrainingData
from keras_rbm.models.data.rows import is_array, unpack
from keras_rbm.models.deep.features import Features
from keras_rbm.models.training.defaults import new_optimizer, new_rule, optimizer_for
from keras_rbm.models.training.progress import EpochKey, extended


def compile_each(
    rbms: Sequence[Any], optimizer: Any, rule: Any, options: dict[str, Any]
) -> None:
    """Compiles RBMs with copies of an optimizer and a rule, or one each from lists."""
    optimizers = [
        each if each is None or isinstance(each, str) else new_optimizer(each)
        for each in one_each(optimizer, "optimizer", len(rbms))
    ]
    copies = [new_rule(each) for each in one_each(rule, "rule", len(rbms))]
    for rbm, optimizer, rule in zip(rbms, optimizers, copies, strict=True):
        rbm._checked_learner(rule, optimizer_for(optimizer or "adam"))
    for rbm, optimizer, rule in zip(rbms, optimizers, copies, strict=True):
        rbm.compile(optimizer, rule=rule, **options)


def fit_each(
    rbms: Sequence[Any],
    x: Any,
    *,
    epochs: int | Sequence[int] = 1,
    batch_size: int | None = None,
    validation_data: Any = None,
    validation_split: float = 0.0,
    steps_per_epoch: int | None = None,
    validation_steps: int | None = None,
    callbacks: Any = None,
    sample_weight: Any = None,
    verbose: int | str = "auto",
    last: Sequence[keras.callbacks.Callback] = (),
) -> list[keras.callbacks.History | None]:
    """Trains RBMs from below, see `DBN.pretrain`; returns their histories.

    `last` are callbacks to be called after those of the user.
    """
    counts = one_each(epochs, "epochs", len(rbms))
    for rbm, count in zip(rbms, counts, strict=True):
        check_counts(0, epochs=count)
        if count:
            rbm._assert_compile_called("fit")
    for name, value in (
        ("batch_size", batch_size),
        ("steps_per_epoch", steps_per_epoch),
        ("validation_steps", validation_steps),
    ):
        if value is not None:
            check_counts(**{name: value})
    for_each = callable(callbacks) and not isinstance(callbacks, type)
    own = [
        extended(callbacks(index) if for_each else callbacks)
        for index in range(len(rbms))
    ]
    for callback in itertools.chain(*own):
        if not isinstance(callback, keras.callbacks.Callback):
            raise TypeError(
                "Expected keras.callbacks.Callback objects, or a function of the RBM's "
                f"index that returns a list of them. Received: {callback!r}."
            )
    options = sample_weight, batch_size, validation_split, validation_data
    data = TrainingData.of(rbms[0]._form, x, None, *options)
    training = Features.of(data.x, data.sample_weight, batch_size, steps_per_epoch)
    validation = None
    if data.validation is not None:
        given = data.validation
        rows, _, weights = unpack(given if isinstance(given, tuple) else (given,))
        validation = Features.of(rows, weights, steps=validation_steps)
    if not counts[0]:
        rbms[0]._assert_built("fit")

    histories = []
    for index, (rbm, count) in enumerate(zip(rbms, counts, strict=True)):
        if index:
            training = training.above(rbms[index - 1])
            validation = validation and validation.above(rbms[index - 1])
        if not count:
            histories.append(None)
            continue
        if index and not np.any(rbm.visible_bias):
            rbm.build((None, training.units.num_units))
            rbm._start_at(*training.moments())
        if verbose:
            print(f"RBM {index + 1} of {len(rbms)}: {rbm.name}")
        key = EpochKey()
        history = rbm.fit(
            **training.for_fit(key.read),
            validation_data=validation and validation.fixed(),
            epochs=count,
            steps_per_epoch=steps_per_epoch,
            validation_steps=validation_steps,
            callbacks=[*own[index], key, *last],
            verbose=verbose,
        )
        histories.append(history)
    return histories


def evaluate_each(rbms: Sequence[Any], x: Any, verbose: int | str) -> list[float]:
    """Returns the RBMs' losses, see `DBN.evaluate`."""
    features, losses = Features.of(x), []
    rbms[0]._assert_built("evaluate")
    if is_array(features.data):
        rbms[0]._form.check(features.data)
    for index, rbm in enumerate(rbms):
        if index:
            features = features.above(rbms[index - 1])
        losses.append(rbm.evaluate(features.fixed(), verbose=verbose))
    return losses


def one_each(value: Any, name: str, count: int) -> list[Any]:
    """Returns a list of one value for each layer."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"Expected one {name}, or a list of {count}, one for each layer. Received: "
            f"{name} with {len(value)} values."
        )
    return list(value)
