"""Plots of a model and of its training, as matplotlib figures.

Each function returns a new `matplotlib.figure.Figure`. Save it with
`figure.savefig("filters.png")`, or make it the last line of a notebook cell.
matplotlib is imported when the first figure is drawn
(`pip install keras-rbm[examples]`).
"""

from keras_rbm.plots.diagnostics import (
    activations as activations,
    free_energies as free_energies,
    history as history,
)
from keras_rbm.plots.images import (
    chains as chains,
    comparison as comparison,
    filters as filters,
    samples as samples,
)
from keras_rbm.plots.reports import (
    annealing as annealing,
    quality_report as quality_report,
    score_report as score_report,
)
from keras_rbm.plots.sequences import contact_map as contact_map, logos as logos
from keras_rbm.plots.tables import table_report as table_report
