"""Optimizers, and a learning rate, for any Keras model."""

from keras_rbm.optimizers.falling_rate import FallingRate as FallingRate
from keras_rbm.optimizers.spectral_descent import (
    StochasticSpectralDescent as StochasticSpectralDescent,
)
