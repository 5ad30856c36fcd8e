"""Layers with a Boltzmann machine inside, for any Keras model."""

from keras_rbm.layers.marginals import Marginals as Marginals
from keras_rbm.layers.rbm_prior import RBMPrior as RBMPrior
