"""Seeds from what scikit-learn calls a random state."""

import numpy as np
from sklearn.utils import check_random_state


def seed_from(random_state: int | np.random.RandomState | None) -> int:
    """Returns an int drawn from a scikit-learn random state."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
