"""Models without TensorFlow: arrays of NumPy that score rows."""

from keras_rbm_frozen.scorer import Scorer as Scorer
