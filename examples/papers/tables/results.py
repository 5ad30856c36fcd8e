"""Tables and pictures of the page on synthetic tables."""

from examples.papers.pages import verdict
from examples.papers.records import read_records

SETS = {
    "pbc": "pbc, 314 rows × 19",
    "births": "births, 750 × 13",
    "acs": "acs, 1,500 × 13",
    "credit": "credit, 3,340 × 14",
    "flchain": "flchain, 5,906 × 11",
    "diamonds": "diamonds, 22,500 × 10",
}
WAYS = {
    "gaussiancopula": "GaussianCopula",
    "tvae": "TVAE",
    "ctgan": "CTGAN",
    "rbm": "TableModel",
}
PEERS = [way for way in WAYS if way != "rbm"]
HEAD = "table | real rows | " + " | ".join(WAYS.values())
COST_HEAD = "table | " + " | ".join(WAYS.values())


def read(folder):
    """Returns records as a dict of tables, of a dict of ways."""
    records = {name: {} for name in SETS}
    for record in read_records(folder):
        records[record["set"]][record["way"]] = record
    return records


def quality(records, name, way, kind="value"):
    """Returns the mean of column shapes and pair trends, in percent, or `None`."""
    record = records[name].get(way)
    if record is None:
        return None
    return 50.0 * (record["column_shapes"][kind] + record["pair_trends"][kind])


def value(records, name, way, measure, kind="value"):
    """Returns a measure of a table, or `None`."""
    record = records[name].get(way)
    return None if record is None else record[measure][kind]


def rows(records, measure=None, digits=3):
    """Yields the rows of the table of a measure, by default of the quality."""
    for name, label in SETS.items():
        if measure is None:
            real = quality(records, name, "rbm", "real")
            found = [quality(records, name, way) for way in WAYS]
        else:
            real = value(records, name, "rbm", measure, "real")
            found = [value(records, name, way, measure) for way in WAYS]
        yield label, *("" if x is None else f"{x:.{digits}f}" for x in (real, *found))


def costs(records):
    """Yields the seconds of a processor that learning took."""
    for name, label in SETS.items():
        found = [records[name].get(way) for way in WAYS]
        yield label, *(f"{own['seconds']:.0f}" if own else "" for own in found)


def claims(records):
    """Yields the rows of the table of claims."""
    done = [name for name in SETS if "rbm" in records[name]]
    alone = {name: [*records[name]] for name in done}

    def ratio(name):
        peer = records[name].get("ctgan")
        return peer and records[name]["rbm"]["seconds"] / peer["seconds"]

    def best(name, measure, of):
        found = [value(records, name, way, measure) for way in PEERS]
        return of(x for x in found if x is not None)

    own = lambda name, measure: value(records, name, "rbm", measure)  # noqa: E731
    for text, holds in (
        (
            "mean of SDMetrics' scores above those of all peers",
            lambda name: (
                quality(records, name, "rbm")
                > max(quality(records, name, w) for w in alone[name] if w != "rbm")
            ),
        ),
        ("AUC of a classifier at most 0.60", lambda n: own(n, "classifier") <= 0.6),
        (
            "AUC below those of all peers",
            lambda name: own(name, "classifier") < best(name, "classifier", min),
        ),
        (
            "train on synthetic rows: within a point of real ones",
            lambda name: (
                own(name, "target")
                >= value(records, name, "rbm", "target", "real") - 0.01
            ),
        ),
        (
            "nearest neighbors 0.50 ± 0.03",
            lambda name: abs(own(name, "neighbors") - 0.5) <= 0.03,
        ),
        (
            "seconds at most a fifth of CTGAN's",
            lambda name: None if ratio(name) is None else ratio(name) <= 0.2,
        ),
    ):
        held = [found for name in done if (found := holds(name)) is not None]
        yield text, f"{len(SETS)} of 6", f"{sum(held)} of {len(held)}", verdict(held)


def draw_told(figure, records):
    """Draws how well trees tell synthetic from real rows, by table."""
    axes = figure.subplots()
    names = [name for name in SETS if records[name]]
    markers = dict(zip(WAYS, "osD*", strict=True))
    for way, label in WAYS.items():
        found = [(i, value(records, n, way, "classifier")) for i, n in enumerate(names)]
        found = [(i, auc) for i, auc in found if auc is not None]
        size = 11 if way == "rbm" else 6
        axes.plot(*zip(*found, strict=True), markers[way], ms=size, label=label)
    axes.axhline(0.5, color="black", linewidth=0.8)
    axes.text(-0.45, 0.505, "not told apart", va="bottom", fontsize=8)
    axes.set_xticks(range(len(names)), [name.split(",")[0] for name in names])
    axes.set(xlim=(-0.5, len(names) - 0.5), ylabel="AUC of the classifier")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
