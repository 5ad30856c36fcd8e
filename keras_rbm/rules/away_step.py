"""A step that removes a hidden unit, or reduces its coefficient."""

import tensorflow as tf

from keras_rbm.inference.growing.frank_wolfe import best_removal
from keras_rbm.inference.growing.refitting import refit

#: Least gain, nats: less may be rounding.
_LEAST_GAIN = 1e-5


def step_away(model, samples, phases, mean, seed, *, l2, line_search, **fitting):
    """Removes the unit whose loss raises J most, or reduces its coefficient.

    Args:
        model: the growing model.
        samples: its `GrowingSamples`.
        phases: `DataAndSamples` of the batch and the model's samples.
        mean: tensor (V,), the batch's mean.
        seed: seed tensor (2,).
        l2: scalar, the penalty of all units.
        line_search: bool, whether coefficients may be reduced.
        **fitting: arguments of `refit`.

    Returns:
        scalar, 1 if there was a gain of more than two standard errors, else 0.
    """
    before = model._growing_potentials()
    removal = best_removal(before, phases, l2, line_search=line_search)

    def remove():
        counts = before.hidden.coefficients
        chosen = tf.range(tf.shape(counts)[0]) == removal.unit
        hidden = before.hidden._replace(
            coefficients=tf.where(chosen, removal.coefficient, counts)
        )
        after = before._replace(hidden=hidden)
        fitted = refit(
            after,
            lambda states: before.free_energy(states) - after.free_energy(states),
            phases,
            samples.held_out_chains(),
            seed,
            before=before,
            **fitting,
        )
        tf.cond(
            removal.coefficient > 0.0,
            lambda: model.set_coefficient(removal.unit, removal.coefficient),
            lambda: model.remove_unit(removal.unit),
        )
        samples.take(model, fitted, mean)
        return tf.constant(1.0)

    threshold = tf.maximum(2.0 * removal.error, _LEAST_GAIN)
    return tf.cond(removal.gain > threshold, remove, lambda: tf.constant(0.0))
