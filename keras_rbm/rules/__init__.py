"""Learning rules: how a model gets the moments of its negative phase."""

import keras

from keras_rbm.rules.contrastive_divergence import (
    ContrastiveDivergence as ContrastiveDivergence,
)
from keras_rbm.rules.contrastive_divergence_perceptron import (
    ContrastiveDivergencePerceptron as ContrastiveDivergencePerceptron,
)
from keras_rbm.rules.max_margin import MaxMargin as MaxMargin
from keras_rbm.rules.maximum_likelihood import MaximumLikelihood as MaximumLikelihood
from keras_rbm.rules.persistent_contrastive_divergence import (
    PersistentContrastiveDivergence as PersistentContrastiveDivergence,
)
from keras_rbm.rules.rule import LearningRule as LearningRule
from keras_rbm.rules.rule import Phases as Phases

_BY_NAME = {
    "cd": ContrastiveDivergence,
    "cd_perceptron": ContrastiveDivergencePerceptron,
    "max_margin": MaxMargin,
    "maximum_likelihood": MaximumLikelihood,
    "pcd": PersistentContrastiveDivergence,
}


def get(identifier):
    """Returns the learning rule that a name, config or object stands for.

    Args:
        identifier: str (`"cd"`, `"pcd"`, `"maximum_likelihood"`, `"max_margin"`,
            `"cd_perceptron"`), a serialised config, or a `LearningRule`.

    Raises:
        ValueError: if it stands for none.

    Example:

    >>> keras_rbm.rules.get("pcd").num_chains
    100
    """
    rule = identifier
    if isinstance(identifier, dict):
        rule = deserialize(identifier)
    elif isinstance(identifier, str) and identifier.lower() in _BY_NAME:
        rule = _BY_NAME[identifier.lower()]()
    if not isinstance(rule, LearningRule):
        raise ValueError(
            f"Expected a learning rule, one of {sorted(_BY_NAME)} or a "
            f"keras_rbm.rules object. Received: {identifier!r}. Pass for example "
            "'cd' or keras_rbm.rules.ContrastiveDivergence(gibbs_steps=5)."
        )
    return rule


def serialize(rule):
    """Returns the config of a rule, which `deserialize` reads."""
    return keras.saving.serialize_keras_object(rule)


def deserialize(config):
    """Returns the rule that `serialize` described; its state is not included."""
    return keras.saving.deserialize_keras_object(config)
