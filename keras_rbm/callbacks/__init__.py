"""Callbacks that watch a Boltzmann machine while it trains, and one that steers it.

They write into the epoch's logs, which Keras passes to the callbacks after them
in the list, then to `History` and the progress bar. Put them before
`keras.callbacks.EarlyStopping`, `CSVLogger` and others that read these logs.
All but `IterationSchedule` only measure: they leave the model's random state
unchanged, and training proceeds as it would without them.
"""

from keras_rbm.callbacks.iterations import (
    BPConvergence as BPConvergence,
    IterationSchedule as IterationSchedule,
)
from keras_rbm.callbacks.likelihood import (
    FreeEnergyGap as FreeEnergyGap,
    LogLikelihood as LogLikelihood,
)
