"""A model's weights for NumPy: rows are scored where TensorFlow is not."""

import functools
import json
import os
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keras_rbm_frozen.units import KINDS, Joined, all_states, log_sum_exp

#: Written into each file; a reader refuses later ones.
VERSION = 1
#: Numbers of a part of the rows that are held at once, so that they stay in the cache.
_AT_ONCE = 2**17
#: What reading a file that is another, or damaged, can end in.
_BROKEN = (
    *(AttributeError, EOFError, IndexError, KeyError, TypeError, ValueError),
    zipfile.BadZipFile,
)
#: Most states of a layer over which log Z of a conditional model is summed.
_MOST_STATES = 2**14


class Scorer:
    """What `rbm.scorer()` returns: arrays of NumPy that score rows.

    It can be pickled, sent to the workers of Spark, Ray or Dask, and saved as one file.
    Importing `keras_rbm_frozen` does not import TensorFlow. Rectified units need SciPy.

    Attributes:
        arrays: dict of float32 arrays, the parameters.
        layers: dict of `"visible"` and `"hidden"` to lists of `(kind, units)`.
        log_partition: log Z and the ends of its interval, nats, as they were estimated;
            `None` of a conditional model, whose log Z(x) is enumerated.

    Example:

    >>> rows = np.random.default_rng(0).integers(0, 2, (100, 6))
    >>> rbm = keras_rbm.RBM(3, seed=0)
    >>> rbm.compile()
    >>> history = rbm.fit(rows, verbose=0)
    >>> scorer = rbm.scorer()
    >>> bool(np.allclose(scorer.score(rows), rbm.log_likelihood(rows), atol=1e-4))
    True
    """

    def __init__(
        self,
        arrays: dict[str, np.ndarray],
        layers: dict[str, list[tuple[str, int]]],
        log_partition: Sequence[float] | None = None,
    ) -> None:
        self.arrays = arrays
        self.layers = layers
        self.log_partition = log_partition

    def score(self, rows: ArrayLike, *, x: ArrayLike | None = None) -> np.ndarray:
        """Returns log p(v), or log p(v | x), of rows: (N,), nats, float64.

        Args:
            rows: array (N, V), states.
            x: array (N, X), of a `CRBM`.

        Raises:
            ValueError: if rows are no states, or x is missing.
        """
        if self.log_partition is None and "hidden_kernel" not in self.arrays:
            raise ValueError(
                "Expected a scorer with log Z. Received: one without. Use free_energy, "
                "or make it by rbm.scorer()."
            )
        energies = self.free_energy(rows, x=x)
        if x is None:
            return -energies - self.log_partition[0]
        return -energies - self._log_partitions(np.asarray(x, np.float32))

    def free_energy(self, rows: ArrayLike, *, x: ArrayLike | None = None) -> np.ndarray:
        """Returns F(v), (N,), nats, float64; rows and x as for `score`."""
        return self._by_parts(self._free_energy, rows, x)

    def features(self, rows: ArrayLike, *, x: ArrayLike | None = None) -> np.ndarray:
        """Returns the means of the hidden units, (N, H), float32."""

        def means(rows, *inputs):
            first = self._visible.first(rows)
            return self._hidden.mean(self._natural("hidden", first, *inputs))

        return self._by_parts(means, rows, x).astype(np.float32)

    def sample_conditional(
        self,
        rows: ArrayLike,
        *,
        x: ArrayLike | None = None,
        steps: int = 100,
        seed: int | None = None,
    ) -> np.ndarray:
        """Draws what is not known, given the rest of its row, by Gibbs chains.

        Args:
            rows: array (N, V), NaN where a state is drawn.
            x: array (N, X), of a `CRBM`.
            steps: int ≥ 1, sweeps of each chain.
            seed: int or `None`.

        Returns:
            array (N, V), float32, whose known values are unchanged.
        """
        if not (isinstance(steps, int | np.integer) and steps >= 1):
            raise ValueError(f"Expected steps as an int ≥ 1. Received: {steps!r}.")
        rng = np.random.default_rng(seed)

        def drawn(rows, *inputs):
            known = ~np.isnan(rows)
            first = np.zeros((len(rows), self._hidden.rows), np.float32)
            for _ in range(steps + 1):
                natural = self._natural("visible", first, *inputs)
                states = np.where(known, rows, self._visible.draw(natural, rng))
                first = self._visible.first(states.astype(np.float32))
                natural = self._natural("hidden", first, *inputs)
                hidden = self._hidden.draw(natural, rng).astype(np.float32)
                first = self._hidden.first(hidden)
            return states

        return self._by_parts(drawn, rows, x, takes_gaps=True).astype(np.float32)

    def save(self, path: str | os.PathLike) -> None:
        """Writes one `.npz` file, whole or not at all."""
        about = json.dumps([VERSION, self.layers, self.log_partition])
        part = f"{os.fspath(path)}.part"
        with open(part, "wb") as file:
            everything: dict[str, Any] = {"about": np.array(about)} | self.arrays
            np.savez(file, **everything)
        os.replace(part, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Scorer":
        """Returns a scorer from a file that `save` has written.

        Raises:
            ValueError: if it is another file, or of a later version.
        """
        try:
            # Opened here: NumPy leaves a file open that is no archive.
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as held:
                arrays = dict(held)
            version, *about = json.loads(str(arrays.pop("about")))
            if version <= VERSION:
                layers, log_partition = about
                scorer = cls(arrays, layers, log_partition)
                # Made here, so that what is missing is noticed here.
                scorer._natural("hidden", np.zeros((1, scorer._visible.rows)))
                scorer._hidden.total(np.zeros((1, scorer._hidden.rows), np.float32))
                return scorer
        except _BROKEN as error:
            raise ValueError(
                f"Expected a file that Scorer.save has written. Received: {path!r}."
            ) from error
        raise ValueError(
            f"Expected a file of version {VERSION} at most. Received: {version} in "
            f"{path!r}. Update keras_rbm."
        )

    def __getstate__(self):
        names = "arrays", "layers", "log_partition"
        return {name: getattr(self, name) for name in names}

    def _layer(self, side):
        parts = []
        for number, (kind, units) in enumerate(self.layers[side]):
            prefix = f"{side}_{number}_"
            fields = {
                name.removeprefix(prefix): array
                for name, array in self.arrays.items()
                if name.startswith(prefix)
            }
            parts.append(KINDS[kind](units, **fields))
        return parts[0] if len(parts) == 1 else Joined(parts)

    _visible = functools.cached_property(lambda self: self._layer("visible"))
    _hidden = functools.cached_property(lambda self: self._layer("hidden"))

    def _bias(self, side, inputs):
        """Returns a layer's bias, (rows,) or given x (N, rows)."""
        bias = self.arrays[f"{side}_bias"]
        return (
            inputs @ self.arrays[f"{side}_kernel"] + bias
            if inputs is not None
            else bias
        )

    def _natural(self, side, first, inputs=None):
        """Returns natural parameters given the other layer's first statistics."""
        kernel = self.arrays["kernel"]
        natural = first @ (kernel if side == "hidden" else kernel.T)
        natural += self._bias(side, inputs)
        return natural

    def _free_energy(self, rows, inputs=None):
        first = self._visible.first(rows)
        bias = self._bias("visible", inputs)
        own = first @ bias if bias.ndim == 1 else (first * bias).sum(1)
        hidden = self._hidden.total(self._natural("hidden", first, inputs))
        return -(own.astype(np.float64) + self._visible.base(rows) + hidden)

    @functools.cached_property
    def _states(self):
        """The side whose states are summed over, and these."""
        found = {
            side: all_states(units, _MOST_STATES)
            for side, units in (("hidden", self._hidden), ("visible", self._visible))
        }
        found = {side: states for side, states in found.items() if states is not None}
        if not found:
            raise ValueError(
                f"Expected a layer of at most {_MOST_STATES} states, over which log "
                "Z(x) is summed. Received: two larger ones. Use free_energy, or an "
                "exported model."
            )
        side = min(found, key=lambda side: len(found[side]))
        return side, found[side]

    def _log_partitions(self, inputs):
        side, states = self._states
        size = max(1, _AT_ONCE // (len(states) * self.arrays["kernel"].shape[0]))
        starts = range(0, max(1, len(inputs)), size)
        parts = [inputs[at : at + size] for at in starts]
        return np.concatenate([self._enumerated(side, states, part) for part in parts])

    def _enumerated(self, side, states, inputs):
        """Returns log Z(x), (N,), a sum over all states of one layer."""
        own, other = self._visible, self._hidden
        if side == "hidden":
            own, other = other, own
        first = own.first(states)
        weights = self._bias(side, inputs) @ first.T + own.base(states)
        kernel = self.arrays["kernel"]
        product = first @ (kernel.T if side == "hidden" else kernel)
        bias = self._bias("visible" if side == "hidden" else "hidden", inputs)
        natural = (bias[:, np.newaxis] + product).reshape(-1, product.shape[1])
        weights = weights + other.total(natural).reshape(weights.shape)
        return log_sum_exp(weights.astype(np.float64))

    def _by_parts(self, function, rows, x, takes_gaps=False):
        """Returns `function(rows, x)` of some rows at a time, one after the other."""
        if isinstance(rows, np.ma.MaskedArray) or hasattr(rows, "tocsr"):
            raise TypeError(
                "Expected rows as an array. Received: masked or sparse ones. Pass "
                "rows.filled(0), or rows.toarray()."
            )
        rows, width = np.asarray(rows), self._visible.units
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(
                f"Expected rows of shape (N, {width}). Received: {rows.shape}."
            )
        inputs = ()
        if "hidden_kernel" in self.arrays:
            expected = len(rows), len(self.arrays["hidden_kernel"])
            if x is None or np.shape(x) != expected:
                raise ValueError(
                    f"Expected x of shape {expected}. Received: "
                    f"{'no x' if x is None else np.shape(x)}."
                )
            inputs = (np.asarray(x, np.float32),)
            if not np.isfinite(inputs[0]).all():
                raise ValueError("Expected finite x. Received: NaN or infinity.")
        elif x is not None:
            raise ValueError("Expected rows only. Received: x, for a model without.")
        size = max(1, _AT_ONCE // max(self.arrays["kernel"].shape))
        results = []
        for start in range(0, max(1, len(rows)), size):
            here = slice(start, start + size)
            part = rows[here].astype(np.float32)
            known = self._visible.contains(part) | (takes_gaps & np.isnan(part))
            if not known.all():
                raise ValueError(
                    "Expected states of the visible units. Received: "
                    f"{part[~known][0]:.9g} in row "
                    f"{start + np.argwhere(~known)[0, 0]}. What is not known (NaN) is "
                    "drawn by sample_conditional."
                )
            results.append(function(part, *(each[here] for each in inputs)))
        return np.concatenate(results)
