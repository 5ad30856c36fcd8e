"""Tables and pictures of the page on density-estimation benchmarks."""

from examples.papers.pages import verdict
from examples.papers.records import read_records

#: Rows of the tables, with how they are called.
SETS = {
    "nltcs": "NLTCS",
    "plants": "Plants",
    "baudio": "Audio",
    "accidents": "Accidents",
    "tretail": "Retail",
    "dna": "DNA",
    "kosarek": "Kosarek",
    "book": "Book",
    "cwebkb": "WebKB",
    "bbc": "BBC",
    "nade_mushrooms": "mushrooms",
    "nade_nips": "NIPS",
    "nade_ocr_letters": "ocr-letters",
}
#: Test nats that we aimed at.
GOALS = {
    "nltcs": -6.00,
    "plants": -12.3,
    "baudio": -38.5,
    "accidents": -26.6,
    "tretail": -10.72,
    "dna": -81.0,
    "kosarek": -10.5,
    "book": -33.0,
    "cwebkb": -145.0,
    "bbc": -234.0,
    "nade_mushrooms": -9.8,
    "nade_nips": -273.0,
    "nade_ocr_letters": -27.5,
}
METHODS = {
    "independent": "independent",
    "tree": "Chow-Liu tree",
    "mixture": "mixture",
    "circuit": "LearnSPN",
}

#: The last estimates of log Z of the chosen model: by the ladder, and annealed.
ESTIMATES = "tempering", "bidirectional"
_LOG_Z_SECONDS = "log_z_seconds", *(f"{method}_seconds" for method in ESTIMATES)
HEAD = f"set | {' | '.join(METHODS.values())} | 23 units | default | chosen"
CHOSEN_HEAD = (
    "set | hidden units | strength | epochs | training | test | test, annealed "
    "| s to fit | s for log Z | MB"
)
SIZE_HEAD = "set | hidden units | training | test | minutes"
COST_HEAD = (
    f"set | {' | '.join(METHODS.values())} | default | whole recipe "
    "| MB: LearnSPN | MB: default"
)


def read(folder):
    """Returns records as a dict of sets, of a dict of methods or kinds of runs.

    Of kinds with several runs on a set these are lists. The chosen model is scored by
    the ladder.
    """
    records = {}
    for record in read_records(folder):
        found = records.setdefault(record["set"], {"tuned": [], "size": []})
        kind = record.get("method") or record["kind"]
        if ESTIMATES[0] in record:
            found["chosen"] = _rescored(record, ESTIMATES[0])
        elif kind in ("tuned", "size"):
            found[kind].append(record)
        else:
            found[kind] = record
    return records


def _rescored(record, method):
    """Returns a record with another estimate of log Z."""
    change = record["log_z"][0] - record[method][0]
    nats = {part: record[part] + change for part in ("train", "valid", "test")}
    return record | nats | {"log_z": record[method]}


def rows(records):
    """Yields the rows of the table of test nats."""
    for name, label in SETS.items():
        found = records.get(name, {})
        others = [_nats(found.get(method)) for method in METHODS]
        runs = [_nats(found.get(kind)) for kind in ("small", "default")]
        yield label, *others, *runs, _chosen(found.get("chosen"))


def _nats(record):
    return f"{record['test']:.2f}" if record else ""


def _chosen(record):
    """Returns test nats with half the width of the interval of log Z."""
    return "" if record is None else _by("log_z", record)


def settings(records):
    """Yields what was chosen for each set, and what it took."""
    for name, label in SETS.items():
        record = records.get(name, {}).get("chosen")
        if record is None:
            continue
        yield (
            label,
            record["units"],
            f"{record['strength']:g}",
            record["epochs"],
            f"{record['train']:.2f}",
            *(_by(method, record) for method in ESTIMATES),
            f"{record['fit_seconds']:.0f}",
            ", ".join(f"{record[key]:.0f}" for key in _LOG_Z_SECONDS),
            record["megabytes"],
        )


def _by(method, record):
    """Returns test nats with another estimate of log Z, and half its interval."""
    z, low, high = record[method]
    test = record["test"] + record["log_z"][0] - z
    return f"{test:.2f} ± " + (
        "?" if None in (low, high) else f"{(high - low) / 2:.2f}"
    )


def costs(records):
    """Yields the seconds of a core that each method took, with all it tried, and MB."""
    for name, label in SETS.items():
        found = records.get(name, {})
        others = [found.get(method) for method in METHODS]
        default = found.get("default")
        yield (
            label,
            *(f"{record['seconds']:.0f}" if record else "" for record in others),
            f"{_seconds(default):.0f}" if default else "",
            f"{_recipe_seconds(found):.0f}" if "chosen" in found else "",
            *(
                str(found[kind]["megabytes"]) if kind in found else ""
                for kind in ("circuit", "default")
            ),
        )


def _seconds(record):
    return record["fit_seconds"] + record["log_z_seconds"]


def _recipe_seconds(found):
    runs = [*found["tuned"], *(found[kind] for kind in ("default", "small"))]
    again = sum(found["chosen"][f"{method}_seconds"] for method in ESTIMATES)
    return sum(map(_seconds, runs)) + again


def sizes(records):
    """Yields units, epochs, test nats and seconds of the runs of several sizes."""
    for name, label in SETS.items():
        found = records.get(name, {"size": []})
        for record in sorted(found["size"], key=lambda record: record["units"]):
            yield (
                label,
                record["units"],
                f"{record['train']:.2f}",
                _by("log_z", record),
                f"{_seconds(record) / 60.0:.1f}",
            )


def gains(records, kind, base="tree"):
    """Returns test nats above the tree, or another method, by set."""
    return {
        name: found[kind]["test"] - found[base]["test"]
        for name, found in records.items()
        if kind in found and base in found
    }


def claims(records):
    """Yields the rows of the table of claims."""
    by_default, chosen = "100 units, 30 epochs, by default", "chosen by validation rows"
    for text, kind, base in (
        (f"{by_default}: above the tree", "default", "tree"),
        (f"{chosen}: above the tree", "chosen", "tree"),
        (f"{by_default}: above LearnSPN", "default", "circuit"),
        (f"{chosen}: above LearnSPN", "chosen", "circuit"),
    ):
        held = [gain > 0.0 for gain in gains(records, kind, base).values()]
        yield _claim(text, held, command="baselines")
    reached = [
        round(found["chosen"]["test"], 2) >= GOALS[name]
        for name, found in records.items()
        if "chosen" in found
    ]
    yield _claim(f"{chosen}: our goal of the set is reached", reached)
    gained = gains(records, "default", "independent")
    tuned = gains(records, "chosen", "independent")
    shares = [gained[name] / tuned[name] for name in tuned]
    yield _claim(
        f"{by_default}: 98 % of what the chosen one gains over independent columns",
        [share >= 0.98 for share in shares],
        10,
    )
    chosen = [found["chosen"] for found in records.values() if "chosen" in found]
    yield _claim(
        "intervals of log Z narrower than 0.3 nats",
        [None not in z and z[2] - z[1] < 0.3 for z in (r["log_z"] for r in chosen)],
        11,
    )
    yield _claim(
        "the ladder and annealing agree: their intervals meet",
        [_meet(*(record[method] for method in ESTIMATES)) for record in chosen],
    )
    total = sum(_recipe_seconds(each) for each in records.values() if "chosen" in each)
    yield (
        "all of the recipe, hours of two cores",
        "2 (goal)",
        f"{total / 7200.0:.1f}",
        verdict([total / 7200.0 <= 2.0]),
        "`experiment`",
    )


def _meet(one, two):
    """Returns whether two intervals meet, of which each is closed."""
    closed = None not in (*one, *two)
    return closed and max(one[1], two[1]) <= min(one[2], two[2])


def _claim(text, held, least=None, command="experiment"):
    """Returns a row of a claim that is to hold for so many sets, by default all."""
    goal = "all (goal)" if least is None else f"{least} (goal)"
    found = verdict([True] if least and sum(held) >= least else held)
    return text, goal, f"{sum(held)} of {len(held)}", found, f"`{command}`"


def draw(figure, records):
    """Draws the gain over the Chow-Liu tree, as a share of the tree's own gain."""
    axes = figure.subplots()
    kinds = {"mixture": "mixture", "circuit": "LearnSPN"}
    kinds |= {"default": "RBM by default", "chosen": "RBM, chosen"}
    names = [name for name in SETS if "tree" in records.get(name, {})]
    for place, (kind, label) in enumerate(kinds.items()):
        found = gains(records, kind)
        shown = [(i, found[name]) for i, name in enumerate(names) if name in found]
        axes.bar(
            [i + 0.2 * (place - 1.5) for i, _ in shown],
            [gain for _, gain in shown],
            0.2,
            label=label,
        )
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), [SETS[name] for name in names], rotation=40)
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_ylabel("test nats above the tree")
    figure.legend(loc="outside upper center", ncols=4, fontsize="small")
