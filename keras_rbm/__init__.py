"""Restricted and conditional restricted Boltzmann machines as Keras 3 models."""

import keras as _keras

if _keras.backend.backend() != "tensorflow":
    raise ImportError(
        "keras_rbm needs Keras' TensorFlow backend. Received: "
        f"keras.backend.backend()={_keras.backend.backend()!r}. Set the environment "
        "variable KERAS_BACKEND=tensorflow before the first import of keras."
    )

from keras_rbm import callbacks as callbacks
from keras_rbm import datasets as datasets
from keras_rbm import inference as inference
from keras_rbm import layers as layers
from keras_rbm import metrics as metrics
from keras_rbm import models as models
from keras_rbm import optimizers as optimizers
from keras_rbm import plots as plots
from keras_rbm import random as random
from keras_rbm import regularizers as regularizers
from keras_rbm import rules as rules
from keras_rbm import units as units
from keras_rbm._quality import quality_report as quality_report
from keras_rbm._scoring import score_report as score_report
from keras_rbm._version import __version__ as __version__
from keras_rbm.models import CRBM as CRBM
from keras_rbm.models import DBM as DBM
from keras_rbm.models import DBN as DBN
from keras_rbm.models import RBM as RBM
from keras_rbm.models import InfiniteRBM as InfiniteRBM
