"""What the records of `experiment.py` say: tables of the page, and its figures."""

import numpy as np

import keras_rbm as kr

#: Training log-likelihoods per site of Tubiana et al.
PUBLISHED = {"ww": -1.318, "kunitz": -1.377}
NAMES = {"ww": "WW", "kunitz": "Kunitz"}
UNITS = {
    "double_rectified": "double rectified",
    "gaussian": "Gaussian",
    "rectified": "rectified",
    "bernoulli": "binary",
}


def of_all_rows(records):
    """Returns the runs on all sequences, by family and epochs."""
    families = list(NAMES)
    return sorted(
        (run for run in records if run["rows"] == "all"),
        key=lambda run: (families.index(run["family"]), run["epochs"]),
    )


def longest(records):
    """Returns a dict of family to its longest run whose likelihood is known."""
    known = [run for run in of_all_rows(records) if not _is_open(run["training"])]
    return {run["family"]: run for run in known}


def _is_open(score):
    return score["lower"] is None or score["upper"] is None


def shares(run):
    """Returns the shares of contacts among the first pairs of sites, as words."""
    return [f"{share:.0%}" for share in run["contacts"]["share"].values()]


def claims(full):
    """Yields claim, published, here, verdict, of the longest runs."""
    held = {True: "holds", False: "fails"}
    for family, run in full.items():
        score, published = run["training"], PUBLISHED[family]
        claim = f"training log-likelihood per site, {NAMES[family]}"
        holds = held[score["lower"] >= published]
        yield claim, f"{published:.3f}", _interval(score), holds
    claim = "contacts among the first 10, 25, 50 pairs, sites ≥ 5 apart, Kunitz"
    holds = held[full["kunitz"]["contacts"]["share"]["50"] > 0.5]
    yield claim, "most", ", ".join(shares(full["kunitz"])), holds
    own = full["ww"]["types"]
    here = f"{own['features']:.1%} by features, {own['one_hot']:.1%} by letters"
    claim = "features tell the 4 binding types of 68 WW sequences (leave one out)"
    yield claim, "separated", here, held[own["features"] >= own["one_hot"]]


def length_rows(records):
    """Yields the rows of the table of runs on all sequences."""
    for run in of_all_rows(records):
        yield (
            NAMES[run["family"]],
            run["epochs"],
            run["rate"],
            f"{run['minutes']:.1f}",
            _interval(run["training"]),
            ", ".join(shares(run)) if "contacts" in run else "",
        )


def _interval(score):
    if score["lower"] is None:
        return f"at most {score['upper']:.3f}, open"
    return f"{score['mean']:.4f} [{score['lower']:.4f}, {score['upper']:.4f}]"


def held_out_rows(records):
    """Yields the rows of the table of hidden units: each at its best penalty."""
    for family, name in NAMES.items():
        parts = [
            run
            for run in records
            if run["family"] == family and run["rows"] == "four-fifths"
        ]
        alone = f"{parts[0]['sites_alone']:.3f}"
        yield name, "sites alone", "", "", "", "", alone, ""
        for unit, title in UNITS.items():
            runs = [run for run in parts if run["unit"] == unit]
            best = max(runs, key=_held_out)
            tried = ", ".join(map(str, sorted(run["penalty"] for run in runs)))
            scores = [_score(best[key]) for key in ("training", "held_out", "far")]
            minutes = f"{best['minutes']:.1f}"
            yield name, title, best["penalty"], tried, minutes, *scores


def _held_out(run):
    score = run["held_out"]
    return -np.inf if _is_open(score) else score["mean"]


def _score(score):
    if _is_open(score):
        return "not known"
    return f"{score['mean']:.3f} ± {score['error']:.3f}"


def samples(full):
    """Yields samples and how far they are from the nearest natural sequence."""
    for family, run in full.items():
        for letters, distance in zip(run["samples"], run["distance"], strict=True):
            far = f"{distance:.0%} from the nearest natural one"
            yield f"{NAMES[family]:7} {letters}  {far}"


def motifs(folder, run):
    """Draws what the strongest hidden units respond to, and prints what shows it."""
    weights = [np.array(own) for own in run["units"]]
    titles = [f"{n + 1}." for n in range(len(weights))]
    figure = kr.plots.logos(weights, titles=titles)
    path = folder / f"{run['family']}_motifs.png"
    figure.savefig(path, dpi=100, metadata={"Software": None})
    print(f"![Motifs of {NAMES[run['family']]}]({folder.name}/{path.name})")


def draw_contacts(canvas, run):
    """Draws the share of contacts among the pairs of sites of highest score."""
    axes = canvas.subplots()
    hits = np.cumsum(run["contacts"]["true"])
    ranks = np.arange(1, len(hits) + 1)
    axes.plot(ranks, hits / ranks, marker="o", markersize=3)
    axes.set(xlabel="pairs of highest score", ylabel="share in contact", ylim=(0, 1.05))
    axes.grid(alpha=0.3)


def draw_distances(canvas, full):
    """Draws how far sequences are from the nearest natural one."""
    edges = np.linspace(0.0, 1.0, 21)
    panels = canvas.subplots(1, len(full), squeeze=False)[0]
    for axes, (family, run) in zip(panels, full.items(), strict=True):
        for name, label in (("distances_of_data", "natural"), ("distances", "sampled")):
            counts = np.array(run[name])
            axes.stairs(counts / counts.sum(), edges, fill=True, alpha=0.5, label=label)
        axes.set(title=NAMES[family], xlabel="sites that differ from the nearest")
        axes.set_xlim(0.0, 0.8)
        axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8], ["0", "20 %", "40 %", "60 %", "80 %"])
    panels[0].set_ylabel("share")
    panels[0].legend(frameon=False)
