"""A check for every callback: watching a training run does not change it."""

import numpy as np


def assert_training_unchanged(make_model, data, callback):
    """Asserts that a compiled model learns the same with and without a callback."""
    watched, alone = make_model(), make_model()
    watched.fit(data, epochs=3, callbacks=[callback], verbose=0)
    alone.fit(data, epochs=3, verbose=0)
    np.testing.assert_array_equal(watched.kernel, alone.kernel)
    np.testing.assert_array_equal(
        watched.seed_generator.state, alone.seed_generator.state
    )
