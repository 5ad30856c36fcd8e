"""Optimizers for any Keras model."""

from keras_rbm.optimizers.spectral_descent import (
    StochasticSpectralDescent as StochasticSpectralDescent,
)
