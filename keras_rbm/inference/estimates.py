"""An estimate of the partition function and its error."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.inference.weights import effective_sample_size, pareto_k

#: Chance that a one-sided bound by Markov's inequality is wrong, and its price in nats.
ALPHA = 0.05
MARKOV = -math.log(ALPHA)
#: The same for two bounds that hold together.
HALF_MARKOV = -math.log(ALPHA / 2.0)
#: Standard errors on either side of an estimate whose weights behave well.
WIDTH = 3.0
#: Fewest chains, or families of chains, whose spread gives an error.
FEWEST = 10
#: Log weights with a heavier tail have no error that could be estimated.
LARGEST_PARETO_K = 0.7
#: The tail is tested only if the largest weight is this many times the mean: the tail
#: of nearly equal weights is random.
_LARGE_WEIGHT = 2.0
#: Rounding of float32, relative to log Z.
_ROUNDING = 3e-7
#: Why an end of an interval is open, and what to do, by method.
_REASONS = {
    "ais": "its chains' weights vary too much",
    "reverse_ais": "its chains' weights vary too much",
    "tempering": "replicas exchange or travel too rarely",
}
_CURES = {
    "tempering": "Use method='bidirectional', or precision=0.05 for more sweeps.",
    "ais": "Use method='bidirectional', or ten times as many chains, or precision=0.05 "
    "for up to 10,000 temperatures.",
}
_CURE = (
    "Use ten times as many chains (by default 100), or precision=0.05 for up to 10,000 "
    "temperatures."
)


class LogPartition(NamedTuple):
    """An estimate of log Z, in nats; fields are numbers, or (B,) for B models.

    `float` of that of one model is its value.

    The interval from `lower` to `upper` contains log Z in at least 95 % of cases,
    provided that chains have met the model's modes. An end that is not known is
    infinite; then `note` says why, and what to do.

    Attributes:
        value: the estimate.
        stderr: its standard error: 0 if exact, infinite if it cannot be estimated,
            NaN if the method has none (`"bethe"`, `"mean_field"`).
        lower: lower end of the interval: three standard errors of Z below the
            estimate if the weights behave well, else by Markov's inequality, see
            `from_log_weights`.
        upper: upper end.
        ess: effective sample size, of the number of chains.
        log_weights: (M,) or (M, B), each chain's estimate of log Z.
        note: str, a remark about the interval, or `""`.
        fingerprint: int that tells the model's parameters from others; 0 if not known.
    """

    value: tf.Tensor
    stderr: tf.Tensor
    lower: tf.Tensor
    upper: tf.Tensor
    ess: tf.Tensor
    log_weights: tf.Tensor
    note: str = ""
    fingerprint: int = 0

    def __float__(self):
        return float(self.value)

    @property
    def is_finite(self) -> tf.Tensor:
        """Bools, () or (B,): whether both ends of the interval are finite."""
        width = self.upper - self.lower
        return tf.math.is_finite(width) if tf.is_tensor(width) else math.isfinite(width)

    @classmethod
    def joined(cls, parts: "Sequence[LogPartition]") -> "LogPartition":
        """Returns the estimates of several batches of models as one."""
        if len(parts) == 1:
            return parts[0]
        *fields, notes, _ = zip(*parts, strict=True)
        ends = np.cumsum([part.value.shape[0] for part in parts])
        remarks = [
            f"Rows {end - part.value.shape[0]} to {end - 1}: {part.note}"
            for part, end in zip(parts, ends, strict=True)
            if part.note
        ]
        if len(remarks) > 1:
            remarks[1:] = [f"({len(remarks) - 1} later parts have remarks, too.)"]
        return cls(*(tf.concat(field, -1) for field in fields), " ".join(remarks))  # type: ignore[call-arg]

    @classmethod
    def exact(cls, value: ArrayLike) -> "LogPartition":
        """Returns a known log Z as a LogPartition."""
        value = tf.cast(value, tf.float64)
        zero = tf.zeros_like(value)
        infinite = tf.fill(tf.shape(value), tf.constant(math.inf, tf.float64))
        return cls(value, zero, value, value, infinite, value[tf.newaxis])

    @classmethod
    def without_error(
        cls,
        value: ArrayLike,
        lower: ArrayLike = math.nan,
        upper: ArrayLike = math.nan,
        note: str = "",
    ) -> "LogPartition":
        """Returns a deterministic estimate of log Z whose error is not known."""
        value = tf.cast(value, tf.float64)
        unknown = tf.fill(tf.shape(value), tf.constant(math.nan, tf.float64))
        lower, upper = (
            tf.zeros_like(value) + tf.cast(x, value.dtype) for x in (lower, upper)
        )
        return cls(value, unknown, lower, upper, unknown, value[tf.newaxis], note)

    @classmethod
    def of_error(
        cls, value: tf.Tensor, stderr: tf.Tensor, ess: tf.Tensor, log_weights: tf.Tensor
    ) -> "LogPartition":
        """Returns an estimate with a normal error: three errors on either side.

        An unknown error is infinite, and then so are both ends.
        """
        stderr = with_rounding(stderr, value)
        margin = WIDTH * stderr
        return cls(value, stderr, value - margin, value + margin, ess, log_weights)

    @classmethod
    def from_log_weights(
        cls, log_weights: tf.Tensor, reverse: bool = False
    ) -> "LogPartition":
        """Returns the estimate that unbiased weights of Z imply.

        `E[w] = Z`, so `log Z ~ logmeanexp(log w)`, with the standard error of the delta
        method, `sd(w) / (sqrt(M) mean(w))`. If a generalized Pareto distribution of
        the largest weights has a shape below 0.7 [1], or the largest is less than
        twice the mean, and there are at least ten, the interval is
        `log(Z ± 3 standard errors)`. Otherwise, or if the lower end of that is not
        positive, only Markov's inequality is known,
        `P(log mean w ≥ log Z + a) ≤ exp(-a)`: the interval is
        `[value - log 20, inf)`, at 95 %.

        Args:
            log_weights: tensor (M,) or (M, B).
            reverse: bool. If `True` the weights are of chains that were annealed back
                from exact samples, `E[1 / w] = 1 / Z`: all as above with opposite
                signs, and otherwise the interval is `(-inf, value + log 20]`.

        References:
            1. Vehtari, Simpson, Gelman, Yao, Gabry. Pareto smoothed importance
               sampling. JMLR 2024.
        """
        log_weights = tf.cast(log_weights, tf.float64)
        signed = -log_weights if reverse else log_weights
        value, stderr, ess = weighted(signed)
        equal = tf.reduce_max(signed, 0) - value < math.log(_LARGE_WEIGHT)
        light = equal | (pareto_k(signed) < LARGEST_PARETO_K)
        enough = len(signed) >= FEWEST
        known = (WIDTH * stderr < 1.0) & light & enough
        infinite = tf.constant(math.inf, tf.float64)
        error = with_rounding(stderr, value)
        below = value + tf.math.log1p(-tf.minimum(WIDTH * error, 1.0))
        lower = tf.where(known, below, value - MARKOV)
        upper = tf.where(known, value + tf.math.log1p(WIDTH * error), infinite)
        stderr = tf.where(known, error, infinite)
        if reverse:
            value, lower, upper = -value, -upper, -lower
        return cls(value, stderr, lower, upper, ess, log_weights)

    def as_numbers(self) -> "LogPartition":
        """Returns the estimate; of a single model, fields are floats and no tensors."""
        if np.ndim(self.value) or not hasattr(self.value, "numpy"):
            return self
        numbers: dict[str, Any] = {
            name: np.float64(getattr(self, name))
            for name in ("value", "stderr", "lower", "upper", "ess")
        }
        return self._replace(**numbers)

    def without_refuted_upper_end(
        self, lower_bound: float | np.ndarray
    ) -> "LogPartition":
        """Returns the estimate, with no upper end if log Z is known to be larger.

        Args:
            lower_bound: float or array (B,), of log Z.
        """
        bound = tf.reshape(tf.cast(lower_bound, tf.float64), tf.shape(self.value))
        refuted = self.upper < bound
        infinite = tf.constant(math.inf, tf.float64)
        return self._replace(
            lower=tf.where(refuted, bound, self.lower),
            upper=tf.where(refuted, infinite, self.upper),
            stderr=tf.where(refuted, infinite, self.stderr),
            note="other estimates find more mass"
            if tf.reduce_any(refuted)
            else self.note,
        )

    def with_open_ends(self, reason: str) -> "LogPartition":
        """Returns the estimate, of which nothing is known, with the reason as note."""
        infinite = tf.fill(tf.shape(self.value), tf.constant(math.inf, tf.float64))
        return self._replace(
            stderr=infinite, lower=-infinite, upper=infinite, note=reason
        )

    def at_least(self, bound: float) -> "LogPartition":
        """Returns the estimate, knowing that log Z is not below a bound, in nats.

        An interval that lies below the bound has no upper end.
        """
        certain = tf.constant(bound, tf.float64)
        result = self.without_refuted_upper_end(certain)
        lower = tf.where(result.lower >= certain, result.lower, certain)  # also for NaN
        return result._replace(value=tf.maximum(result.value, certain), lower=lower)

    def explained(self, method: str, remark: str = "") -> "LogPartition":
        """Returns the estimate with a note: the remark, or why an end is open.

        Args:
            method: str, the method's name.
            remark: str, added to the note.
        """
        finite = np.ravel(self.is_finite)
        if finite.all():
            return self._replace(note=remark)
        if finite.size > 1:
            which, known = f" of {np.sum(~finite)} of {finite.size} models", ""
        else:
            which = ""
            ends = [("at least", self.lower), ("at most", self.upper)]
            ends = [(words, np.ravel(end)[0]) for words, end in ends]
            known = "".join(f" It is {k} {v:.2f}." for k, v in ends if np.isfinite(v))
        note = (
            f"The error of log Z{which} is not known: {self.note or _REASONS[method]}."
            f"{known} {_CURES.get(method, _CURE)} {remark}"
        )
        return self._replace(note=note.rstrip())

    def __repr__(self):
        if tf.is_tensor(self.value) and not hasattr(self.value, "numpy"):
            return f"LogPartition(value={self.value})"
        if np.ndim(self.value):
            return f"LogPartition of {len(self.value)} models: value={self.value}"
        text = (
            f"LogPartition({self.value:.3f} ± {self.stderr:.3g} nats, "
            f"[{self.lower:.3f}, {self.upper:.3f}], ess {self.ess:.3g})"
        )
        return f"{text}: {self.note}" if self.note else text


def weighted(log_weights):
    """Returns the log mean of weights (M,) or (M, B), its error, and their ESS."""
    chains = tf.cast(tf.shape(log_weights)[0], tf.float64)
    value = tf.reduce_logsumexp(log_weights, 0) - tf.math.log(chains)
    weights = tf.exp(log_weights - value)
    variance = tf.reduce_sum(tf.square(weights - 1.0), 0) / (chains - 1.0)
    return value, tf.sqrt(variance / chains), effective_sample_size(log_weights)


def with_rounding(stderr, value):
    """Returns standard errors that include the rounding of float32."""
    return tf.sqrt(tf.square(stderr) + tf.square(_ROUNDING * value))
