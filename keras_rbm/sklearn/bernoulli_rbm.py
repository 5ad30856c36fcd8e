"""Converts scikit-learn's `BernoulliRBM` to an `RBM`, and back."""

import numpy as np
from sklearn.neural_network import BernoulliRBM

from keras_rbm.models import RBM
from keras_rbm.units.bernoulli import are_binary


def from_bernoulli_rbm(bernoulli_rbm, **kwargs):
    """Makes an RBM with the weights of a scikit-learn `BernoulliRBM`.

    The two are the same model: `kernel = components_'`, `visible_bias =
    intercept_visible_`, `hidden_bias = intercept_hidden_`, and the free energy of both
    is `F(v) = -b' v - sum_j log(1 + exp(v' W_j + c_j))`. Scikit-learn's `score_samples`
    differs from the log-likelihood: it is a stochastic pseudo-log-likelihood.

    Args:
        bernoulli_rbm: `sklearn.neural_network.BernoulliRBM`, fitted.
        **kwargs: for `keras_rbm.RBM`, such as `seed` and `name`; not the units.

    Returns:
        `keras_rbm.RBM`, built, V = `n_features_in_`, H = `n_components`; not compiled.
        Its variables are float32.

    Raises:
        TypeError: if `bernoulli_rbm` is not a `BernoulliRBM`.
        ValueError: if `bernoulli_rbm` is not fitted, or other units are asked for.

    Example:

    >>> from sklearn.neural_network import BernoulliRBM
    >>> from keras_rbm.sklearn import from_bernoulli_rbm
    >>> data = np.random.default_rng(0).integers(0, 2, (100, 6))
    >>> rbm = from_bernoulli_rbm(BernoulliRBM(4, random_state=0).fit(data))
    >>> rbm.log_likelihood(data, "exact").shape
    TensorShape([100])
    """
    if not isinstance(bernoulli_rbm, BernoulliRBM):
        raise TypeError(
            "Expected a fitted sklearn.neural_network.BernoulliRBM. Received: "
            f"{type(bernoulli_rbm).__name__}. Use to_bernoulli_rbm for the other "
            "direction."
        )
    if not hasattr(bernoulli_rbm, "components_"):
        raise ValueError(
            f"Expected a fitted BernoulliRBM. Received: {bernoulli_rbm!r}, which has "
            "no weights yet. Call fit(X) first."
        )
    other = sorted({"visible", "hidden", "num_visible"} & kwargs.keys())
    if other:
        raise ValueError(
            "Expected no arguments for the units: they are those of the BernoulliRBM, "
            f"binary. Received: {', '.join(other)}."
        )
    num_hidden, num_visible = bernoulli_rbm.components_.shape
    rbm = RBM(num_hidden, num_visible=num_visible, **kwargs)
    rbm.kernel.assign(bernoulli_rbm.components_.T)
    rbm.visible_bias.assign(bernoulli_rbm.intercept_visible_)
    rbm.hidden_bias.assign(bernoulli_rbm.intercept_hidden_)
    return rbm


def to_bernoulli_rbm(rbm, **kwargs):
    """Makes a scikit-learn `BernoulliRBM` with the weights of an RBM.

    See `from_bernoulli_rbm` for what is equal. Its `transform`, `gibbs` and
    `score_samples` work at once; `partial_fit` continues from the weights, with new
    chains.

    Args:
        rbm: `keras_rbm.RBM`, built, of binary units. For a fitted `RBMEstimator` pass
            `model_`.
        **kwargs: for `BernoulliRBM`, such as `learning_rate` and `random_state`.

    Returns:
        `sklearn.neural_network.BernoulliRBM`, fitted; its arrays are float64.

    Raises:
        TypeError: if `rbm` is not a `keras_rbm.RBM`.
        ValueError: if `rbm` is not built, or a layer is not binary.

    Example:

    >>> from keras_rbm.sklearn import to_bernoulli_rbm
    >>> rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    >>> to_bernoulli_rbm(rbm).transform(np.zeros((1, 6)))
    array([[0.5, 0.5, 0.5, 0.5]])
    """
    if not isinstance(rbm, RBM):
        raise TypeError(
            f"Expected a keras_rbm.RBM. Received: {type(rbm).__name__}. Pass model_ of "
            "an RBMEstimator, to_rbm() of an InfiniteRBM."
        )
    rbm._assert_built("to_bernoulli_rbm")
    if not are_binary(rbm.visible, rbm.hidden):
        raise ValueError(
            "Expected an RBM of binary units: scikit-learn has no others. Received: "
            f"visible={rbm.visible!r}, hidden={rbm.hidden!r}."
        )
    estimator = BernoulliRBM(rbm.hidden_units, **kwargs)
    estimator.components_ = np.array(rbm.kernel, np.float64).T
    estimator.intercept_visible_ = np.array(rbm.visible_bias, np.float64)
    estimator.intercept_hidden_ = np.array(rbm.hidden_bias, np.float64)
    estimator.h_samples_ = np.zeros((estimator.batch_size, rbm.hidden_units))
    estimator.n_features_in_ = rbm.kernel.shape[0]
    estimator._n_features_out = rbm.hidden_units
    return estimator
