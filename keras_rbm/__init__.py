"""Restricted and conditional restricted Boltzmann machines as Keras 3 models."""

import keras as _keras

if _keras.backend.backend() != "tensorflow":
    raise ImportError(
        "keras_rbm needs Keras' TensorFlow backend. Received: "
        f"keras.backend.backend()={_keras.backend.backend()!r}. Set the environment "
        "variable KERAS_BACKEND=tensorflow before the first import of keras."
    )

from keras_rbm import (
    callbacks as callbacks,
    datasets as datasets,
    inference as inference,
    interop as interop,
    layers as layers,
    metrics as metrics,
    models as models,
    optimizers as optimizers,
    plots as plots,
    random as random,
    regularizers as regularizers,
    rules as rules,
    tables as tables,
    units as units,
)
from keras_rbm._quality import quality_report as quality_report
from keras_rbm._scoring import (
    baseline_log_likelihood as baseline_log_likelihood,
    score_report as score_report,
)
from keras_rbm.models import (
    CRBM as CRBM,
    DBM as DBM,
    DBN as DBN,
    RBM as RBM,
    InfiniteRBM as InfiniteRBM,
)

__version__ = "0.1.0"
