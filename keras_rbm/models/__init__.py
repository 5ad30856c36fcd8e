"""Models that users fit."""

from keras_rbm.models.crbm import CRBM as CRBM
from keras_rbm.models.dbm import DBM as DBM
from keras_rbm.models.dbn import DBN as DBN
from keras_rbm.models.infinite_rbm import InfiniteRBM as InfiniteRBM
from keras_rbm.models.rbm import RBM as RBM
