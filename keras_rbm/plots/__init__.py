"""Plots of a model and of its training, as matplotlib figures.

Each function returns a new `matplotlib.figure.Figure`. Save it with
`figure.savefig("filters.png")`, or make it the last line of a notebook cell.
matplotlib is imported when the first figure is drawn
(`pip install keras-rbm[examples]`).
"""

from keras_rbm.plots.curves import history as history
from keras_rbm.plots.diagnostics import activations as activations
from keras_rbm.plots.diagnostics import free_energies as free_energies
from keras_rbm.plots.images import chains as chains
from keras_rbm.plots.images import comparison as comparison
from keras_rbm.plots.images import filters as filters
from keras_rbm.plots.images import samples as samples
from keras_rbm.plots.reports import annealing as annealing
from keras_rbm.plots.reports import quality_report as quality_report
from keras_rbm.plots.reports import score_report as score_report
from keras_rbm.plots.sequences import contact_map as contact_map
from keras_rbm.plots.sequences import logos as logos
