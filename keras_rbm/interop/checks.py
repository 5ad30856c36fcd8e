"""What a model must be to be written for another library."""

from keras_rbm.models.infinite_rbm import InfiniteRBM
from keras_rbm.models.rbm import RBM


def written(rbm):
    """Returns the built RBM that is written: of an `InfiniteRBM` its units in use.

    Raises:
        TypeError: for other models, and those whose rows have models of their own.
    """
    if isinstance(rbm, InfiniteRBM):
        rbm = rbm.to_rbm()
    if not isinstance(rbm, RBM) or rbm.missing == "absent":
        raise TypeError(
            "Expected an RBM with one energy for all rows. Received: "
            f"{type(rbm).__name__}{' of absent units' * hasattr(rbm, 'missing')}."
        )
    rbm._assert_built("interop")
    return rbm
