"""Protein families: RBMs of categorical sites, compared with published ones.

    python -m examples.papers.proteins.experiment --data folder --families ww kunitz

Tubiana, Cocco and Monasson (2019) train RBMs of double rectified hidden units on
alignments of the WW domain (31 sites) and the Kunitz domain (53 sites). This trains and
scores them, and RBMs of other hidden units; each run writes a JSON file and is skipped
once it is there.
"""

import argparse
import itertools
import pathlib

from examples.papers.proteins import training


def main():
    args = parse_arguments()
    records = pathlib.Path(args.records)
    records.mkdir(parents=True, exist_ok=True)
    for family, rows, unit, penalty in itertools.product(
        args.families, args.rows, args.units, args.penalties
    ):
        settings = {
            "family": family,
            "rows": rows,
            "unit": unit,
            "penalty": penalty,
            "epochs": args.epochs,
            "rate": args.rate,
        }
        training.run(settings, pathlib.Path(args.data), records)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", default="docs/results/proteins")
    parser.add_argument("--data", required=True, help="folder of the FASTA files")
    families = tuple(training.HIDDEN)
    parser.add_argument("--families", nargs="+", choices=families, default=families)
    rows = ("all", "four-fifths")
    parser.add_argument("--rows", nargs="+", choices=rows, default=rows)
    parser.add_argument("--units", nargs="+", default=training.UNITS)
    parser.add_argument("--penalties", nargs="+", type=float, default=[0.25])
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--rate", type=float, default=0.003)
    return parser.parse_args()


if __name__ == "__main__":
    main()
