"""Energies and likelihoods of conditional models, from their potentials."""

import warnings

import tensorflow as tf

from keras_rbm import inference as inference_module
from keras_rbm import random
from keras_rbm.checks import check_counts
from keras_rbm.inference.arguments import as_floats
from keras_rbm.inference.log_partition import estimate_by_each
from keras_rbm.inference.messages.approximate_inference import can_start_at
from keras_rbm.inference.messages.mean_field import mean_field_bound
from keras_rbm.models.workflow.rows import as_rows, map_rows
from keras_rbm.units.bernoulli import are_binary

#: Methods for log Z. Tempering, which takes one model at a time, is not among them.
_ANNEALED = ("ais", "bidirectional", "reverse_ais")
_METHODS = ("bethe", "mean_field", "exact", *_ANNEALED)
#: Nats by which a likelihood may exceed 0 without being wrong.
_ROUNDING = 1e-3
#: Models, or chains of all models, that are computed at once.
_ROWS_AT_ONCE = 10_000


class ConditionalScores:
    """Adds scores to a model of p(v | x)."""

    def free_energy(self, x, v) -> tf.Tensor:
        """Computes `F(v | x) = -log sum_h exp(-E(v, h | x))`.

        Args:
            x: array (B, X).
            v: array (B, V).

        Returns:
            tensor (B,), nats.
        """
        rows, visible = self._pairs(x, v, "free_energy")

        def energies(rows, visible):
            return self.potentials(rows, self.variable_dtype).free_energy(visible)

        return map_rows(energies, rows, visible)

    def log_partition(
        self,
        x,
        method: str | None = None,
        *,
        num_chains: int = 100,
        betas=None,
        steps: int | None = None,
        seed=0,
        search: bool = True,
        progress: bool = False,
    ) -> inference_module.LogPartition:
        """Computes or estimates `log Z(x)` for each example.

        Args:
            x: array (B, X).
            method: `"bethe"`, the default for binary units (sum-product to 1e-3 or 100
                sweeps, whatever the model's inference; its error is not known, and
                large if `sum_product` does not converge, see `Beliefs.converged`),
                `"mean_field"` (a lower bound, the higher one of two starts), `"exact"`
                (enumerates up to 25 units), `"ais"`, the default for others,
                `"bidirectional"` or `"reverse_ais"` (annealing, `num_chains` chains for
                each example).
            num_chains, betas, steps, seed, search, progress: for annealing, see
                `keras_rbm.inference.estimate_log_partition`.

        Returns:
            `keras_rbm.inference.LogPartition`, fields of shape (B,), nats.

        Raises:
            ValueError: if the method is unknown, the model too large to enumerate,
                or an argument out of range.
        """
        method = self._default_method() if method is None else method
        options = {"num_chains": num_chains, "betas": betas, "steps": steps}
        options |= {"seed": seed, "search": search, "progress": progress}
        return self._log_partitions(x, [method], **options)[method]

    def _log_partitions(self, x, methods, *, num_chains=100, seed=0, **options):
        """Returns a dict of method to estimate; they share a search and chains."""
        for method in methods:
            if not isinstance(method, str) or method not in _METHODS:
                raise ValueError(
                    f"Expected method to be one of {_METHODS}. Received: "
                    f"method={method!r}."
                )
        rows = self._feature_rows(x, "log_partition")
        size = _ROWS_AT_ONCE
        if any(method in _ANNEALED for method in methods):
            check_counts(2, num_chains=num_chains)
            size = max(1, _ROWS_AT_ONCE // num_chains)
        parts = []
        for first in range(0, len(rows), size):
            features = rows[first : first + size]
            potentials = self.potentials(features, self.variable_dtype)
            part = estimate_by_each(
                potentials,
                [method for method in methods if method != "mean_field"],
                base=potentials.visible_bias,
                num_chains=num_chains,
                seed=random.fold_in(random.as_seed(seed), first),
                **options,
            )
            if "mean_field" in methods:
                part["mean_field"] = _mean_field_bound(potentials, features)
            parts.append(part)
        join = inference_module.LogPartition.joined
        return {method: join([part[method] for part in parts]) for method in methods}

    def _default_method(self):
        return "bethe" if are_binary(self.visible, self.hidden) else "ais"

    def log_likelihood(self, x, v, log_partition=None) -> tf.Tensor:
        """Computes `log p(v | x) = -F(v | x) - log Z(x)`.

        Args:
            x: array (B, X).
            v: array (B, V).
            log_partition: `LogPartition` of the same x, or the name of a method to
                compute it with, by default that of `log_partition`.

        Returns:
            tensor (B,), nats, float64. Its error is that of log Z. `"mean_field"`, a
            lower bound of log Z, gives an upper bound, at most 0. With `"bethe"` it may
            exceed 0, which a log probability cannot: then a warning says so.
        """
        visible = self._visible_states(v, "log_likelihood", "v")
        free_energy = tf.cast(self.free_energy(x, visible), tf.float64)
        if log_partition is None:
            log_partition = self._default_method()
        method = log_partition
        if isinstance(log_partition, str):
            log_partition = self.log_partition(x, log_partition)
        value = getattr(log_partition, "value", log_partition)
        value = as_floats("log_partition", value, dtype=tf.float64)
        if value.shape != free_energy.shape:
            raise ValueError(
                "Expected log_partition of the same x, a value for each of "
                f"{len(free_energy)} rows. Received: shape {tuple(value.shape)}. Call "
                "log_partition(x) with it, or pass a method's name."
            )
        score = -free_energy - value
        discrete = self.potentials(as_rows(x)[:1]).visible.finite
        if isinstance(method, str) and method == "mean_field" and discrete:
            return tf.minimum(score, 0.0)
        above = int(tf.reduce_sum(tf.cast(score > _ROUNDING, tf.int32)))
        if isinstance(method, str) and method == "bethe" and above:
            warnings.warn(
                f"The Bethe estimate gives {above} of {len(score)} examples a "
                "log-likelihood above 0, up to "
                f"{float(tf.reduce_max(score)):.3g} nats: it is wrong there. Use "
                "log_partition='ais' or 'exact'.",
                stacklevel=2,
            )
        return score

    def _pairs(self, x, v, method):
        rows = self._feature_rows(x, method)
        visible = self._visible_rows(v, method, "v")
        lengths = rows.shape[0], visible.shape[0]
        if lengths[0] != lengths[1]:
            raise ValueError(
                f"Expected x and v of equal length. Received: lengths {lengths}."
            )
        return rows, visible


def _mean_field_bound(potentials, x):
    """Returns the higher bound of two starts: from x, if it has the width of v."""
    starts = [None]
    if can_start_at(potentials, x):
        starts.append(potentials.visible.statistics(x).bias)
    return mean_field_bound(potentials, starts=starts)
