"""What NaN among the states stands for, and what a model says of such rows."""

import math
import warnings

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference import LogPartition, missing
from keras_rbm.inference.arguments import check_sizes
from keras_rbm.inference.missing import filled, is_known
from keras_rbm.inference.potentials import finite_layers
from keras_rbm.inference.traces import full_precision
from keras_rbm.models.data.row_checks import check_columns, warn_of_no_zeros
from keras_rbm.models.layer_variables import check_fingerprint, visible_parameters
from keras_rbm.models.scores import check_method, log_partitions
from keras_rbm.rules import ContrastiveDivergence, ParallelTempering

#: Rows whose chains run at once.
_ROWS_AT_ONCE = 1000
#: Chains of a row of bits or categories, and the error of a mean that is told.
_CHAINS, _LARGE_ERROR = 4, 0.1  # of the range of a unit's states
#: Sweeps of the chains of an exported model.
_EXPORTED_STEPS = 200
#: Binary hidden units that are enumerated for each row, rather than annealed.
_ENUMERATED = 14
#: Updates of mean field that find features of rows with latent states.
_MEAN_FIELD_UPDATES = 10
#: Sweeps of the chains that draw unknown values in each step. By default the rule's own
#: chains take as many: unknown values follow the model, and would pull along one that
#: its chains fall behind.
_SWEEPS = 10


class Latent:
    """NaN is a state that is there, but not known: it is drawn, or summed over.

    Attributes:
        has_gaps: bool, whether data may have NaN.
        has_own_models: bool, whether each example has a model of its own.
    """

    has_gaps = True
    has_own_models = False

    def default_rule(self):
        """Returns the rule that `compile` takes by default."""
        return ParallelTempering(_SWEEPS)

    def check_data(self, states, unit, name):
        """Checks all states of an array, before a `fit`."""
        self.check_columns(states, name)
        warn_of_no_zeros(states, unit)

    def check_columns(self, states, name):
        """Raises a ValueError if a column is not known in any row."""
        check_columns(states, name)

    def pooled(self, unit):
        """Returns the argument `pooled` of `moments` for a `Unit`."""
        return None

    def features(self, known):
        """Returns what potentials depend on, given which states are known."""
        return None

    def completed(self, potentials, states, known, base, seed):
        """Returns states with a draw in the place of those that are not known.

        Args:
            potentials: `Potentials`.
            states: tensor (B, V), any where not known.
            known: bool tensor (B, V).
            base: tensor (rows,), natural parameters without coupling.
            seed: seed tensor (2,).
        """

        def drawn():
            return missing.complete(potentials, states, known, base, seed, _SWEEPS)

        return tf.cond(tf.reduce_all(known), lambda: states, drawn)

    def hidden_natural(self, model, inputs):
        """Returns hidden natural parameters given what is known, by mean field."""
        known, states = is_known(inputs), filled(inputs)
        potentials = model.potentials()
        units = potentials.visible
        encoded, rows = units.encode(states), missing.known_rows(units, known)
        means = tf.where(rows, encoded, units.mean(model._base_natural(potentials)))
        for _ in range(_MEAN_FIELD_UPDATES):
            hidden = potentials.hidden.mean(potentials.hidden_natural_of_mean(means))
            expected = units.mean(potentials.visible_natural_of_mean(hidden))
            means = tf.where(rows, encoded, expected)
        return potentials.hidden_natural_of_mean(means)

    def log_partition(self, model, values, method=None, **options):
        """Estimates, for each row, log Z of the model in which what is known is fixed.

        Args:
            model: a built model without input.
            values: array (N, V), NaN where not known.
            method: str, or `None` for `"exact"` if the hidden layer is small enough to
                enumerate it for each row, else `"ais"`.
            **options: as for `CRBM.log_partition`.

        Returns:
            `LogPartition`, fields (N,), nats.
        """
        potentials = model.potentials(dtype=model.variable_dtype)
        method = method or _default_method(potentials)
        check_method(method)
        values = tf.constant(values, tf.float32)
        few = missing.rows_with_few_unknown(potentials, values.numpy())
        parts = []
        if few.any():
            with full_precision():
                sums, _ = missing.sums_over_unknown(potentials, values[few].numpy())
            parts.append(LogPartition.exact(sums))
        if not few.all():
            rows = values[~few]
            estimate = log_partitions(
                lambda rows: missing.given(potentials, rows)[0],
                rows,
                [method],
                **options,
            )[method]
            shift = tf.cast(missing.given(potentials, rows)[1], tf.float64)
            parts.append(_shifted(estimate, shift))
        order = np.argsort(np.concatenate([np.flatnonzero(few), np.flatnonzero(~few)]))
        return _reordered(parts, order)

    def log_likelihood(self, model, values, log_partition):
        """Returns log p of what is known of each row, (N,), float64, nats."""
        if log_partition is None:  # exact if the rows' own models are
            potentials = model.potentials(dtype=model.variable_dtype)
            log_partition = _default_method(potentials)
        joint = model._log_partition_value(log_partition)
        method = log_partition if isinstance(log_partition, str) else None
        return self.log_partition(model, values, method).value - joint

    def means(self, model, values, steps, seed):
        """Returns means (N, rows) of the encoded visible states given what is known.

        Args:
            model: a built model without input.
            values: array (N, V), states, NaN where not known.
            steps: int ≥ 1, sweeps of the chains of rows of which much is unknown.
            seed: int.
        """
        check_sizes(steps=steps)
        potentials = model.potentials(dtype=model.variable_dtype)
        base = model._base_natural(potentials)
        means = np.zeros((len(values), int(potentials.visible.num_rows)), np.float32)
        with full_precision():
            few = missing.rows_with_few_unknown(potentials, values)
            if few.any():
                means[few] = missing.sums_over_unknown(potentials, values[few], True)[1]
            rest, errors = np.flatnonzero(~few), np.zeros(len(values))
            chains = _CHAINS if potentials.visible.finite else 1
            units = potentials.visible
            spans = np.ptp(units.mean(units.ends), axis=0)
            spans = np.where(spans > 0.0, spans, 1.0)  # of probabilities
            for rows in np.split(rest, range(_ROWS_AT_ONCE, len(rest), _ROWS_AT_ONCE)):
                if len(rows):
                    fresh = random.fold_in(random.as_seed(seed), int(rows[0]))
                    copies = np.tile(values[rows], (chains, 1))
                    found = means_by_chains(potentials, copies, base, steps, fresh)
                    found = np.reshape(found, (chains, len(rows), -1))
                    means[rows] = found.mean(0)
                    spread = (found.std(0) / spans).max(-1)
                    errors[rows] = spread / math.sqrt(_CHAINS - 1)
        if errors.max(initial=0.0) > _LARGE_ERROR:
            warnings.warn(
                f"Means of {np.sum(errors > _LARGE_ERROR)} of {len(values)} rows are "
                f"uncertain, by up to {errors.max():.0%}: {_CHAINS} chains differ, and "
                f"have not forgotten where they started. Use steps={10 * steps}.",
                stacklevel=3,
            )
        return tf.constant(means)

    def draws(self, model, values, steps, seed):
        """Returns states (N, V): what is not known is drawn given what is."""
        check_sizes(steps=steps)
        potentials = model.potentials(dtype=model.variable_dtype)
        with full_precision():
            base = model._base_natural(potentials)
            return draws_by_chains(potentials, values, base, steps, seed)

    def imputed(self, model, visible):
        """Returns what `impute` does by chains, for an exported model."""
        potentials = model.potentials(dtype=model.variable_dtype)
        chains = _chains(visible, model._base_natural(potentials), _EXPORTED_STEPS, 0)
        means, _ = missing.chain_means(potentials, *chains)
        return filled(visible, potentials.visible.state_like(means))


class Complete(Latent):
    """Data have no NaN; asked of rows with NaN, a model takes them as latent states."""

    has_gaps = False

    def default_rule(self):
        return ParallelTempering()

    def check_data(self, states, unit, name):
        pass

    def check_columns(self, states, name):
        pass

    def completed(self, potentials, states, known, base, seed):
        return states

    def hidden_natural(self, model, inputs):
        return model._natural_of_mean(model.visible.encode(inputs))


class Absent(Latent):
    """NaN is a unit that the example does not have, so each has a model of its own."""

    has_own_models = True

    def default_rule(self):
        return ContrastiveDivergence()

    def check_columns(self, states, name):
        pass

    def pooled(self, unit):
        return unit.pooled

    def features(self, known):
        return tf.cast(known, tf.float32)

    def completed(self, potentials, states, known, base, seed):
        return states

    def hidden_natural(self, model, inputs):
        units = visible_parameters(model)
        encoded = units.encode(filled(inputs))
        return self._of_rows(model, inputs).hidden_natural_of_mean(encoded)

    def log_partition(self, model, values, method=None, **options):
        """Estimates log Z of the model of the units that each row has."""
        potentials = model.potentials(dtype=model.variable_dtype)
        method = method or _default_method(potentials)
        check_method(method)
        values = tf.constant(values, tf.float32)
        models = lambda rows: self._of_rows(model, rows)  # noqa: E731
        return log_partitions(models, values, [method], **options)[method]

    def log_likelihood(self, model, values, log_partition):
        if log_partition is None or isinstance(log_partition, str):
            log_partition = self.log_partition(model, values, log_partition)
        check_fingerprint(model, log_partition)
        value = getattr(log_partition, "value", log_partition)
        value = tf.cast(value, tf.float64)
        if value.shape.rank != 1 or len(value) != len(values):
            raise ValueError(
                "Expected log_partition of the same rows, which have models of their "
                f"own, a value for each of {len(values)}. Received: shape "
                f"{tuple(value.shape)}. Pass log_partition(observed=x), or a method's "
                "name."
            )
        return -tf.cast(model.free_energy(values), tf.float64) - value

    def means(self, model, values, steps, seed):
        check_sizes(steps=steps)
        starts = range(0, len(values), _ROWS_AT_ONCE)
        with full_precision():
            parts = (values[first : first + _ROWS_AT_ONCE] for first in starts)
            return tf.concat([self._means(model, tf.constant(p)) for p in parts], 0)

    def draws(self, model, values, steps, seed):
        means = self.means(model, values, steps, seed)
        units = visible_parameters(model)
        return units.draw(units.natural_for_expected(means), seed)

    def imputed(self, model, visible):
        means = self._means(model, visible)
        return filled(visible, visible_parameters(model).state_like(means))

    def _of_rows(self, model, rows):
        return model.potentials(self.features(is_known(rows)), model.variable_dtype)

    def _means(self, model, rows):
        models = self._of_rows(model, rows)
        return missing.means_if_present(models, filled(rows), is_known(rows))


_KINDS = {None: Complete, "latent": Latent, "absent": Absent}


def kind_of(name):
    """Returns the kind that the argument `missing` of a model names."""
    if not (name is None or isinstance(name, str)) or name not in _KINDS:
        raise ValueError(
            "Expected missing as 'latent' (there, but not known), 'absent' (not part "
            f"of the example), or None. Received: missing={name!r}."
        )
    return _KINDS[name]()


def _default_method(potentials):
    states = finite_layers(potentials).get("hidden", np.inf)
    return "exact" if states <= _ENUMERATED else "ais"


def _shifted(estimate, shift):
    """Returns an estimate of log Z plus known numbers (N,)."""
    names = "value", "lower", "upper", "log_weights"
    return estimate._replace(**{n: getattr(estimate, n) + shift for n in names})


def _reordered(parts, order):
    """Returns parts as one estimate, with its models in another order."""
    most = max(len(part.log_weights) for part in parts)
    parts = [
        part._replace(
            log_weights=tf.broadcast_to(part.log_weights, (most, len(part.value)))
            if len(part.log_weights) == 1
            else part.log_weights
        )
        for part in parts
    ]
    *fields, note, _ = LogPartition.joined(parts)
    gathered = (tf.gather(field, order, axis=-1) for field in fields)
    return LogPartition(*gathered, note)  # type: ignore[call-arg]


def means_by_chains(potentials, values, base, steps, seed):
    """Returns means (N, rows) of the encoded visible states, by a chain for each row.

    Args:
        potentials: `Potentials`, of one model or N.
        values: array (N, V), states, NaN where not known.
        base: tensor (rows,) or (N, rows), where chains begin.
        steps: int ≥ 1.
        seed: int or seed tensor (2,).
    """
    return missing.chain_means(potentials, *_chains(values, base, steps, seed))[0]


def draws_by_chains(potentials, values, base, steps, seed):
    """Returns states (N, V) that chains reach, see `means_by_chains`."""
    return missing.draw_unknown(potentials, *_chains(values, base, steps, seed))


def _chains(values, base, steps, seed):
    """Returns what chains that keep known states take, but for the model."""
    rows = tf.convert_to_tensor(values)
    start = filled(rows), is_known(rows), base, random.as_seed(seed)
    return *start, tf.constant(steps)


def check_filling(method):
    """Raises a ValueError unless it is a way to fill gaps."""
    if not isinstance(method, str) or method not in ("mean", "mode", "sample"):
        raise ValueError(
            "Expected method as one of 'mean', 'mode', 'sample'. Received: "
            f"method={method!r:.200}."
        )


def imputed(units, values, method, means, draws):
    """Returns states (N, V) in which gaps are filled.

    Args:
        units: `LayerParameters`.
        values: array (N, V), NaN where not known.
        method: `"mean"`, `"mode"` or `"sample"`.
        means, draws: functions that return means (N, rows), or states (N, V).
    """
    check_filling(method)
    if method == "sample":
        states = draws()
    elif method == "mean":
        states = units.state_like(means())
    else:
        states = units.mode(units.natural_for_mean(means()))
    return filled(tf.constant(values), states)


def entries(visible, known, prediction, weights):
    """Returns each entry as an example of its own, with weight 0 if it is not known.

    Args:
        visible: tensor (B, V), any where not known.
        known: bool tensor (B, V).
        prediction: tensor (B, V), or (B, q) of one unit of q categories.
        weights: tensor of B numbers, or `None`.

    Returns:
        tensors (B V, 1), (B V, 1) or (B, q), and (B V,).
    """
    known = tf.cast(known, prediction.dtype)
    if weights is not None:
        known *= tf.reshape(tf.cast(weights, known.dtype), (-1, 1))
    states = tf.reshape(visible, (-1, 1))
    if visible.shape[-1] == prediction.shape[-1]:
        prediction = tf.reshape(prediction, (-1, 1))
    return states, prediction, tf.reshape(known, [-1])
