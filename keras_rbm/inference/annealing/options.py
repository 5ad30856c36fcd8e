"""What an estimate of log Z by chains is asked for."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm._checks import check_counts, check_numbers
from keras_rbm.inference.arguments import check_proper, checked_base, checked_states

#: Half of the width at which an interval is narrow enough, nats, if none is asked for.
_PRECISION = 0.1
_STREAMS = "start", "forward", "backward", "tempering"


class Options(NamedTuple):
    """What an estimate of log Z by chains is asked for, see `anneal`."""

    num_chains: int = 100
    precision: float | None = None
    seed: int | tf.Tensor = 0
    base: ArrayLike | None = None
    chains: ArrayLike | None = None

    def checked(self, potentials):
        """Returns these options, of tensors; raises an error unless all can be used."""
        check_proper(potentials)
        check_counts(2, num_chains=self.num_chains)
        if self.precision is not None:
            check_numbers(precision=self.precision)
            if not self.precision > 0.0:
                raise ValueError(
                    "Expected precision > 0, in nats. Received: "
                    f"precision={self.precision!r}."
                )
        chains = self.chains
        if chains is not None:
            chains = checked_states(potentials, "chains", chains)
        base = checked_base(potentials, self.base)
        return self._replace(base=base, chains=chains, seed=random.as_seed(self.seed))

    def seed_of(self, part):
        """Returns the seed (2,) of a part of the estimate."""
        return random.fold_in(self.seed, _STREAMS.index(part))

    def tries(self, counts):
        """Returns how much work to try, the most only if a precision is asked for."""
        return counts[:-1] if self.precision is None else counts

    def excess(self, estimate):
        """Returns by which factor the widest interval is too wide."""
        most = 2.0 * (_PRECISION if self.precision is None else self.precision)
        return float(np.max(estimate.upper - estimate.lower)) / most

    def is_narrow(self, estimate):
        """Returns whether the intervals are narrow enough, and no more work is due."""
        return self.excess(estimate) <= 1.0
