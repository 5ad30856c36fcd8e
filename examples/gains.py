"""Are the gains of grown hidden units as large as `fit` says, within their errors?

    python examples/gains.py
    python examples/gains.py --sets digits mnist mnist_sampled caltech101_silhouettes \
        bars --seeds 0 1 2 3

Grows RBMs whose log Z can be enumerated after every unit, and prints of each data set
how many of their own errors the logged gains are off.
"""

import argparse
import json
import pathlib

import keras
import numpy as np
from calibration import SETS, examples
from numbers_that_hold import mean_exact

import keras_rbm as kr


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["digits", "bars"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--units", type=int, default=14)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--manual-dir", help="folder of source files")
    parser.add_argument("--out", default="gains.json")
    args = parser.parse_args()
    path = pathlib.Path(args.out)
    records = json.loads(path.read_text()) if path.exists() else []
    done = {(record["set"], record["seed"]) for record in records}
    for seed in args.seeds:
        for name in args.sets:
            if (name, seed) not in done:
                data = examples(name, args.manual_dir)
                records += grow(data, args, {"set": name, "seed": seed})
                path.write_text(json.dumps(records, indent=0) + "\n")
    print(table(records))


def grow(data, args, settings):
    """Returns a record of each accepted unit of a growing model."""
    penalty = keras.optimizers.schedules.InverseTimeDecay(0.05, 20, 1.0)
    grown = kr.InfiniteRBM(args.units, seed=settings["seed"])
    grown.adapt(data)
    rule = kr.rules.FrankWolfe(l2=penalty, num_samples=args.samples)
    grown.compile(rule=rule)
    independent = kr.RBM(1, num_visible=data.shape[1], seed=0)
    independent.adapt(data)
    independent.kernel.assign(np.zeros(independent.kernel.shape))
    scores, records = [mean_exact(independent, data)], []

    def compare(epoch, logs):
        if logs["gain"] == 0.0:  # no unit was accepted
            return
        scores.append(mean_exact(grown, data))
        log_z = float(grown.log_partition("exact").value)
        names = "gain", "gain_error", "validation_ess", "log_partition_error"
        record = {name: float(logs[name]) for name in names}
        record["exact"] = scores[-1] - scores[-2]
        record["log_partition_off"] = float(logs["log_partition"]) - log_z
        records.append(settings | {"unit": len(records) + 1} | record)

    callback = keras.callbacks.LambdaCallback(on_epoch_end=compare)
    epochs = args.units + 3
    grown.fit(
        data, batch_size=len(data), epochs=epochs, verbose=0, callbacks=[callback]
    )
    return records


def table(records):
    """Returns the table of the guide, as Markdown."""
    lines = [
        "| data | units | rms of error / stderr | largest | log Z: largest |",
        "| --- | --- | --- | --- | --- |",
    ]
    names = dict.fromkeys(record["set"] for record in records)
    for name in [*names, "all"]:
        some = [r for r in records if name in (r["set"], "all")]
        off = np.array([r["gain"] - r["exact"] for r in some])
        z = off / [max(r["gain_error"], 1e-6) for r in some]
        log_z = [r["log_partition_off"] / r["log_partition_error"] for r in some]
        lines.append(
            f"| {name} | {len(some)} | {np.sqrt(np.mean(z**2)):.2f} "
            f"| {np.abs(z).max():.1f} | {np.abs(log_z).max():.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
