"""Checks that callbacks make before the first epoch."""

import keras
from numpy.typing import ArrayLike

from keras_rbm.models.generative_model import GenerativeModel


def check_generative(
    callback: str, model: keras.Model, rows: ArrayLike | None = None, name: str = "x"
) -> None:
    """Raises an error unless a model is one of p(v), and rows, if any, its states."""
    if not isinstance(model, GenerativeModel):
        raise TypeError(
            f"Expected a model of p(v) for {type(callback).__name__}, an RBM, "
            f"InfiniteRBM or DBM. Received: {type(model).__name__} '{model.name}'. "
            "Watch its loss and metrics."
        )
    if rows is not None:
        model._form.visible.check(rows, name)
