"""The rules that Upadhya & Sastry (2017) compare, at equal cost."""

import keras

import keras_rbm as kr

RULES = ("CD", "PCD", "CG", "S-DCP", "CS-DCP")


def make_rule(name, gibbs_steps, inner_steps, num_chains):
    """Returns a rule that makes `gibbs_steps` sweeps a batch.

    S-DCP shares them among its inner steps; CG is centered CD.
    """
    if name in ("S-DCP", "CS-DCP"):
        if gibbs_steps % inner_steps:
            raise ValueError(
                "Expected inner steps of equally many sweeps. Received: "
                f"{gibbs_steps} sweeps in {inner_steps} inner steps."
            )
        inner_sweeps = gibbs_steps // inner_steps
        return kr.rules.SDCP(inner_steps, inner_sweeps, centered=name == "CS-DCP")
    if name == "PCD":
        return kr.rules.PersistentContrastiveDivergence(
            gibbs_steps, num_chains, centered=False
        )
    return kr.rules.ContrastiveDivergence(gibbs_steps, centered=name == "CG")


def make_model(data, hidden_units, seed, deviation=0.01, base_rate=True):
    """Returns a model as the paper starts it.

    W ~ N(0, deviation²), c = 0, b the logit of the mean pixel, or 0.
    """
    normal = keras.initializers.RandomNormal(stddev=deviation, seed=seed)
    rbm = kr.RBM(
        hidden_units, kernel_initializer=normal, kernel_regularizer=None, seed=seed
    )
    rbm.adapt(data)
    if not base_rate:
        rbm.visible_bias.assign(keras.ops.zeros_like(rbm.visible_bias))
    return rbm
