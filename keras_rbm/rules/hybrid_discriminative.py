"""Learning of a label beside the rest: discriminative, and in part generative."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_numbers, is_int
from keras_rbm._replicas import all_sum
from keras_rbm.inference.potentials import Moments, Potentials, conditional_moments
from keras_rbm.inference.unit_states import UnitStates, conditional_log_weights
from keras_rbm.rules.learner import Learner
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Phases, Step


@keras.saving.register_keras_serializable("keras_rbm")
class HybridDiscriminative(LearningRule):
    """Ascends `log p(y | x) + α log p(x, y)` of an RBM that has a label y [1].

    The label is one visible unit of finitely many states, such as the last part of
    `units.Joined([("bernoulli", 784), (units.Categorical(10), 1)])`. Given all other
    units, p(y | x) is exact, and so is the gradient of its logarithm, the
    *discriminative* part. The *generative* part is learned by another rule. In a model
    with `missing="latent"`, a row whose label is NaN learns by that part alone:
    semi-supervised learning. The loss is `-log p(y | x)` in nats, of such a row 0.

    After training, `rbm.marginals(x)` gives p(y | x) where y is NaN.

    Args:
        generative_weight: float ≥ 0, α; 0 learns p(y | x) alone. 0.01 in [1] for MNIST.
        generative: str or `LearningRule` with a negative phase, such as `"cd"`.
        label: int, the visible unit that is the label, by default the last one.
        **kwargs: `sparsity_target`, `sparsity_cost`, `centered`; see `LearningRule`.

    Raises:
        TypeError, ValueError: if an argument has another type or is out of range; when
            the model is built, if the label has infinitely many states.

    Example:

    >>> label = keras_rbm.units.Categorical(3), 1
    >>> unit = keras_rbm.units.Joined([("bernoulli", 3), label])
    >>> rbm = keras_rbm.RBM(4, visible=unit, seed=0)
    >>> rbm.compile(rule=keras_rbm.rules.HybridDiscriminative(generative_weight=0.1))
    >>> history = rbm.fit(np.array([[0, 1, 1, 2], [1, 1, 0, 0]]), verbose=0)
    >>> rbm.marginals([[0, 1, 1, np.nan]])[:, 3:].shape
    TensorShape([1, 3])

    References:
        1. Larochelle, Bengio. Classification using discriminative restricted Boltzmann
           machines. ICML 2008.
    """

    conditional = False

    def __init__(
        self,
        generative_weight: float = 0.01,
        generative: str | dict[str, Any] | LearningRule = "pcd",
        label: int = -1,
        **kwargs: Any,
    ) -> None:
        from keras_rbm.rules import get  # the table of names has this one, too

        super().__init__(**kwargs)
        check_numbers(generative_weight=generative_weight)
        if generative_weight < 0.0:
            raise ValueError(
                "Expected generative_weight ≥ 0. Received: generative_weight="
                f"{generative_weight}."
            )
        if not is_int(label):
            raise TypeError(f"Expected label as an int. Received: label={label!r}.")
        rule = get(generative)
        phase = getattr(type(rule), "negative_phase", LearningRule.negative_phase)
        if (
            not isinstance(rule, LearningRule)
            or phase is LearningRule.negative_phase
            or rule.conditional
        ):
            raise ValueError(
                "Expected generative as a rule for models without input that has a "
                f"negative phase, such as 'pcd'. Received: {rule!r}."
            )
        self.generative_weight = float(generative_weight)
        self.generative: LearningRule = type(rule).from_config(
            rule.get_config() | {"centered": False}
        )
        self.label = int(label)

    def check(self, learner: Learner) -> None:
        super().check(learner)
        self.generative.check(learner)

    def build(self, learner: Learner) -> None:
        units = learner.potentials().visible
        count = int(units.num_units)
        if not -count <= self.label < count or not units.finite:
            raise ValueError(
                "Expected visible units of finitely many states, one of which is the "
                f"label. Received: label={self.label} of {count} units, "
                f"{learner.model.visible!r}."
            )
        super().build(learner)
        self.generative.build(learner)

    def phases(self, step: Step) -> Phases:
        log_p, shares, given = self._given_the_rest(step)
        labelled = step.weights * self._has_label(step)
        total = all_sum(tf.reduce_sum(labelled))
        labelled = tf.math.divide_no_nan(labelled, total)
        parts = tf.sign(total), tf.constant(self.generative_weight, total.dtype)
        one, other = (
            tf.math.divide_no_nan(part, parts[0] + parts[1]) for part in parts
        )
        discriminative = self._moments(step, one * labelled, shares, given)
        weights = one * labelled + other * step.weights
        positive = conditional_moments(
            step.potentials, step.visible, weights, step.hidden_natural
        )
        generative = self.generative.negative_phase(step)
        kernel, weights = other * generative.kernel, other * generative.weights
        generative = generative._replace(kernel=kernel, weights=weights)
        negative = _both(discriminative, generative)
        return Phases(positive, negative, -log_p * self._has_label(step))

    def losses(self, step: Step) -> tuple[tf.Tensor, tf.Tensor | None]:
        return -self._given_the_rest(step)[0] * self._has_label(step), None

    def _has_label(self, step):
        """Returns 1 for the rows whose label is known, (B,)."""
        if step.known is None:
            return tf.ones_like(step.weights)
        return tf.cast(step.known[:, self.label], step.weights.dtype)

    def _given_the_rest(self, step):
        """Returns log p(y | x), (B,), and p, (B, q), and h's natural parameters.

        The latter, (q, B, H), are those given x and each label.
        """
        potentials, visible = step.potentials, step.visible
        table = UnitStates.of(potentials.visible, potentials.kernel)
        unit = tf.zeros_like(visible[:, 0], tf.int32) + self._number(step)
        natural = step.hidden_natural
        log_weights, present = conditional_log_weights(
            potentials, table, visible, natural, unit
        )
        log_p = tf.nn.log_softmax(log_weights)
        inputs = table.inputs(self._number(step))
        rest = natural - tf.matmul(present, inputs)
        chosen = tf.reduce_sum(tf.math.multiply_no_nan(log_p, present), -1)
        return chosen, tf.exp(log_p), rest + inputs[:, tf.newaxis]

    def _number(self, step):
        return self.label % int(step.potentials.num_visible)

    def _moments(self, step, weights, shares, given):
        """Returns the moments of x and y, with y from p(y | x)."""
        potentials, units = step.potentials, step.potentials.visible
        hidden, visible = potentials.hidden, units.statistics(step.visible)
        of_state = [
            hidden.expected_statistics(natural) for natural in tf.unstack(given)
        ]
        columns = tf.unstack(shares, axis=1)
        mean = tf.nest.map_structure(
            lambda *leaves: sum(
                share[:, tf.newaxis] * leaf
                for share, leaf in zip(columns, leaves, strict=True)
            ),
            *of_state,
        )
        # First statistics of the label in each of its states, and its rows.
        number = self._number(step)
        rows = np.flatnonzero(units.unit_of_row == number)
        states = tf.repeat(step.visible[:1], len(columns), 0)
        values = tf.constant(units.values[number, : len(columns)], states.dtype)
        column = tf.one_hot(number, states.shape[1], dtype=states.dtype)
        states += (values - states[:, number])[:, tf.newaxis] * column
        label = tf.gather(units.first_of(states), rows, axis=1)  # (q, r)
        is_label = np.isin(np.arange(units.num_rows), rows)
        is_label = tf.constant(is_label.astype("float32"))
        expected = tf.matmul(shares, label)  # (B, r)
        place = tf.one_hot(rows, units.num_rows, dtype=label.dtype)
        bias = visible.bias * (1.0 - is_label) + tf.matmul(expected, place)
        kernel = tf.matmul(
            visible.bias * ((1.0 - is_label) * weights[:, tf.newaxis]),
            mean.bias,
            transpose_a=True,
        )
        of_label = [
            tf.reduce_sum((weights * share)[:, tf.newaxis] * leaf.bias, 0)
            for share, leaf in zip(columns, of_state, strict=True)
        ]
        by_row = tf.matmul(label, tf.stack(of_label), transpose_a=True)  # (r, H)
        kernel += tf.matmul(place, by_row, transpose_a=True)
        return Moments(kernel, visible._replace(bias=bias), mean, weights)

    def visible_chains(self, potentials: Potentials) -> tf.Tensor | None:
        return self.generative.visible_chains(potentials)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "generative_weight": self.generative_weight,
            "generative": keras.saving.serialize_keras_object(self.generative),
            "label": self.label,
        }


def _both(one, two):
    """Returns the moments of the rows of both."""
    visible, hidden = (
        tf.nest.map_structure(lambda *leaves: tf.concat(leaves, 0), *sides)
        for sides in ((one.visible, two.visible), (one.hidden, two.hidden))
    )
    weights = tf.concat([one.weights, two.weights], 0)
    return Moments(one.kernel + two.kernel, visible, hidden, weights)
