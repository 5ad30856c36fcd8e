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
METHODS = {
    "independent": "independent",
    "tree": "Chow-Liu tree",
    "mixture": "mixture",
    "circuit": "LearnSPN",
}


def read(folder):
    """Returns records as a dict of sets, of a dict of methods or kinds of runs."""
    records = {}
    for record in read_records(folder):
        kind = record.get("method") or record["kind"]
        if "tempering" in record:
            kind = "chosen"
        if kind != "tuned":
            records.setdefault(record["set"], {})[kind] = record
    return records


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
    """Returns test nats, in bold, with half the width of the interval of log Z."""
    if record is None:
        return ""
    _, low, high = record["log_z"]
    return f"**{record['test']:.2f}** ± {(high - low) / 2.0:.2f}"


def settings(records):
    """Yields what was chosen for each set, and what it took."""
    for name, label in SETS.items():
        record = records.get(name, {}).get("chosen")
        if record is None:
            continue
        other = record["test"] + record["log_z"][0] - record["tempering"][0]
        yield (
            label,
            record["units"],
            f"{record['strength']:g}",
            record["epochs"],
            f"{record['train']:.2f}",
            f"{record['test']:.2f}",
            f"{other:.2f}",
            f"{record['fit_seconds']:.0f}",
            f"{record['log_z_seconds']:.0f}, {record['tempering_seconds']:.0f}",
        )


def gains(records, kind):
    """Returns test nats above the tree, by set."""
    return {
        name: found[kind]["test"] - found["tree"]["test"]
        for name, found in records.items()
        if kind in found and "tree" in found
    }


def claims(records):
    """Yields the rows of the table of claims."""
    default, chosen = gains(records, "default"), gains(records, "chosen")
    yield (
        "by default, 100 units, 30 epochs: above the tree",
        f"in {sum(gain > 0.0 for gain in default.values())} of {len(default)}",
        verdict([gain > 0.0 for gain in default.values()]),
    )
    yield (
        "chosen by validation rows: above the tree",
        f"in {sum(gain > 0.0 for gain in chosen.values())} of {len(chosen)}",
        verdict([gain > 0.0 for gain in chosen.values()]),
    )
    circuit = gains(records, "circuit")
    above = [chosen[name] > circuit[name] for name in chosen if name in circuit]
    yield (
        "chosen by validation rows: above LearnSPN",
        f"in {sum(above)} of {len(above)}",
        verdict(above),
    )
    widths = [
        found["chosen"]["log_z"][2] - found["chosen"]["log_z"][1]
        for found in records.values()
        if "chosen" in found
    ]
    yield (
        "intervals of log Z narrower than 0.3 nats",
        f"in {sum(width < 0.3 for width in widths)} of {len(widths)}",
        verdict([width < 0.3 for width in widths]),
    )


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
    axes.legend(ncols=4, fontsize="small")
