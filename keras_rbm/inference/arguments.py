"""Checks of the arguments of this package's functions: arrays, counts and models."""

import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_counts


def as_floats(name, values, shape=None, dtype=tf.float32):
    """Returns values as a float tensor.

    Args:
        name: str, the name of the values in an error message.
        values: tensor, array or lists of numbers.
        shape: tuple of sizes, `None` or a tensor if not known; or `None` for any shape.
        dtype: dtype of the result.

    Raises:
        TypeError: if the values are not numbers.
        ValueError: if the values have another shape.
    """
    tensor = _tensor(values, dtype)
    if tensor is None:
        kind = getattr(values, "dtype", None) or type(values).__name__
        raise TypeError(
            f"Expected {name} as a dense tensor or array of numbers. Received: {kind}. "
            "Call toarray() on a sparse matrix; give all rows of a list one length."
        )
    if shape is None:
        return tensor
    shape = [size if isinstance(size, int) else None for size in shape]
    if not tensor.shape.is_compatible_with(shape):
        words = ", ".join("examples" if size is None else str(size) for size in shape)
        single = tensor.shape.rank == len(shape) - 1
        cure = f" For a single example pass {name}[np.newaxis]." if single else ""
        raise ValueError(
            f"Expected {name} of shape ({words}{',' if len(shape) == 1 else ''}). "
            f"Received: shape {tuple(tensor.shape)}.{cure}"
        )
    return tensor


def _tensor(values, dtype):
    """Returns values as a float tensor, or `None` if they are not numbers."""
    if isinstance(values, (tf.RaggedTensor, tf.SparseTensor)):
        return None
    try:
        if not tf.is_tensor(values) and not hasattr(values, "value"):
            values = np.asarray(values)
            if values.dtype.kind not in "biuf":
                return None
        tensor = tf.convert_to_tensor(values)
    # Lists of unequal lengths, or an object that only looks like a variable.
    except (TypeError, ValueError, NotImplementedError):
        return None
    is_number = tensor.dtype.is_floating or tensor.dtype.is_integer
    return tf.cast(tensor, dtype) if is_number or tensor.dtype.is_bool else None


def check_sizes(least=1, **counts):
    """Raises an error unless each named count is an int, or int tensor, ≥ `least`.

    The value of a tensor is checked only outside of a `tf.function`.
    """
    for name, count in counts.items():
        if not tf.is_tensor(count):
            check_counts(least, **{name: count})
            continue
        dense = isinstance(count, (tf.Tensor, tf.Variable))
        if not dense or count.shape.rank or not count.dtype.is_integer:
            raise ValueError(
                f"Expected an int {name} ≥ {least}. Received: {name}={count!r:.200}."
            )
        if tf.executing_eagerly() and not isinstance(count, tf.Variable):
            check_counts(least, **{name: int(count)})


def check_model(potentials):
    """Raises a TypeError unless `potentials` are `Potentials` of tensors."""
    parts = [getattr(potentials, name, None) for name in ("visible", "hidden")]
    kernel = getattr(potentials, "kernel", None)
    if not tf.is_tensor(kernel) or not all(hasattr(part, "natural") for part in parts):
        raise TypeError(
            "Expected a model as keras_rbm.inference.Potentials of tensors. Received: "
            f"{type(potentials).__name__}. Pass model.potentials()."
        )


def checked_states(potentials, name, states, hidden=False):
    """Returns states (examples, units) of a layer of a model as a float tensor.

    Values are checked only outside of a `tf.function`, and not for binary units, for
    which means may be given instead of states.
    """
    check_model(potentials)
    units = potentials.hidden if hidden else potentials.visible
    states = as_floats(name, states, (None, units.num_units), units.bias.dtype)
    if tf.executing_eagerly() and units.finite:
        _check_values(name, states.numpy(), units.values)
    return states


def _check_values(name, states, values):
    """Raises a ValueError unless units with more than two values have such states."""
    columns = np.flatnonzero(np.count_nonzero(np.diff(values), axis=1) > 1)
    wrong = (states[:, columns, np.newaxis] != values[columns]).all(-1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        column = columns[column]
        raise ValueError(
            f"Expected {name} to be states of the units. Received: "
            f"{states[row, column]:g} in row {row}, column {column}; its states are "
            f"{np.unique(values[column]).tolist()!r:.60}."
        )


def checked_base(potentials, base):
    """Returns visible natural parameters, (V,) or a row for each model, or `None`."""
    if base is None:
        return None
    base = as_floats("base", base)
    rows = (None,) if base.shape.rank == 2 and potentials.batch_size is not None else ()
    return as_floats("base", base, (*rows, potentials.visible.num_rows))


def check_proper(potentials):
    """Raises an error unless a model's parameters are numbers, and its Z is finite."""
    check_model(potentials)
    check_finite(potentials)
    check_normalizable(potentials)


def check_finite(potentials):
    """Raises a ValueError if a parameter is NaN or infinite, and names it.

    Not checked while tracing a `tf.function`.
    """
    named = {"kernel": potentials.kernel}
    for side in ("visible", "hidden"):
        units = getattr(potentials, side)
        named |= _named_parameters(side, units)
    for name, value in named.items():
        value = tf.convert_to_tensor(value)
        if not hasattr(value, "numpy"):
            return
        if not tf.reduce_all(tf.math.is_finite(value)):
            raise ValueError(
                f"Expected finite parameters. Received: NaN or infinite values in "
                f"{name}. Training has diverged: go back to earlier weights, and use "
                "a smaller learning rate."
            )


def _named_parameters(name, units):
    """Returns a dict of name to tensor of a layer's parameters, including its parts."""
    if not hasattr(units, "_asdict"):
        return {name: units}
    named = {}
    for field, value in units._asdict().items():
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            named |= _named_parameters(f"{name}_{field}", part)
    return named


def check_eager(name):
    """Raises a ValueError if log Z of a model is asked for in a traced function."""
    if not tf.executing_eagerly():
        raise ValueError(
            "Expected log_partition outside of a tf.function: it searches for the "
            f"model's mass. Received: model '{name}' in a function that is traced. "
            "Compute z = model.log_partition() before, and pass log_partition=z."
        )


def spectral_gap(potentials):
    """Returns how fast Gibbs sweeps of unbounded layers forget, at worst.

    The smallest eigenvalue of `1 - D W diag(1 / precision_h) W' D` for the unbounded
    units, with `D = diag(1 / precision_v)^(1/2)`. Of Gaussian units a sweep reduces the
    slowest correlation to 1 - gap of it; at 0 there is no finite partition function. It
    is 1 if one of the layers has no unbounded units.
    """
    layers = (potentials.visible, potentials.hidden)
    visible, hidden = (np.asarray(units.curvature, np.float64) for units in layers)
    free = ~np.isinf(visible)
    if not free.any() or np.isinf(hidden).all():
        return 1.0
    kernel = np.asarray(tf.cast(potentials.kernel, tf.float64))[free]
    scaled = kernel / np.sqrt(np.outer(visible[free], hidden))
    if not np.isfinite(scaled).all():
        return np.nan
    return 1.0 - float(np.square(np.linalg.norm(scaled, 2)))


def check_normalizable(potentials):
    """Raises if a pair of unbounded layers has no finite partition function.

    Units with finitely many or bounded states can be combined with all others.

    Raises:
        ValueError: unless diag(precision_v) - W diag(1/precision_h) W' of the unbounded
            units is positive definite. This is not necessary for rectified units.
            Not checked while tracing a `tf.function`.
    """
    if not tf.executing_eagerly():
        return
    gap = spectral_gap(potentials)
    if not gap > 0:
        raise ValueError(
            "Expected diag(precision_v) - W diag(1 / precision_h) W' to be positive "
            "definite, or two layers of Gaussian or rectified units may have no finite "
            f"partition function. Received: smallest eigenvalue {gap:.3g}, relative "
            "to the first. Use a smaller kernel, a larger precision, or units with "
            "finitely many states in one of the layers."
        )
