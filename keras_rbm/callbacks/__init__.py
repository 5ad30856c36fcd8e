"""Callbacks that watch a Boltzmann machine while it trains, and one that steers it.

They write into the epoch's logs, which Keras hands on to the callbacks after them
in the list, then to `History` and the progress bar. Put them before
`keras.callbacks.EarlyStopping`, `CSVLogger` and others that read what they write.
All but `IterationSchedule` measure and change nothing: the model's random state
stays as it is, and training goes on as if they were not there.
"""

from keras_rbm.callbacks.bp_convergence import BPConvergence as BPConvergence
from keras_rbm.callbacks.free_energy_gap import FreeEnergyGap as FreeEnergyGap
from keras_rbm.callbacks.iteration_schedule import (
    IterationSchedule as IterationSchedule,
)
from keras_rbm.callbacks.log_likelihood import LogLikelihood as LogLikelihood
from keras_rbm.callbacks.tensor_board_images import (
    TensorBoardImages as TensorBoardImages,
)
