"""Protein families: RBMs of categorical sites, compared with published ones.

    python examples/papers/proteins.py train --data folder --families ww kunitz
    python examples/papers/proteins.py report

Tubiana, Cocco and Monasson (2019) train RBMs of double rectified hidden units on
alignments of the WW domain (31 sites) and the Kunitz domain (53 sites). `train` trains
and scores them, and RBMs of other hidden units; each run writes a JSON file and is
skipped once it is there. `report` writes the page.
"""

import argparse
import itertools
import pathlib

import proteins_training as training


def main():
    args = parse_arguments()
    records = pathlib.Path(args.records)
    records.mkdir(parents=True, exist_ok=True)
    if args.command == "report":
        import proteins_report

        proteins_report.write(records, records.with_suffix(".md"))
        return
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
            "temperatures": args.temperatures,
        }
        training.run(settings, pathlib.Path(args.data), records)


def parse_arguments():
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--records", default="docs/results/proteins")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("train", parents=[shared])
    command.add_argument("--data", required=True, help="folder of the FASTA files")
    families = tuple(training.HIDDEN)
    command.add_argument("--families", nargs="+", choices=families, default=families)
    rows = ("all", "four-fifths")
    command.add_argument("--rows", nargs="+", choices=rows, default=rows)
    command.add_argument("--units", nargs="+", default=training.UNITS)
    command.add_argument("--penalties", nargs="+", type=float, default=[0.25])
    command.add_argument("--epochs", type=int, default=150)
    command.add_argument("--rate", type=float, default=0.003)
    command.add_argument("--temperatures", type=int, default=20_000)
    commands.add_parser("report", parents=[shared])
    return parser.parse_args()


if __name__ == "__main__":
    main()
