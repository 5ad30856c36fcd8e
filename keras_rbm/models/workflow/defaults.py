"""What `compile` takes where the user says nothing."""

import keras

from keras_rbm import rules
from keras_rbm.checks import check_counts, check_flags
from keras_rbm.models.workflow.initializers import keras_part

#: Of Adam: the rate of the first step, and the steps in which it halves. Chosen by
#: `examples/defaults.py`: tables of few rows need a large rate, long runs a small one.
_LEARNING_RATE, _HALVED_IN = 0.02, 100


def optimizer_for(identifier):
    """Returns the optimizer that `compile` was given, or the default.

    Raises:
        ValueError: if it is a learning rule, or stands for no optimizer.
    """
    if identifier is None:
        schedule = keras.optimizers.schedules.InverseTimeDecay
        return keras.optimizers.Adam(schedule(_LEARNING_RATE, _HALVED_IN, 1.0))
    named = isinstance(identifier, str) and rules.is_name(identifier)
    if named or isinstance(identifier, rules.Rule):
        raise ValueError(
            f"Expected an optimizer. Received: optimizer={identifier!r}, which is a "
            f"learning rule. Call compile(rule={identifier!r})."
        )
    return keras_part(keras.optimizers.get, "optimizer", identifier)


def check_compile_options(metrics, run_eagerly, steps_per_execution, jit_compile):
    """Raises an error unless `compile` can do with its further arguments.

    Args:
        metrics: list of what `metrics` and `weighted_metrics` were given.
        run_eagerly, steps_per_execution, jit_compile: as of `compile`.
    """
    for given in metrics:
        if given is not None and not isinstance(given, (list, tuple, dict)):
            raise TypeError(
                "Expected metrics as a list. Received: metrics of type "
                f"{type(given).__name__}. Pass [metric]."
            )
    check_counts(steps_per_execution=steps_per_execution)
    check_flags(run_eagerly=run_eagerly)
    automatic = isinstance(jit_compile, str) and jit_compile == "auto"
    if not automatic:
        check_flags(jit_compile=jit_compile)
