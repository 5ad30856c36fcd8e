"""A table with columns of several kinds: density, new rows, anomalies, gaps.

    python examples/mixed_table.py

The table is scikit-learn's diabetes study: 442 people, with a bool (male), a category
(weight class by body-mass index), a count (age) and measurements. Its columns name the
units of one visible layer. The RBM's log-likelihood of held-out rows says how much the
columns tell about each other; low values are anomalies; samples fill gaps.
"""

import argparse

import keras
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.metrics import roc_auc_score

import keras_rbm as kr


def table():
    """Returns the study as a frame with columns of four kinds."""
    data = load_diabetes(as_frame=True, scaled=False)
    raw = data.data
    ends = [0.0, 25.0, 30.0, np.inf]  # the WHO's classes
    frame = pd.DataFrame({"male": raw["sex"] == 2, "age": raw["age"].astype(int)})
    frame["weight"] = pd.cut(raw["bmi"], ends, labels=["normal", "over", "obese"])
    names = {"bp": "pressure", "s2": "ldl", "s3": "hdl", "s5": "log_fat", "s6": "sugar"}
    frame[list(names.values())] = raw[list(names)]
    return frame.assign(progression=data.target)


def trained(rows, visible, hidden, epochs, seed=0):
    """Returns an RBM of the table's rows, trained by PCD."""
    rbm = kr.RBM(
        hidden, visible=visible, hidden="gaussian", kernel_regularizer=None, seed=seed
    )
    steps = epochs * -(-len(rows) // 50)
    falling = keras.optimizers.schedules.CosineDecay(0.01, steps)
    rule = kr.rules.PersistentContrastiveDivergence(gibbs_steps=5, centered=False)
    rbm.compile(keras.optimizers.Adam(falling), rule=rule)
    rbm.fit(rows, batch_size=50, epochs=epochs, verbose=0)
    return rbm


def shuffled_columns(rows, seed=0):
    """Returns rows whose values are each from another row: right one by one only."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(column) for column in rows.T], 1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hidden", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=300)
    args = parser.parse_args()
    frame = table()
    rows, visible = kr.units.from_dataframe(frame, counts=["age"])
    print("units of the columns:", visible.parts)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    train, test = rows[:340], rows[340:]
    rbm = trained(train, visible, args.hidden, args.epochs)
    alone = kr.RBM(1, visible=visible, kernel_initializer="zeros")
    alone.adapt(train)  # columns without couplings

    models = {"columns alone": alone, "RBM": rbm}
    scores = {}
    print(f"\nlog-likelihood of {len(test)} held-out rows, nats a row")
    for name, model in models.items():
        z = model.log_partition("bidirectional")
        scores[name] = model.log_likelihood(test, z).numpy()
        error = scores[name].std() / np.sqrt(len(test))
        print(f"  {name:13} {scores[name].mean():7.2f} ± {error:.2f}")
    gain = scores["RBM"] - scores["columns alone"]
    error = gain.std() / np.sqrt(len(gain))
    print(f"  gain          {gain.mean():7.2f} ± {error:.2f}")

    print("\nrows with columns from other people, told from real ones (AUC)")
    wrong = shuffled_columns(test)
    for name, model in models.items():
        energies = model.free_energy(np.concatenate([test, wrong])).numpy()
        labels = np.repeat([1, 0], len(test))
        print(f"  {name:13} {roc_auc_score(labels, -energies):.2f}")

    start = train[np.random.default_rng(1).choice(len(train), 5)]
    new = rbm.sample(5, steps=1000, initial_visible=start, seed=0)
    print("\nnew rows")
    print(kr.units.to_dataframe(new, frame).round(1).to_string(index=False))

    known = np.array(frame.columns) != "progression"
    gaps = np.where(known, test, np.nan)
    guesses = np.mean(
        [
            rbm.sample(len(test), steps=50, initial_visible=gaps, seed=s)
            for s in range(20)
        ],
        axis=0,
    )[:, ~known]
    share = np.corrcoef(guesses[:, 0], test[:, ~known][:, 0])[0, 1] ** 2
    print(f"\nprogression from the other columns: R² {share:.2f}")


if __name__ == "__main__":
    main()
