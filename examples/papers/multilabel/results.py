"""Tables and pictures of the page on several labels."""

import numpy as np

from examples.papers.pages import verdict
from examples.papers.records import read_records

SETS = {
    "emotions": "emotions",
    "yeast": "yeast",
    "genbase": "genbase",
    "medical": "medical",
    "enron": "enron",
    "bibtex": "bibtex",
    "blocks": "blocks, 1,500 rows",
    "more_blocks": "blocks, 15,000 rows",
}
#: Those of a folder, which claims are about.
REAL = [*SETS][:6]
METHODS = {
    "regressions": "regressions",
    "chains": "chains",
    "network": "network",
    "forest": "forest",
    "crbm": "CRBM",
}
_NAMES = " | ".join(METHODS.values())
HEAD, COST_HEAD = f"set | {_NAMES}", f"set | {_NAMES} | MB: chains | MB: CRBM"
F1_HEAD = f"set | {_NAMES} | regressions, best for F1"
#: The decision that is for a loss, and how many decimals are shown.
DECISIONS = {"hamming": "marginal", "exact": "mode", "f1": "f1", "macro_f1": "f1"}


def read(folder):
    """Returns records as a dict of sets, of a dict of methods."""
    records = {name: {} for name in SETS}
    for record in read_records(folder):
        records[record["set"]][record["method"]] = record
    return records


def value(records, name, method, loss, decision=None):
    """Returns a score of a set, or `None`; the CRBM decides for that loss."""
    record = records[name].get(method)
    if record is None:
        return None
    if loss == "log_likelihood":
        return record[loss]
    if decision is None:
        decision = DECISIONS[loss] if method == "crbm" else "marginal"
    return record[decision][loss]


def rows(records, loss):
    """Yields the rows of the table of a loss."""
    for name, label in SETS.items():
        cells = [value(records, name, method, loss) for method in METHODS]
        if "f1" in loss:
            cells.append(value(records, name, "regressions", loss, "f1"))
        yield label, *(_cell(each) for each in cells)


def _cell(number):
    return "" if number is None else f"{number:.2f}"


def costs(records):
    """Yields the seconds of learning and predicting, and the most memory held."""
    for name, label in SETS.items():
        found = [records[name].get(method) for method in METHODS]
        memory = [records[name].get(method) for method in ("chains", "crbm")]
        yield (
            label,
            *(f"{record['seconds']:.0f}" if record else "" for record in found),
            *(str(record["megabytes"]) if record else "" for record in memory),
        )


def claims(records):
    """Yields the rows of the table of claims."""
    for text, name, loss, goal, sign in (
        ("yeast: wrong labels, %, at most those of SPEN", "yeast", "hamming", 20.0, -1),
        ("bibtex: F1 at least that of SPEN", "bibtex", "f1", 42.2, 1),
        ("blocks, 1,500 rows: F1 at least that of SPEN", "blocks", "f1", 91.5, 1),
    ):
        got = value(records, name, "crbm", loss)
        held = [] if got is None else [sign * got >= sign * goal]
        yield text, goal, _cell(got), verdict(held)
    for text, method, loss, least, strict in (
        (
            "more rows without an error than regressions",
            "regressions",
            "exact",
            6,
            True,
        ),
        ("as many of these rows as chains, or more", "chains", "exact", 4, False),
        (
            "log p of a row above that of regressions",
            "regressions",
            "log_likelihood",
            6,
            True,
        ),
    ):
        held = []
        for name in REAL:
            one, two = (value(records, name, each, loss) for each in ("crbm", method))
            if None not in (one, two):
                held.append(one > two or (not strict and one == two))
        settled = sum(held) >= least or len(held) == len(REAL)
        reached = [sum(held) >= least] if settled else []
        yield (
            text,
            f"{least} of 6 (goal)",
            f"{sum(held)} of {len(held)}",
            verdict(reached),
        )


def draw_gains(figure, records):
    """Draws what each method gains over regressions, by set: rows without an error."""
    axes = figure.subplots()
    names = [name for name in SETS if "regressions" in records[name]]
    others = [method for method in METHODS if method != "regressions"]
    for place, method in enumerate(others):
        gains = [
            (i, value(records, name, method, "exact"))
            for i, name in enumerate(names)
            if method in records[name]
        ]
        base = [value(records, names[i], "regressions", "exact") for i, _ in gains]
        axes.bar(
            [i + 0.2 * (place - 1.5) for i, _ in gains],
            [own - other for (_, own), other in zip(gains, base, strict=True)],
            0.2,
            label=METHODS[method],
        )
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), [SETS[name] for name in names], rotation=30)
    axes.set_yscale("symlog", linthresh=10.0)
    ticks = -10, 0, 10, 50
    axes.set_yticks(ticks, ticks)
    axes.set_ylabel("rows without an error, %, more")
    figure.legend(loc="outside upper center", ncols=4, fontsize="small")


def draw_couplings(figure, records, name):
    """Draws the log odds ratios of each two labels, given mean features."""
    couplings = np.array(records[name]["crbm"]["couplings"])
    axes = figure.subplots()
    largest = np.quantile(np.abs(couplings), 0.98)
    image = axes.imshow(couplings, cmap="RdBu", vmin=-largest, vmax=largest)
    ticks = range(0, len(couplings), 2)
    axes.set_xticks(ticks, [tick + 1 for tick in ticks])
    axes.set_yticks(ticks, [tick + 1 for tick in ticks])
    axes.set_xlabel("label")
    axes.set_ylabel("label")
    figure.colorbar(image, label="log odds ratio", extend="both")
