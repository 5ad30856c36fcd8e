"""Data sets as `tf.data` pipelines of vectors in [0, 1], and helpers for them.

The builders live in one folder each, as in TensorFlow Datasets; importing such a
folder, e.g. `import keras_rbm.datasets.digits`, registers it with `tfds.load`.
TensorFlow Datasets itself is imported only when `load` needs it.
"""

from keras_rbm.datasets.corruption import corrupt as corrupt
from keras_rbm.datasets.corruption import flip as flip
from keras_rbm.datasets.corruption import occlude as occlude
from keras_rbm.datasets.loading import load as load
from keras_rbm.datasets.pipeline import binarize as binarize
from keras_rbm.datasets.pipeline import shuffled_batches as shuffled_batches
from keras_rbm.datasets.sequences import PROTEINS as PROTEINS
from keras_rbm.datasets.sequences import fasta as fasta
from keras_rbm.datasets.sequences import sequence_weights as sequence_weights
