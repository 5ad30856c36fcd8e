"""Checks that callbacks make before the first epoch."""

from keras_rbm.models.workflow.states import check_rows


def check_model(callback, model, *methods):
    """Raises a TypeError unless the model has the methods a callback calls."""
    if getattr(model, "conditional", False):
        raise TypeError(
            f"Expected a model without input for {type(callback).__name__}. Received: "
            f"{type(model).__name__} '{model.name}'. Watch its loss and metrics."
        )
    missing = [method for method in methods if not hasattr(model, method)]
    if missing:
        raise TypeError(
            f"Expected a model with the methods {list(methods)} for "
            f"{type(callback).__name__}. Received: {type(model).__name__} "
            f"'{model.name}', without {missing}. Use it with keras_rbm.RBM."
        )


def check_states(model, rows, name):
    """Raises a ValueError unless `rows` can be visible states of the model."""
    check_rows(rows, name, model._visible_width, model.visible)
