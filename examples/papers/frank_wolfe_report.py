"""Writes the page of `frank_wolfe.py`, and its figures, from its records."""

import pages

TITLES = {"mnist": "MNIST", "caltech101_silhouettes": "Caltech 101 silhouettes"}
#: Units that the paper's free-energy gap chose.
CHOSEN = {"mnist": 460, "caltech101_silhouettes": 550}

HEADER = """# Infinite RBMs: the experiments of Ping, Liu & Ihler (2016)

```bash
python examples/papers/frank_wolfe.py grow --set mnist
python examples/papers/frank_wolfe.py train --set mnist
python examples/papers/frank_wolfe.py report
```

*FW*: a hidden layer grown by Frank-Wolfe steps, scored at every 20 units. *CD*: CD-10
from random starts, the one of highest validation likelihood among them. *CD from FW*:
CD-10 that starts at the grown model, with as many epochs. Thresholded images;
log-likelihoods of the test set in nats by annealed importance sampling, with an
interval of three standard errors of Z; the error is that of logistic regression on
E[h | v], its penalty chosen on the validation set.
"""


def write(folder, page):
    """Writes the page and its figures from the records in a folder."""
    records = pages.read_records(folder)
    lines = [HEADER]
    for name, title in TITLES.items():
        runs = [record for record in records if record["set"] == name]
        if runs:
            lines += [f"## {title}", "", *_section(folder, name, runs)]
    page.write_text("\n".join(lines))
    print(f"Wrote {page} from {len(records)} records.")


def _section(folder, name, runs):
    grown = next((run for run in runs if run["start"] == "grow"), None)
    trained = _best_of_starts([run for run in runs if run["start"] != "grow"])
    lines = []
    if grown:
        lines += [
            f"Grown in batches of {grown['batch_size']:,} with {grown['samples']:,} "
            f"chains, penalty {grown['l2']} / (1 + units / {grown['halving']}). The "
            f"paper's gap chose {CHOSEN[name]} units; here the highest validation "
            f"likelihood is at {_chosen(grown)['units']}.",
            "",
        ]
    lines += pages.head(
        "units", "model", "test", "interval", "gap", "error, %", "seconds"
    )
    sizes = {run["units"] for run in trained.values()}
    points = grown["points"] if grown else []
    wanted = sizes | {100, 200, 300, 400, 500, 600, 700, CHOSEN[name]}
    for point in points:
        if min(abs(point["units"] - size) for size in wanted) <= 2:
            lines.append(_row("FW", point))
    lines += [_row(model, run) for (_, model), run in sorted(trained.items())]
    lines.append("")
    return lines + pages.figure(folder, name, _draw, points, trained)


def _best_of_starts(runs):
    """Returns dict of (units, model) to the run of best validation likelihood."""
    best = {}
    for run in runs:
        key = run["units"], "CD from FW" if run["start"] == "fw" else "CD"
        if key not in best or run["validation"] > best[key]["validation"]:
            best[key] = run
    return best


def _chosen(grown):
    return max(grown["points"], key=lambda point: point["validation"])


def _row(model, point):
    error = f"{point['error']:.2f}" if "error" in point else ""
    return pages.row(
        point["units"],
        model,
        f"{point['test']:.2f}",
        f"[{point['lower']:.2f}, {point['upper']:.2f}]",
        f"{point['gap']:.2f}",
        error,
        f"{point['seconds']:.0f}",
    )


def _draw(figure, points, trained):
    likelihood, gap = figure.subplots(1, 2)
    units = [point["units"] for point in points]
    likelihood.plot(units, [point["test"] for point in points], "o-", ms=3, label="FW")
    gap.plot(units, [point["gap"] for point in points], "o-", ms=3)
    for model, marker in (("CD", "s"), ("CD from FW", "^")):
        runs = [run for (_, name), run in sorted(trained.items()) if name == model]
        sizes = [run["units"] for run in runs]
        likelihood.plot(
            sizes, [run["test"] for run in runs], marker, ls="--", label=model
        )
    likelihood.set(xlabel="hidden units", ylabel="test log-likelihood, nats")
    gap.set(xlabel="hidden units", ylabel="free-energy gap of FW, nats")
    likelihood.legend(frameon=False)
    return "The paper's figure 1, and what the gap says: likelihood against size."
