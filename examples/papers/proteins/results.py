"""Writes the page of `proteins.py`, and its figures, from its records."""

import numpy as np
import pages

import keras_rbm as kr

#: Training log-likelihoods per site of Tubiana et al., and sizes.
PUBLISHED = {"ww": -1.318, "kunitz": -1.377}
NAMES = {"ww": "WW", "kunitz": "Kunitz"}
UNITS = {
    "double_rectified": "double rectified",
    "gaussian": "Gaussian",
    "rectified": "rectified",
    "bernoulli": "binary",
}

TITLE = """# Protein families: the models of Tubiana, Cocco & Monasson (2019)

{summary}
"""

HEADER = """## How it was run

```bash
python examples/papers/proteins.py train --data folder
python examples/papers/proteins.py report
```

RBMs of categorical sites (20 amino acids and the gap) on the alignments of the WW
domain (7,503 sequences of 31 sites, 50 hidden units) and the Kunitz domain (8,062 of
53, 100 hidden units) that the authors publish. PCD-10 with 200 chains, batches of 100,
Adam from 0.003 falling to 0 along a cosine; penalty L1b; sequences weighted by 1 / the
number within 10 % of their sites. log Z is annealed both ways at 20,000 temperatures.
"""

LENGTH = """## How long to train

All sequences, double rectified hidden units. More epochs raise the likelihood and lower
the share of contacts. The longest run, at a higher rate, has modes that annealing does
not find: its likelihood is not known. Pictures and claims are of the longest run whose
likelihood is known.
"""

HELD_OUT = """## Which hidden units: a held-out fifth

Trained on four fifths of the sequences, drawn at random, and scored on the others,
nats per site, weighted, ± standard error over sequences. *far*: those held-out
sequences that differ from every training sequence in more than 30 % of their sites.
*sites alone*: letters drawn site by site. Each row is the penalty with the best
held-out score *of* those tried, which flatters each type alike. WW is trained for 150
epochs, Kunitz for 60. Minutes are of training, on 2 cores beside other work.
"""

OPEN = """*open*: chains annealed forward and back do not meet, so the likelihood is not
known.
"""


def write(folder, page):
    """Writes the page from the records in a folder."""
    records = pages.read_records(folder)
    whole = sorted(
        (r for r in records if r["rows"] == "all"),
        key=lambda r: (list(NAMES).index(r["family"]), r["epochs"]),
    )
    full = {r["family"]: r for r in whole if not _is_open(r["training"])}
    parts = [r for r in records if r["rows"] != "all"]
    lines = [TITLE.format(summary=_summary(full, parts)), *_claims(full), "", HEADER]
    lines += [LENGTH.strip(), ""]
    lines += [*_lengths(whole), "", HELD_OUT.strip(), ""]
    lines += [*_held_out(parts), ""]
    if any(_is_open(record["training"]) for record in records):
        lines += [OPEN]
    lines += [*_pictures(folder, full)]
    page.write_text("\n".join([*lines, ""]).rstrip() + "\n")


def _summary(full, parts):
    words = []
    for family, record in full.items():
        score = record["training"]["mean"]
        words.append(
            f"{score:.3f} nats per site on {NAMES[family]}, where "
            f"{PUBLISHED[family]:.3f} is published"
        )
    text = f"**Training log-likelihoods of {', and '.join(words)}.**"
    if "kunitz" in full:
        share = full["kunitz"]["contacts"]["share"]
        text += (
            " Of the 10, 25 and 50 pairs of sites that the Kunitz model couples most, "
            f"{share['10']:.0%}, {share['25']:.0%} and {share['50']:.0%} touch in the "
            "folded protein."
        )
    return text


def _claims(full):
    lines = pages.head("claim", "published", "here", "verdict")
    for family, record in full.items():
        score = record["training"]
        here = _interval(score)
        holds = "holds" if score["lower"] >= PUBLISHED[family] else "fails"
        claim = f"training log-likelihood per site, {NAMES[family]}"
        lines.append(pages.row(claim, f"{PUBLISHED[family]:.3f}", here, holds))
    if "kunitz" in full:
        share = full["kunitz"]["contacts"]["share"]
        here = ", ".join(f"{share[n]:.0%}" for n in ("10", "25", "50"))
        claim = "contacts among the first 10, 25, 50 pairs, sites ≥ 5 apart, Kunitz"
        holds = "holds" if share["50"] > 0.5 else "fails"
        lines.append(pages.row(claim, "most", here, holds))
    if "ww" in full:
        share = full["ww"]["types"]
        here = f"{share['features']:.1%} by features, {share['one_hot']:.1%} by letters"
        holds = "holds" if share["features"] >= share["one_hot"] else "fails"
        claim = "features tell the 4 binding types of 68 WW sequences (leave one out)"
        lines.append(pages.row(claim, "separated", here, holds))
    return lines


def _lengths(whole):
    columns = ("family", "epochs", "rate", "minutes", "per site, training")
    lines = pages.head(*columns, "contacts among 10, 25, 50")
    for record in whole:
        shares = record.get("contacts", {}).get("share", {})
        lines.append(
            pages.row(
                NAMES[record["family"]],
                record["epochs"],
                record["rate"],
                f"{record['minutes']:.1f}",
                _interval(record["training"]),
                ", ".join(f"{share:.0%}" for share in shares.values()),
            )
        )
    return lines


def _interval(score):
    if score["lower"] is None:
        return f"at most {score['upper']:.3f}, open"
    return f"{score['mean']:.4f} [{score['lower']:.4f}, {score['upper']:.4f}]"


def _held_out(parts):
    best, tried = {}, {}
    for record in sorted(parts, key=_held_out_score):
        key = record["family"], record["unit"]
        best[key] = record
        tried.setdefault(key, []).append(record["penalty"])
    columns = ("family", "hidden units", "penalty", "of", "minutes")
    lines = pages.head(*columns, "training", "held out", "far")
    for family in NAMES:
        of_family = [record for record in parts if record["family"] == family]
        if of_family and "sites_alone" in of_family[0]:
            alone = f"{of_family[0]['sites_alone']:.3f}"
            row = NAMES[family], "sites alone", "", "", "", "", alone, ""
            lines.append(pages.row(*row))
        for unit in UNITS:
            record = best.get((family, unit))
            if record is not None:
                others = ", ".join(map(str, sorted(tried[family, unit])))
                names = NAMES[family], UNITS[unit], record["penalty"], others
                scores = map(
                    _score, (record[n] for n in ("training", "held_out", "far"))
                )
                lines.append(pages.row(*names, f"{record['minutes']:.1f}", *scores))
    return lines


def _held_out_score(record):
    score = record["held_out"]
    return -np.inf if _is_open(score) else score["mean"]


def _score(score):
    if _is_open(score):
        return "not known"
    return f"{score['mean']:.3f} ± {score['error']:.3f}"


def _is_open(score):
    return score["lower"] is None or score["upper"] is None


def _pictures(folder, full):
    lines = ["## Pictures", ""]
    for family, record in full.items():
        weights = [np.array(own) for own in record["units"]]
        titles = [f"{n + 1}." for n in range(len(weights))]
        figure = kr.plots.logos(weights, titles=titles)
        path = folder / f"{family}_motifs.png"
        figure.savefig(path, dpi=100, metadata={"Software": None})
        caption = (
            f"What the four strongest hidden units of the {NAMES[family]} model "
            "respond to: letters above the axis excite a unit, those below inhibit it; "
            "the gap is a gray bar."
        )
        lines += [
            f"![Motifs of {NAMES[family]}]({folder.name}/{path.name})",
            "",
            caption,
        ]
        lines.append("")
    if "kunitz" in full:
        lines += pages.figure(folder, "contacts", _draw_contacts, full["kunitz"])
    lines += pages.figure(folder, "distances", _draw_distances, full)
    lines += ["Samples of the models, `-` is a gap:", "", "```text"]
    for family, record in full.items():
        for letters, distance in zip(
            record["samples"], record["distance"], strict=True
        ):
            far = f"{distance:.0%} from the nearest natural one"
            lines.append(f"{NAMES[family]:7} {letters}  {far}")
    return [*lines, "```"]


def _draw_contacts(canvas, record):
    axes = canvas.subplots()
    hits = np.cumsum(record["contacts"]["true"])
    ranks = np.arange(1, len(hits) + 1)
    axes.plot(ranks, hits / ranks, marker="o", markersize=3)
    axes.set(xlabel="pairs of highest score", ylabel="share in contact", ylim=(0, 1.05))
    axes.grid(alpha=0.3)
    return (
        "Kunitz: the share of true contacts among the pairs of sites, at least 5 "
        "apart, that the hidden units couple most. Of all such pairs 32 % are contacts."
    )


def _draw_distances(canvas, full):
    edges = np.linspace(0.0, 1.0, 21)
    panels = canvas.subplots(1, len(full), squeeze=False)[0]
    for axes, (family, record) in zip(panels, full.items(), strict=True):
        for name, label in (("distances_of_data", "natural"), ("distances", "sampled")):
            counts = np.array(record[name])
            axes.stairs(counts / counts.sum(), edges, fill=True, alpha=0.5, label=label)
        axes.set(title=NAMES[family], xlabel="sites that differ from the nearest")
        axes.set_xlim(0.0, 0.8)
        axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8], ["0", "20 %", "40 %", "60 %", "80 %"])
    panels[0].set_ylabel("share")
    panels[0].legend(frameon=False)
    return (
        "How far sampled and natural sequences are from the nearest other natural one: "
        "samples are new, not copies."
    )
