"""What the records of `gaps.py` say: claims, tables and a picture of the page."""

import json

import numpy as np

from examples.gaps import IMPUTERS, NUMBER_WAYS, ORDERED_WAYS, SHARES, TABLE_WAYS
from examples.papers.pages import so_far, verdict

SETS = "digits", "mnist"
#: What an RBM learns from, as tables and the picture call it.
TRAINED = {
    "complete": "complete images",
    "latent": "what is left",
    "mean": "gaps filled by means",
    "KNNImputer": "gaps filled by KNNImputer",
}
SCIKIT_LEARN = IMPUTERS[1:3]
#: Measures of tables: heads of columns, digits, and factors.
MEASURES = {
    "log_loss": ("log loss, nats", 3, 1.0),
    "accuracy": ("right, %", 1, 100.0),
    "points": ("rms, points", 3, 1.0),
    "rms": ("rms, standard deviations", 3, 1.0),
}
_NAMES = {
    "mean": "mean, or shares of the column",
    "KNNImputer-numbers": "KNNImputer of numbers",
    "IterativeImputer-numbers": "IterativeImputer of numbers",
    "RBM-16": "RBM, 16 units",
    "RBM-64": "RBM, 64 units",
    "RBM-12-gaussian": "RBM, 12 Gaussian units",
}


def read(folder):
    """Returns the records in a folder, a list of dicts."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def of(records, key, **wanted):
    """Returns a value of each record that has the wanted settings, by seed."""
    chosen = [run for run in records if wanted.items() <= run.items()]
    return [run[key] for run in sorted(chosen, key=lambda run: run["seed"])]


def likelihoods(records, name, way, share=0.0):
    """Returns test log-likelihoods of an RBM, by seed."""
    return of(records, "test", set=name, do="learn", way=way, share=share)


def lost(records, name, way, share):
    """Returns nats that are lost to training on complete images, by seed."""
    complete = likelihoods(records, name, "complete")
    found = likelihoods(records, name, way, share)
    return [one - own for one, own in zip(complete, found, strict=False)]


def interval(records, name, way="latent", share=0.3):
    """Returns the largest half of an interval of log Z of any seed, nats."""
    share = 0.0 if way == "complete" else share
    found = of(records, "error", set=name, do="learn", way=way, share=share)
    return max(found, default=0.0)


def filled(records, name, do, way, share, key="wrong"):
    """Returns errors of filled test images, by seed."""
    at = 0.0 if way == "complete" else share
    runs = of(records, "filled", set=name, do=do, way=way, share=at)
    return [run[str(share)][key] for run in runs]


def claims(records):
    """Yields the rows of the table of claims."""
    loss = lost(records, "mnist", "latent", 0.3)
    off = sum(interval(records, "mnist", way) for way in ("complete", "latent"))
    most = [one + off for one in loss]
    yield (
        "MNIST, 500 units, 30 % gone: nats that gaps cost",
        "< 4 (goal)",
        f"{spread(loss)}, at most {spread(most)}",
        verdict([one < 4.0 for one in most]),
        "`--tasks mnist`",
    )
    for other in ("mean", "KNNImputer"):
        yield _row(
            f"images: they cost less than {TRAINED[other]}",
            [
                _is_less(lost(records, name, "latent", share), its)
                for name, share in _cases()
                if (its := lost(records, name, other, share))
            ],
            "digits mnist",
        )
    yield _row(
        "images: the RBM of what is left fills in fewer wrong pixels than both",
        [
            all(_is_less(own, others) for others in both)
            for name, share in _cases()
            if (own := filled(records, name, "learn", "latent", share))
            and all(
                both := [
                    filled(records, name, "fill", way, share) for way in SCIKIT_LEARN
                ]
            )
        ],
        "digits mnist",
    )
    for name, text, key in (
        ("bfi", "questionnaire: less log loss than both", "log_loss"),
        ("bfi", "questionnaire: more answers are right", "accuracy"),
        ("credit", "loans: less log loss of words than both", "log_loss"),
        ("credit", "loans: more words are right", "accuracy"),
        ("credit", "loans: smaller rms of numbers", "rms"),
        ("credit_log", "loans, logarithms: smaller rms of numbers", "rms"),
    ):
        yield _beside_both(records, name, text, key)
    rms = of(records, "rms", set="wine", way="RBMImputer")
    held = [bool(np.mean(rms) <= 0.75)] if rms else []
    yield (
        "wine, 20 % gone: rms",
        "≤ 0.75 (goal)",
        spread(rms, 3),
        verdict(held),
        "`--tasks wine`",
    )


def _cases():
    return [(name, share) for name in SETS for share in SHARES]


def _is_less(values, others):
    return bool(values) and bool(np.mean(values) < np.mean(others))


def _row(text, held, tasks):
    left = len(_cases()) - len(held)
    here = f"in {sum(held)} of {len(held)}" + (f", {left} not run" if left else "")
    return text, "yes (goal)", here, so_far(held, not left), f"`--tasks {tasks}`"


def _beside_both(records, name, text, key):
    """Returns the row of a claim that compares means over seeds of a table."""
    own = of(records, key, set=name, way="RBMImputer")
    others = [
        np.mean(found)
        for way in (*SCIKIT_LEARN, *NUMBER_WAYS)
        if (found := of(records, key, set=name, way=way))
    ]
    _, digits, scale = MEASURES[key]
    more = key == "accuracy"
    best = max(others) if more else min(others)
    won = np.mean(own) > best if more else np.mean(own) < best
    goal = f"{'>' if more else '<'} {scale * best:.{digits}f}{' %' if more else ''}"
    here = spread(own, digits, scale) + (" %" if more else "")
    return text, goal, here, verdict([bool(won)]), f"`--tasks {name}`"


def likelihood_rows(records, name):
    """Yields what is trained on, and test log-likelihoods by shares."""
    complete = likelihoods(records, name, "complete")
    yield TRAINED["complete"], spread(complete), *[""] * len(SHARES)
    for way in ("latent", "mean", "KNNImputer"):
        cells = [spread(likelihoods(records, name, way, share)) for share in SHARES]
        yield TRAINED[way], "", *cells


def filled_rows(records, name):
    """Yields who fills gaps of images, and errors by shares."""
    ways = [("learn", way, f"RBM of {text}") for way, text in TRAINED.items()]
    ways += [("fill", way, _NAMES.get(way, way)) for way in IMPUTERS]
    for do, way, text in ways:
        if way == "mean" and do == "fill":
            text = "mean of the pixel"
        cells = []
        for share in SHARES:
            wrong = filled(records, name, do, way, share)
            rms = filled(records, name, do, way, share, "rms")
            shown = f"{spread(wrong, 1, 100.0)} % ({np.mean(rms):.2f})" if wrong else ""
            cells.append(shown or "not run")
        yield text, *cells


def table_rows(records, name, keys):
    """Yields who fills cells of a table, and errors."""
    for way in (*TABLE_WAYS, *NUMBER_WAYS, *ORDERED_WAYS):
        if of(records, "cells", set=name, way=way):
            yield (
                _NAMES.get(way, way),
                *(
                    spread(of(records, key, set=name, way=way), *MEASURES[key][1:])
                    for key in keys
                ),
            )


def column_rows(records, name, columns):
    """Yields who fills a table's numbers, and the rms of each of some columns."""
    for way in TABLE_WAYS:
        by_column = of(records, "by_column", set=name, way=way)
        if by_column:
            cells = [spread([own[column] for own in by_column]) for column in columns]
            yield _NAMES.get(way, way), *cells


def draw(canvas, records):
    """Draws test log-likelihoods by the share that is gone."""
    panels = canvas.subplots(1, 2)
    for axes, name in zip(panels, SETS, strict=True):
        complete = likelihoods(records, name, "complete")
        for way in ("latent", "KNNImputer", "mean"):
            found = {s: likelihoods(records, name, way, s) for s in SHARES}
            points = [(0.0, np.mean(complete))]
            points += [(s, np.mean(own)) for s, own in found.items() if own]
            axes.plot(*np.transpose(points), "o-", label=TRAINED[way])
        axes.set(title=name, xlabel="share of pixels gone", ylabel="test nats")
        if axes.get_ylim()[0] < np.mean(complete) - 200.0:  # a model gone astray
            axes.set_ylim(np.mean(complete) - 110.0, np.mean(complete) + 5.0)
    panels[0].legend(frameon=False, loc="lower left")


def spread(values, digits=2, scale=1.0):
    """Returns mean and standard deviation over seeds, "not run" of none."""
    if not values:
        return "not run"
    values = scale * np.array(values)
    deviation = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{deviation}"


if __name__ == "__main__":
    raise SystemExit("A part of the scripts here: see README.md.")
