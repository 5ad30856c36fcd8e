"""RBMs on the density-estimation benchmarks.

    python -m examples.papers.density.experiment dna plants --data FOLDER

One recipe for all sets, in which test rows choose nothing:

1. `default`: `RBM(100)`, `compile()`, `fit(epochs=30)`.
2. `small`: 23 units, whose log Z is enumerated.
3. `tuned`: with 100 units, the strength of the prior that validation rows like best;
   with it, more and more units as long as they gain; then the neighboring strengths
   again, and twice as many epochs.

Each run is a record of its own, so a cut costs one run. log Z is what `log_partition()`
gives: of the ladder that training has left, or annealed. For the chosen model it is
estimated again, with 500 chains, by the ladder and by annealing both ways. `--sizes`
runs, besides, the defaults with 23 to 2,000 units.
"""

import json
import math
import pathlib
import time
import warnings

import keras
import numpy as np

import keras_rbm as kr
from examples.papers.density.data import PARTS, load, names, parser
from examples.papers.records import megabytes, write_record

#: Numbers of hidden units, and strengths of `L1BlockPrior`.
UNITS, STRENGTHS = (100, 200, 400, 1000), (0.02, 0.1, 0.5, 2.0)
#: Numbers of hidden units of `--sizes`.
SIZES = 23, 100, 500, 2000
#: Chains of the last estimates of log Z.
CHAINS = 500
#: Updates of a tuned run, and epochs, at least; rows of a batch; nats that units gain.
UPDATES, EPOCHS, BATCH, GAIN = 6000, 20, 32, 0.05


def main():
    options = parser(__doc__)
    models = pathlib.Path("out/density")
    options.add_argument("--models", type=pathlib.Path, default=models)
    options.add_argument("--sizes", action="store_true", help="run only these")
    args = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    for folder in (args.records, args.models):
        folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or names(args.data):
        study = Study(name, args)
        study.sizes() if args.sizes else study.run()


class Study:
    """All runs of the recipe on one set.

    Args:
        name: str, of the set.
        args: of the command line.
    """

    def __init__(self, name, args):
        self.name, self.args = name, args
        rows = (part.astype(np.float32) for part in load(args.data, name))
        self.rows = dict(zip(PARTS, rows, strict=True))
        steps = math.ceil(len(self.rows["train"]) / BATCH)
        self.epochs = max(EPOCHS, math.ceil(UPDATES / steps))

    def sizes(self):
        for units in SIZES:
            self.trial("size", units)

    def run(self):
        self.trial("default", 100)
        self.trial("small", 23, 0.02, 3 * self.epochs)
        best = self.climbed(100, 0.1)
        for units in UNITS[1:]:
            larger = units, best[1], self.epochs
            if self.valid(larger) < self.valid(best) + GAIN:
                break
            best = larger
        best = self.climbed(*best[:2])
        longer = *best[:2], 2 * self.epochs
        self.twice(max(best, longer, key=self.valid))

    def climbed(self, units, strength):
        """Returns settings of which neither neighboring strength is better."""
        best = units, strength, self.epochs
        for step in (1, -1):
            place = STRENGTHS.index(strength) + step
            while 0 <= place < len(STRENGTHS):
                other = units, STRENGTHS[place], self.epochs
                if self.valid(other) <= self.valid(best):
                    break
                best, place = other, place + step
            if best[1] != strength:
                break
        return best

    def valid(self, settings):
        return self.trial("tuned", *settings)["valid"]

    def path(self, *parts):
        return self.args.records / ".".join(map(str, (self.name, *parts, "json")))

    def trial(self, kind, units, strength=None, epochs=30):
        """Returns the record of a run, which is made if there is none."""
        path = self.path(kind, units, strength, epochs)
        record = read(path)
        if record is None:
            record = {"set": self.name, "kind": kind, "units": units}
            record |= {"strength": strength, "epochs": epochs}
            record |= self.fitted(units, strength, epochs, path.stem)
            write_record(path, record)
            print(record, flush=True)
        return record

    def fitted(self, units, strength, epochs, name):
        """Returns the numbers of a run, times in seconds of a core; keeps its model."""
        prior = {}
        if strength is not None:
            prior["kernel_regularizer"] = kr.regularizers.L1BlockPrior(strength)
        rbm = kr.RBM(units, seed=0, **prior)
        rbm.compile()
        start = time.process_time()
        rbm.fit(self.rows["train"], batch_size=BATCH, epochs=epochs, verbose=0)
        trained = time.process_time()
        z = rbm.log_partition("exact" if units <= 23 else None)
        seconds = trained - start, time.process_time() - trained
        rbm.save(self.args.models / f"{name}.keras")
        return {
            "fit_seconds": round(seconds[0], 1),
            "log_z_seconds": round(seconds[1], 1),
            "log_z": [float(z.value), float(z.lower), float(z.upper)],
            "megabytes": megabytes(),
        } | self.scores(rbm, z)

    def scores(self, rbm, z):
        return {
            part: float(np.mean(rbm.log_likelihood(rows, log_partition=z)))
            for part, rows in self.rows.items()
        }

    def twice(self, settings):
        """Records the tuned run again, with other estimates of log Z."""
        path = self.path("chosen")
        if read(path) is not None:
            return
        chosen = self.trial("tuned", *settings)
        stem = self.path("tuned", *settings).stem
        rbm = keras.saving.load_model(self.args.models / f"{stem}.keras")
        for method in ("tempering", "bidirectional"):
            start = time.process_time()
            z = rbm.log_partition(method, num_chains=CHAINS)
            chosen[method] = [float(z.value), float(z.lower), float(z.upper)]
            chosen[f"{method}_seconds"] = round(time.process_time() - start, 1)
        write_record(path, chosen)
        print(chosen, flush=True)


def read(path):
    """Returns a record, or `None` if there is none."""
    return json.loads(path.read_text()) if path.exists() else None


if __name__ == "__main__":
    main()
