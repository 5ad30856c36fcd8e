"""Data frames of columns of several kinds, and reports. Needs pandas."""

from keras_rbm.tables.report import (
    Measure as Measure,
    TableReport as TableReport,
    table_report as table_report,
)
from keras_rbm.tables.table import Table as Table
