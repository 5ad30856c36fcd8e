"""Compares estimates of a model's likelihood, and says which one to quote."""

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm._checks import check_counts
from keras_rbm.inference import LogPartition
from keras_rbm.inference.exact import MAX_UNITS
from keras_rbm.inference.potentials import finite_layers
from keras_rbm.inference.traces import full_precision
from keras_rbm.models.boltzmann_machine import BoltzmannMachine
from keras_rbm.models.data.rows import held_rows
from keras_rbm.models.generative_model import energies_of
from keras_rbm.models.layer_variables import potentials_of_any
from keras_rbm.models.rbm import RBM
from keras_rbm.models.scores import log_mass
from keras_rbm.models.training.diagnosis import independent_losses
from keras_rbm.units.bernoulli import are_binary
from keras_rbm.units.unit import Unit

#: The best first.
_PREFERRED = ("exact", "bidirectional", "ais", "reverse_ais", "tempering")


class ScoreReport(NamedTuple):
    """The result of `score_report`, which prints as a table.

    Attributes:
        scores: dict of method to `(value, lower, upper)`, the mean log-likelihood in
            nats per example (for a deep model its lower bound), with the interval that
            follows from that of log Z.
        log_partitions: dict of method to `LogPartition`.
        free_energies: dict of name to array (N,), nats: of the data, and of long chains
            from the base rate and from the data. They are similar for a model that has
            learned its data. Empty for conditional models.
        quote: str, which interval to quote, or why none; and the standard error of the
            mean over the examples, which the intervals of log Z leave out.
        stderr: float, that standard error, nats.
    """

    scores: dict[str, tuple[float, ...]]
    log_partitions: dict[str, LogPartition]
    free_energies: dict[str, np.ndarray]
    quote: str
    stderr: float = math.nan

    def __str__(self):
        rows = [
            (method, f"{value:.3f}", f"[{low:.3f}, {high:.3f}]")
            for method, (value, low, high) in self.scores.items()
        ]
        lines = _table(("log Z by", "nats per example", "interval of log Z"), rows)
        rows = [
            (name, f"{energies.mean():.2f}", f"{energies.std():.2f}")
            for name, energies in self.free_energies.items()
        ]
        if rows:
            lines += ["", *_table(("free energy of", "mean", "deviation"), rows)]
        return "\n".join([*lines, "", self.quote])


def _table(head, rows):
    """Returns the lines of a Markdown table whose columns are aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(cells, fill=" "):
        padded = (f"{c:{fill}<{w}}" for c, w in zip(cells, widths, strict=True))
        return "| " + " | ".join(padded) + " |"

    return [line(head), line(["-"] * len(head), "-"), *map(line, rows)]


def score_report(
    model: BoltzmannMachine,
    x: ArrayLike | tf.data.Dataset,
    v: ArrayLike | None = None,
    *,
    methods: str | Sequence[str] | None = None,
    num_chains: int = 100,
    steps: int = 1000,
    seed: int = 0,
) -> ScoreReport:
    """Estimates a model's mean log-likelihood in several ways, and compares them.

    Units of finitely many states cannot give different examples more than all of the
    probability, so an estimate of log Z is not below the log mass of these, and an
    interval below it has no end.

    Args:
        model: built `RBM`, `InfiniteRBM` or `DBM`; or a `CRBM`, with `v`.
        x: array (N, V) or dataset, examples; for a CRBM its input (N, X), a few hundred
            rows.
        v: array (N, V), the visible states for a CRBM.
        methods: list of methods of `log_partition`, or one; by default enumeration
            if a layer is small enough, annealing forwards and both ways, and if no
            interval is finite then, tempering; for a CRBM enumeration, annealing both
            ways, mean field, and for binary units the Bethe estimate.
        num_chains: int ≥ 2.
        steps: int ≥ 1, sweeps of the long chains.
        seed: int.

    Returns:
        `ScoreReport`. Print it for a table; `keras_rbm.plots.score_report` draws it.

    Raises:
        TypeError: if the model has no log Z, as a DBN.
        ValueError: if the model is not built, or the data do not fit it.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (200, 6)).astype("float32")
    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.compile("sgd")
    >>> history = rbm.fit(data, verbose=0)
    >>> report = keras_rbm.score_report(rbm, data, methods=["exact", "ais"])
    >>> list(report.scores)
    ['exact', 'ais']
    >>> report.quote.startswith("Quote")
    True
    """
    check_counts(2, num_chains=num_chains)
    check_counts(steps=steps)
    if not hasattr(model, "log_partition"):
        raise TypeError(
            "Expected an RBM, InfiniteRBM, DBM or CRBM. Received: "
            f"{type(model).__name__}. For a DBN call dbn.log_likelihood_bound(x)."
        )
    conditional = model.conditional
    if conditional != (v is not None):
        takes = "x and v, inputs and states," if conditional else "only x"
        raise ValueError(
            f"Expected {takes} for {type(model).__name__} '{model.name}'. Received: "
            f"{'no v' if v is None else 'v'}."
        )
    if conditional:
        v = model._visible_states(v, "score_report", "v")
    else:
        x = held_rows(model._visible_states(x, "score_report"))
    if isinstance(methods, str):
        methods = [methods]
    listed = methods is None or isinstance(methods, (list, tuple))
    if not listed or methods is not None and not methods:
        raise ValueError(
            "Expected a list of at least one method, or None. Received: methods="
            f"{methods!r:.200}."
        )
    by_default = methods is None
    if by_default:
        methods = _methods(model, conditional)
    inputs = (x, methods) if conditional else (methods,)
    with warnings.catch_warnings():  # the table and the quote say the same
        warnings.filterwarnings("ignore", r"log_partition\(", UserWarning)
        options = {"num_chains": num_chains, "seed": seed}
        parts = model._log_partitions(*inputs, **options)
        known = any(np.all(part.is_finite) for part in parts.values())
        if by_default and not conditional and not known:
            parts |= model._log_partitions(["tempering"], **options)
    if conditional:
        energies, free = model.free_energy(x, v), {}
    else:
        free = _free_energies(model, x, steps, seed)
        energies = free["data"]
        least = log_mass(model, x, energies)
        parts = {method: z.at_least(least) for method, z in parts.items()}
    energies = tf.cast(energies, tf.float64)
    scores = {
        method: tuple(
            float(tf.reduce_mean(-energies - end))
            for end in (z.value, z.upper, z.lower)
        )
        for method, z in parts.items()
    }
    quote, method = _quote(scores)
    if method is not None and not hasattr(model, "free_energy"):
        quote += " It is a lower bound: the hidden layers are by mean field."
    stderr = _stderr(energies, parts.get(method))
    if math.isfinite(stderr):
        count = energies.shape[0]
        quote += f" Standard error over these {count} examples: {stderr:.3f}."
    return ScoreReport(scores, parts, free, quote, stderr)


def baseline_log_likelihood(
    train: ArrayLike, test: ArrayLike, visible: str | Unit = "bernoulli"
) -> np.ndarray:
    """Computes log p of rows by columns that do not depend on one another.

    What a model has learned of how columns go together is what it gains over this.

    Args:
        train: array (N, V), to whose columns one at a time units are fitted, as
            `RBM.adapt` does. NaN is unknown.
        test: array (n, V). NaN is left out.
        visible: str or `keras_rbm.units.Unit`, what the columns are.

    Returns:
        array (n,), nats.

    Raises:
        ValueError: if values are no states of the units.

    Example:

    >>> train = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> log_likelihood = keras_rbm.baseline_log_likelihood(train, [[1.0, 1.0]])
    >>> print(log_likelihood.round(2), np.log([0.5 * 0.75]).round(2))
    """
    model = RBM(1, visible=visible, missing="latent")
    model.build((None, np.shape(train)[-1]))
    train, test = (
        np.asarray(model._visible_states(rows, "baseline_log_likelihood"), np.float32)
        for rows in (train, test)
    )
    return -np.nansum(independent_losses(model, train, test), 1)


def _stderr(energies, z):
    """Returns the standard error of the mean log-likelihood over examples."""
    if z is not None and np.ndim(z.value):  # of a CRBM: one for each example
        energies += tf.cast(z.value, tf.float64)
    count = energies.shape[0]
    if count < 2:
        return math.nan
    return float(tf.math.reduce_std(energies)) / math.sqrt(count - 1)


def _methods(model, conditional):
    sizes = finite_layers(potentials_of_any(model)).values()
    small = any(size <= MAX_UNITS for size in sizes)
    exact = ["exact"] if small else []
    if conditional:
        bethe = ["bethe"] if are_binary(model.visible, model.hidden) else []
        return [*exact, "bidirectional", "mean_field", *bethe]
    return [*exact, "ais", "bidirectional"]


@full_precision()
def _free_energies(model, rows, steps, seed):
    # Chains with the same seed would meet, and be one chain from then on.
    some = rows[: min(len(rows), 100)]
    chains = {
        "chains from the base rate": model.sample(len(some), steps=steps, seed=seed),
        "chains from the data": model.sample(
            len(some), steps=steps, initial_visible=some, seed=random.fold_in(seed, 1)
        ),
    }
    return {
        name: energies_of(model, x).numpy()
        for name, x in ({"data": rows} | chains).items()
    }


def _quote(scores):
    """Returns a sentence, which interval to quote, and its method or `None`."""
    known = {
        method: score
        for method, score in scores.items()
        if all(map(math.isfinite, score)) and method in _PREFERRED
    }
    if not known:
        least = [(high, m) for m, (_, _, high) in scores.items() if math.isfinite(high)]
        if not least:
            return "Quote none: no estimate has a known error.", None
        high, method = min(least)
        sentence = (
            "Quote none: no interval is finite. The mean log-likelihood is at most "
            f"{high:.2f} nats, by {method!r}."
        )
        return sentence, method
    best = min(known, key=_PREFERRED.index)
    value, low, high = known[best]
    against = [
        method
        for method, (_, other_low, other_high) in known.items()
        if other_low > high or other_high < low
    ]
    if against and best != "exact":
        sentence = (
            f"Quote none: {best!r} and {', '.join(map(repr, against))} contradict each "
            "other. Anneal at ten times as many temperatures."
        )
        return sentence, best
    if best == "exact":
        return f"Quote {value:.3f} nats: log Z is enumerated.", best
    return f"Quote {value:.3f} nats, [{low:.3f}, {high:.3f}], by {best!r}.", best
