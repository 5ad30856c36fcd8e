"""Inference in bipartite models: pure functions of `Potentials`."""

from typing import Any as _Any

from keras_rbm.inference.annealing.both_ways import (
    Annealing as Annealing,
    anneal as anneal,
)
from keras_rbm.inference.annealing.given_base import (
    annealed_importance_sampling as annealed_importance_sampling,
    annealed_log_likelihood as annealed_log_likelihood,
    reverse_annealed_importance_sampling as reverse_annealed_importance_sampling,
)
from keras_rbm.inference.annealing.replica_bridge import temper as temper
from keras_rbm.inference.annealing.replicas import (
    TemperedChains as TemperedChains,
    parallel_tempering as parallel_tempering,
)
from keras_rbm.inference.couplings import (
    contact_scores as contact_scores,
    effective_couplings as effective_couplings,
    zero_sum_gauge as zero_sum_gauge,
)
from keras_rbm.inference.estimates import LogPartition as LogPartition
from keras_rbm.inference.exact import (
    exact_log_partition as exact_log_partition,
    exact_moments as exact_moments,
)
from keras_rbm.inference.gibbs import (
    gibbs_chain as gibbs_chain,
    gibbs_sweep as gibbs_sweep,
    sample_hidden_given_visible as sample_hidden_given_visible,
    sample_visible_given_hidden as sample_visible_given_hidden,
)
from keras_rbm.inference.messages.approximate_inference import (
    BeliefPropagation as BeliefPropagation,
    Exact as Exact,
    Inference as Inference,
    MeanField as MeanField,
    get as get,
)
from keras_rbm.inference.messages.belief_propagation import (
    max_product as max_product,
    sum_product as sum_product,
)
from keras_rbm.inference.messages.beliefs import Beliefs as Beliefs
from keras_rbm.inference.messages.mean_field import mean_field as mean_field
from keras_rbm.inference.messages.mixed_product import mixed_product as mixed_product
from keras_rbm.inference.potentials import (
    Moments as Moments,
    Potentials as Potentials,
    conditional_moments as conditional_moments,
)
from keras_rbm.inference.pseudo_likelihood import (
    conditional_log_probabilities as conditional_log_probabilities,
    pseudo_log_likelihood as pseudo_log_likelihood,
    reconstruction_log_likelihood as reconstruction_log_likelihood,
    stochastic_pseudo_log_likelihood as stochastic_pseudo_log_likelihood,
)


def __dir__() -> list[str]:
    return [*globals(), "BlockGibbs"]


def __getattr__(name: str) -> _Any:
    if name == "BlockGibbs":  # needs TensorFlow Probability: imported on first use
        from keras_rbm.inference.gibbs_kernel import BlockGibbs

        return BlockGibbs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
