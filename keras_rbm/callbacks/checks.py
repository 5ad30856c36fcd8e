"""Checks that callbacks make before the first epoch."""

from keras_rbm.models.generative_model import GenerativeModel


def check_generative(callback, model, rows=None, name="x"):
    """Raises an error unless a model is one of p(v), and rows, if any, its states."""
    if not isinstance(model, GenerativeModel):
        raise TypeError(
            f"Expected a model of p(v) for {type(callback).__name__}, an RBM, "
            f"InfiniteRBM or DBM. Received: {type(model).__name__} '{model.name}'. "
            "Watch its loss and metrics."
        )
    if rows is not None:
        model._form.visible.check(rows, name)
