"""Reproduces Upadhya & Sastry (2017): S-DCP and CS-DCP against CD, PCD and CG.

    python -m examples.papers.dc_programming.experiment small
    python -m examples.papers.dc_programming.experiment large --set mnist

`small` trains models of 4 hidden units on Bars & Stripes and Shifting Bar, with exact
likelihoods; `large` models of 500 on MNIST or OMNIGLOT, with likelihoods by annealed
importance sampling. All rules make as many Gibbs sweeps a batch and start from the same
parameters; plain gradient descent, no momentum. Each run writes a JSON file as it goes,
goes on where it was cut, and is skipped once it is done.
"""

import argparse
import itertools
import pathlib

from examples.papers.dc_programming import large, small
from examples.papers.dc_programming.rules import RULES


def main():
    args = parse_arguments()
    folder, records = pathlib.Path(args.out), pathlib.Path(args.records)
    for path in (folder, records):
        path.mkdir(parents=True, exist_ok=True)
    if args.command == "small":
        for name, rule, rate in itertools.product(args.sets, args.rules, args.rates):
            settings = {"set": name, "rule": rule, "rate": rate}
            small.run(settings, args.trials, args.epochs, records)
    else:
        for rule, rate, seed in itertools.product(args.rules, args.rates, args.seeds):
            settings = {
                "set": args.set,
                "rule": rule,
                "rate": rate,
                "gibbs_steps": args.gibbs_steps,
                "inner_steps": args.inner_steps,
                "batch_size": args.batch_size,
                "hidden_units": args.hidden,
                "start": args.start,
                "epochs": args.epochs,
                "seed": seed,
            }
            scoring = args.every, args.temperatures
            large.run(settings, *scoring, folder, records, args.data)


def parse_arguments():
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--out", default="out/dc_programming", help="for backups")
    shared.add_argument("--records", default="docs/results/dc_programming")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)

    command = commands.add_parser("small", parents=[shared])
    command.add_argument("--sets", nargs="+", choices=small.SETS, default=small.SETS)
    command.add_argument("--rules", nargs="+", choices=RULES, default=RULES)
    command.add_argument("--rates", nargs="+", type=float, default=[0.3, 0.5])
    command.add_argument("--trials", type=int, default=25)
    command.add_argument("--epochs", type=int, default=50_000)

    command = commands.add_parser("large", parents=[shared])
    command.add_argument("--set", choices=large.SETS, default="mnist")
    command.add_argument(
        "--data", type=pathlib.Path, help="folder of OMNIGLOT's images_*.npz"
    )
    command.add_argument("--rules", nargs="+", choices=(*RULES, "SSD"), default=RULES)
    command.add_argument("--rates", nargs="+", type=float, default=[0.01])
    command.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    command.add_argument("--epochs", type=int, default=40)
    command.add_argument("--batch-size", type=int, default=200)
    command.add_argument("--hidden", type=int, default=500)
    command.add_argument("--gibbs-steps", type=int, default=24, help="K, a batch")
    command.add_argument("--inner-steps", type=int, default=6, help="d of S-DCP")
    command.add_argument("--start", choices=large.STARTS, default="base")
    command.add_argument("--every", type=int, default=2, help="epochs between scores")
    command.add_argument("--temperatures", type=int, default=1000, help="of AIS")
    return parser.parse_args()


if __name__ == "__main__":
    main()
