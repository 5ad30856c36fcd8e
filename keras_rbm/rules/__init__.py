"""Learning rules: how a model estimates the moments of its negative phase."""

from typing import Any as _Any

import keras

from keras_rbm._serializable import find as _find
from keras_rbm.rules.contrastive_divergence import (
    ContrastiveDivergence as ContrastiveDivergence,
    ContrastiveDivergencePerceptron as ContrastiveDivergencePerceptron,
)
from keras_rbm.rules.frank_wolfe import FrankWolfe as FrankWolfe
from keras_rbm.rules.hybrid_discriminative import (
    HybridDiscriminative as HybridDiscriminative,
)
from keras_rbm.rules.learner import Learner as Learner
from keras_rbm.rules.learning_rule import LearningRule as LearningRule, Rule as Rule
from keras_rbm.rules.marginal_loss import MarginalLoss as MarginalLoss
from keras_rbm.rules.max_margin import MaxMargin as MaxMargin
from keras_rbm.rules.maximum_likelihood import MaximumLikelihood as MaximumLikelihood
from keras_rbm.rules.outside_sampler import OutsideSampler as OutsideSampler
from keras_rbm.rules.parallel_tempering import ParallelTempering as ParallelTempering
from keras_rbm.rules.persistent_contrastive_divergence import (
    FastPersistentContrastiveDivergence as FastPersistentContrastiveDivergence,
    PersistentContrastiveDivergence as PersistentContrastiveDivergence,
)
from keras_rbm.rules.sdcp import SDCP as SDCP
from keras_rbm.rules.step import Phases as Phases, Step as Step

_BY_NAME = {
    "cd": ContrastiveDivergence,
    "cd_perceptron": ContrastiveDivergencePerceptron,
    "frank_wolfe": FrankWolfe,
    "fpcd": FastPersistentContrastiveDivergence,
    "hybrid_discriminative": HybridDiscriminative,
    "max_margin": MaxMargin,
    "maximum_likelihood": MaximumLikelihood,
    "parallel_tempering": ParallelTempering,
    "pcd": PersistentContrastiveDivergence,
    "sdcp": SDCP,
}


def get(identifier: str | dict[str, _Any] | Rule) -> Rule:
    """Returns the learning rule that a name, config or object stands for.

    Args:
        identifier: str (`"cd"`, `"pcd"`, `"sdcp"`, `"parallel_tempering"`,
            `"fpcd"`, `"maximum_likelihood"`, `"max_margin"`, `"cd_perceptron"`,
            `"hybrid_discriminative"`, `"frank_wolfe"`), a serialized config, or a
            `Rule`.

    Raises:
        ValueError: if the identifier is unknown.

    Example:

    >>> keras_rbm.rules.get("pcd").num_chains
    100
    """
    return _find(
        identifier,
        Rule,
        _BY_NAME,
        "a learning rule",
        "keras_rbm.rules.ContrastiveDivergence(gibbs_steps=5)",
    )


def serialize(rule: Rule) -> dict[str, _Any]:
    """Returns the config of a rule, which `deserialize` reads."""
    return keras.saving.serialize_keras_object(rule)


def deserialize(config: dict[str, _Any]) -> Rule:
    """Returns the rule that `serialize` describes, without its state."""
    return keras.saving.deserialize_keras_object(config)
