"""Frank-Wolfe steps, which grow a hidden layer."""

import math
import numbers
from typing import Any

import keras
import tensorflow as tf

from keras_rbm._checks import check_counts
from keras_rbm.rules.learning_rule import Rule
from keras_rbm.rules.step import Phases, Step

_Schedule = keras.optimizers.schedules.LearningRateSchedule


@keras.saving.register_keras_serializable("keras_rbm")
class FrankWolfe(Rule):
    """Settings of an `InfiniteRBM`, which grows by one hidden unit per step [1].

    A step draws samples of the model by persistent chains, and searches by L-BFGS for
    the unit `(w, d)` that most improves the batch's penalized likelihood
    `J = mean log p - l2/2 sum_i |w_i, d_i|^2`. It adds the unit, and moves the
    visible biases until the visible means equal the batch's up to chance. The published
    search has the whole training set as one batch, and a linearized gain. Exact gain,
    held-out chains, rejections, fitted biases and smaller batches are additions.

    Held-out chains then validate the unit: they estimate its gain while they move from
    model to model by sequential Monte Carlo [2]. They pass through models in
    between if one step would leave fewer than half of them, and through many if fewer
    than three in ten or the unit could gain more than a nat: then it creates modes that
    chains must meet as they form. Chains that are still copies of each other count as
    one in the error. A unit is rejected, and another searched, at most twice, if it

    * gains less than two standard errors,
    * would leave searching or held-out chains a relative effective sample size
      (ESS / S) below 1/50 in one step, or
    * would give an example a probability above 1: no chain is where the unit is on,
      and the ESS counts as 0.

    If held-out chains' ESS is below 1/5 the next penalty is threefold (0 stays 0).

    | `fit` logs of the last batch | meaning |
    | --- | --- |
    | `gain`, `gain_error` | in mean log-likelihood, from the new unit, nats |
    | `rejected`, `unvalidated` | rejected units; those with too few effective chains |
    | `search_ess`, `validation_ess` | relative ESS; the least one of held-out chains |
    | `hidden_units` | of the model |
    | `log_partition`, `log_partition_error` | log Z, added up from the gains |

    Without a new unit, `gain`, `gain_error` and `search_ess` are 0; `validation_ess` is
    1 if no unit was searched. log Z is added up from the first unit, or from annealing
    if `fit` starts with a model that has not grown by this rule
    (`train_on_batch` logs NaN for it). If its error exceeds 0.2 nats at the end of
    an epoch, `fit` estimates log Z again by annealing in both directions.

    Args:
        l2: float ≥ 0, the penalty of a unit, or a
            `keras.optimizers.schedules.LearningRateSchedule` of the number of units.
            With a small penalty the units of a young model grow beyond what the samples
            can validate; later units gain less and need a smaller one.
        num_samples: int ≥ 2, S, number of chains of the search; half as many more,
            at least 20, validate. About `V / 2S` nats of the gain in a search are
            chance: if units gain less, use more chains.
        num_starts: int ≥ 1, starts of a search: near an example, and every second
            one a small random unit. One is faster and enough for images such as MNIST.

    Raises:
        ValueError: if an argument is out of range, or the model does not grow.

    Example:

    >>> data = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 100, axis=0)
    >>> grown = keras_rbm.InfiniteRBM(8, seed=0)
    >>> grown.compile(rule=keras_rbm.rules.FrankWolfe(l2=0.05, num_samples=500))
    >>> history = grown.fit(data, batch_size=200, epochs=3, verbose=0)
    >>> [int(units) for units in history.history["hidden_units"]]
    [1, 2, 3]

    References:
        1. Ping, Liu, Ihler. Learning infinite RBMs with Frank-Wolfe. NIPS 2016.
        2. Del Moral, Doucet, Jasra. Sequential Monte Carlo samplers. JRSS B, 2006.
    """

    def __init__(
        self,
        l2: float | keras.optimizers.schedules.LearningRateSchedule = 0.02,
        num_samples: int = 5000,
        num_starts: int = 2,
    ) -> None:
        super().__init__()
        if isinstance(l2, dict) and "class_name" in l2:  # from a config
            l2 = keras.saving.deserialize_keras_object(l2)
        number = isinstance(l2, numbers.Real) and not isinstance(l2, bool)
        if not isinstance(l2, _Schedule) and not (number and 0.0 <= l2 < math.inf):
            raise ValueError(
                "Expected a number l2 ≥ 0, or a LearningRateSchedule. Received: "
                f"l2={l2!r}."
            )
        check_counts(2, num_samples=num_samples)
        check_counts(num_starts=num_starts)
        self.l2 = l2
        self.num_samples = num_samples
        self.num_starts = num_starts

    @property
    def updates_in_parts(self) -> bool:
        return True

    def update(self, step: Step, phases: Phases) -> dict[str, tf.Tensor]:
        return step.learner.grow(step)

    def penalty(self, hidden_units: int | tf.Tensor) -> tf.Tensor:
        """Returns the penalty, a scalar, of a unit that is added to so many."""
        l2 = self.l2(hidden_units) if isinstance(self.l2, _Schedule) else self.l2
        return tf.cast(l2, tf.float32)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments; a schedule as its Keras config."""
        l2 = self.l2
        if isinstance(l2, _Schedule):
            l2 = keras.saving.serialize_keras_object(l2)
        return {
            "l2": l2,
            "num_samples": self.num_samples,
            "num_starts": self.num_starts,
        }
