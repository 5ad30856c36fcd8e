"""Data sets as `tf.data` pipelines of vectors in [0, 1], and helpers for them.

The builders live in one folder each, as in TensorFlow Datasets; importing such a
folder, e.g. `import keras_rbm.datasets.digits`, registers it with `tfds.load`.
TensorFlow Datasets itself is imported only when `load` needs it.
"""

from keras_rbm.datasets.corruption import (
    corrupt as corrupt,
    flip as flip,
    occlude as occlude,
)
from keras_rbm.datasets.loading import load as load
from keras_rbm.datasets.pipeline import (
    binarize as binarize,
    shuffled_batches as shuffled_batches,
)
from keras_rbm.datasets.sequences import (
    PROTEINS as PROTEINS,
    fasta as fasta,
    sequence_weights as sequence_weights,
)
from keras_rbm.datasets.series import windows as windows
