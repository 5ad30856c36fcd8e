"""`TableModel` as a synthesizer of SDGym: two functions.

    python examples/sdgym_synthesizer.py
    pip install keras-rbm[sklearn] sdgym, then in SDGym:
    from sdgym import benchmark_single_table, create_single_table_synthesizer
    RBM = create_single_table_synthesizer(
        "RBM", get_trained_synthesizer, sample_from_synthesizer
    )
    benchmark_single_table(synthesizers=["GaussianCopulaSynthesizer"],
                           custom_synthesizers=[RBM])

Columns that the metadata call ids, names, addresses and the like are no part of the
model: their cells are numbered in a new table. Here a made-up table of loans is learned
and compared with its synthetic rows.
"""

import numpy as np
import pandas as pd

from keras_rbm.sklearn import TableModel
from keras_rbm.tables import table_report

#: Kinds of columns, in the words of SDV's metadata, that are modeled.
MODELED = ("numerical", "categorical", "boolean", "datetime")


def get_trained_synthesizer(data, metadata):
    """Returns what draws rows like those of a frame, of which metadata name columns."""
    columns = next(iter(metadata.get("tables", {"": metadata}).values()))["columns"]
    frame = data[[name for name in data if columns[name]["sdtype"] in MODELED]].copy()
    for name in frame:
        kind = columns[name]
        if kind["sdtype"] == "datetime":
            frame[name] = pd.to_datetime(frame[name], format=kind["datetime_format"])
    return TableModel(random_state=0).fit(frame), columns, list(data)


def sample_from_synthesizer(synthesizer, n_rows):
    """Returns a frame of new rows."""
    model, columns, names = synthesizer
    new = model.sample(n_rows, random_state=None)
    for name in new:
        if columns[name]["sdtype"] == "datetime":
            new[name] = new[name].dt.strftime(columns[name]["datetime_format"])
    others = {name: range(n_rows) for name in names if name not in new}
    return new.assign(**others)[names]


def main():
    rng = np.random.default_rng(0)
    years = rng.integers(1, 30, 2000)
    amount = np.round(np.exp(rng.normal(8.0 + 0.02 * years, 0.5)), -2)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, 2000), "D")
    loans = pd.DataFrame(
        {
            "loan": np.arange(2000),
            "years": np.where(rng.random(2000) < 0.1, np.nan, years),
            "amount": amount,
            "home": np.where(years + rng.normal(0, 5, 2000) > 15, "own", "rent"),
            "day": day.strftime("%Y-%m-%d"),
        }
    )
    kinds = ["id", "numerical", "numerical", "categorical", "datetime"]
    columns = {n: {"sdtype": k} for n, k in zip(loans, kinds, strict=True)}
    columns["day"]["datetime_format"] = "%Y-%m-%d"
    trained = get_trained_synthesizer(loans[:1500], {"columns": columns})
    new = sample_from_synthesizer(trained, 1500)
    print(new.head())
    modeled = [name for name in loans if name not in ("loan", "day")]
    print(table_report(loans[modeled][:1500], new[modeled], test=loans[modeled][1500:]))


if __name__ == "__main__":
    main()
