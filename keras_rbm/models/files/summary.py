"""A model's variables as text."""

import math


def summary_of(model):
    """Returns the names and shapes of a model's variables, a str."""
    if not model.built:
        return f"{model.name} ({type(model).__name__}): not built yet."
    rows = []
    for variable in model.weights:
        name = variable.path.split("/", 1)[-1]
        fixed = "" if variable.trainable else "not trained"
        count = f"{math.prod(variable.shape):,}"
        rows.append((name, str(tuple(variable.shape)), count, fixed))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    trained = sum(math.prod(variable.shape) for variable in model.trainable_weights)
    return "\n".join(
        [
            f"{model.name} ({type(model).__name__})",
            *("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in rows),
            f"{trained:,} of {model.count_params():,} parameters are trainable.",
        ]
    )
