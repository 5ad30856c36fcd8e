"""Regularizers for any Keras model."""

from keras_rbm.regularizers.l1_block import L1Block as L1Block
from keras_rbm.regularizers.normal_prior import NormalPrior as NormalPrior
