"""Metrics of predicted states: pixels in percent, labels and examples as shares."""

from keras_rbm.metrics.pixel_error import PixelError as PixelError
from keras_rbm.metrics.state_accuracy import ExactMatch as ExactMatch
from keras_rbm.metrics.state_accuracy import StateAccuracy as StateAccuracy
