"""What estimators share: how X is read, and what a model is compiled with."""

import keras
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from keras_rbm._checks import check_numbers
from keras_rbm.models.data.rows import check_no_bytes
from keras_rbm.models.training import defaults
from keras_rbm.optimizers import FallingRate


def numbers_of(estimator, X, **options):
    """Returns X by scikit-learn's `validate_data`; its error says where words go."""
    try:
        return validate_data(estimator, X, **options)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        check_no_bytes(X)
        raise ValueError(
            "Expected X to be numbers. Received: words. TableModel takes frames with "
            "words; as numbers: table = keras_rbm.tables.Table().fit(frame), "
            "table.transform(frame), and visible=table.visible."
        ) from error


def optimizer_with_rate(optimizer, learning_rate):
    """Returns what `compile` is given as the optimizer: a copy, a name, or `None`.

    Args:
        optimizer: str, Keras optimizer, or `None`.
        learning_rate: float > 0, from which it falls to 0, or Keras schedule, to
            replace its own, or `None`.

    Raises:
        TypeError, ValueError: if the learning rate is neither.
    """
    if learning_rate is None:
        named = optimizer is None or isinstance(optimizer, str)
        return optimizer if named else defaults.new_optimizer(optimizer)
    if not callable(learning_rate):
        check_numbers(learning_rate=learning_rate)
        if learning_rate <= 0.0:
            raise ValueError(
                "Expected learning_rate > 0, or None for the optimizer's own. "
                f"Received: learning_rate={learning_rate!r}."
            )
        learning_rate = FallingRate(learning_rate)
    rate = keras.optimizers.schedules.serialize(learning_rate)
    return defaults.new_optimizer(optimizer or "adam", learning_rate=rate)


def seed_from(random_state):
    """Returns an int drawn from what scikit-learn calls a random state."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
