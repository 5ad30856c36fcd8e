"""Metrics of predicted states: pixels in percent, labels and examples as shares."""

from keras_rbm.metrics.errors import (
    ExactMatch as ExactMatch,
    PixelError as PixelError,
    StateAccuracy as StateAccuracy,
)
