"""Metrics of restored images, in percent."""

from keras_rbm.metrics.changed_pixel_error import (
    ChangedPixelError as ChangedPixelError,
)
from keras_rbm.metrics.pixel_error import PixelError as PixelError
