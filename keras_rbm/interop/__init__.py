"""Models of other libraries, in and out."""

from keras_rbm.interop.adabmdca import (
    read_adabmdca as read_adabmdca,
    write_adabmdca as write_adabmdca,
)
from keras_rbm.interop.ising import (
    from_bqm as from_bqm,
    from_ising as from_ising,
    to_bqm as to_bqm,
    to_ising as to_ising,
)
from keras_rbm.interop.rbms import read_rbms as read_rbms, write_rbms as write_rbms
