"""Checks that callbacks make before the first epoch."""

from keras_rbm.models.generative_model import GenerativeModel


def check_generative(callback, model, rows=None, name="x"):
    """Returns rows, if any; raises an error unless they are states of a model of p(v).

    Of sparse rows what is not stored is what the model takes it for.
    """
    if not isinstance(model, GenerativeModel) or model.log_partition is None:
        raise TypeError(
            f"Expected a model of p(v) for {type(callback).__name__}, an RBM, "
            f"InfiniteRBM or DBM. Received: {type(model).__name__} '{model.name}'. "
            "Watch its loss and metrics."
        )
    return None if rows is None else model.form.states(rows, name)
