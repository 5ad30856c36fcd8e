"""Writes the page of `structured_prediction.py` from its runs' files."""

import json

CALTECH = "caltech101_silhouettes"
# Name: data set, kind, amount, title.
TASKS = {
    "mnist_noisy_10": ("mnist", "noisy", 10, "MNIST, noisy 10 %"),
    "mnist_noisy_20": ("mnist", "noisy", 20, "MNIST, noisy 20 %"),
    "mnist_occluded_8": ("mnist", "occluded", 8, "MNIST, occluded 8×8"),
    "mnist_occluded_12": ("mnist", "occluded", 12, "MNIST, occluded 12×12"),
    "caltech_noisy_20": (CALTECH, "noisy", 20, "Caltech, noisy 20 %"),
    "caltech_occluded_12": (CALTECH, "occluded", 12, "Caltech, occluded 12×12"),
}
# The paper's tables 1 to 3, task by task: per cent of wrong pixels,
ALL = """
LR           1.960  4.088  1.468  3.498  5.653  4.771
CD-1         1.925  4.012  1.814  3.983  5.876  5.033
CD-10        1.816  3.995  1.707  3.921  5.736  5.149
CD-PercLoss  1.760  3.970  1.394  3.483  5.622  5.081
MLE-MF       1.862  3.917  1.492  3.477  5.617  4.692
MLE-BP       1.688  3.691  1.329  3.117  5.445  4.548
LSSVM        1.807  3.910  1.496  3.468  5.628  4.703
MSSVM        1.751  3.804  1.391  3.273  5.549  4.534
"""
# and of wrong pixels among those changed.
CHANGED = """
LR          12.531 12.609 61.304 53.971 11.460 16.587
CD-1        12.229 12.597 63.130 58.376 12.423 20.300
CD-10       11.103 11.271 67.925 63.237 12.013 21.087
CD-PercLoss 11.121 10.876 45.684 35.755 10.808 15.102
MLE-MF      11.319 10.939 49.553 40.703 11.083 15.995
MLE-BP      10.718 10.409 39.785 36.233 10.731 16.541
LSSVM       11.565 11.175 44.037 39.140 11.468 16.014
MSSVM       11.023 10.627 41.829 35.712 11.389 14.918
"""


def _published(table):
    """Returns a table's figures by learner."""
    rows = (line.split() for line in table.split("\n") if line)
    return {name: list(map(float, figures)) for name, *figures in rows}


PUBLISHED = {"all": _published(ALL), "changed": _published(CHANGED)}

HEADER = """# Structured prediction: the tables of Ping & Ihler (2017)

```bash
python examples/papers/structured_prediction.py
python examples/papers/structured_prediction.py --report
```

Per cent of wrong pixels on the test set, of all and of those that the corruption
changed, with the published figure beside ours, bold where ours is at or below it; 256
hidden units. A cell is the run with
the lowest validation error; settings tried and epochs are in the last columns. *Fixed*:
each training image is corrupted once; *fresh*: anew in each epoch. The paper does not
say which; the two are never mixed.
"""


def write(folder, page):
    """Writes the page from the finished runs in a folder."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    finished = [r for r in records if "test" in r and r["hidden_units"] == 256]
    lines = [HEADER]
    for column, (task, (*_, title)) in enumerate(TASKS.items()):
        lines += [f"## {title}", "", _row("learner", "corruption", "all", "published",
                  "changed", "published", "rate, batch", "runs", "epoch"),
                  _row(*["---"] * 9)]  # fmt: skip
        for learner in PUBLISHED["all"]:
            published = {kind: PUBLISHED[kind][learner][column] for kind in PUBLISHED}
            for corruption in ("fixed", "fresh"):
                runs = [
                    r
                    for r in finished
                    if (r["task"], r["learner"], r["corruption"])
                    == (task, learner, corruption)
                ]
                lines.append(_cell_row(learner, corruption, runs, published))
        lines.append("")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(lines))
    print(f"Wrote {page} from {len(finished)} runs.")


def _cell_row(learner, corruption, runs, published):
    figures = {kind: f"{figure:.3f}" for kind, figure in published.items()}
    if not runs:
        cells = ("not run", figures["all"], "", figures["changed"], "", "0", "")
        return _row(learner, corruption, *cells)
    best = min(runs, key=lambda run: run["validation"])
    ours = {kind: f"{best['test'][kind]:.3f}" for kind in published}
    for kind, figure in published.items():
        if best["test"][kind] <= figure:
            ours[kind] = f"**{ours[kind]}**"
    setting = f"{best['rate']}, {best['batch_size']}"
    errors = (ours["all"], figures["all"], ours["changed"], figures["changed"])
    return _row(learner, corruption, *errors, setting, len(runs), best["best_epoch"])


def _row(*cells):
    return "| " + " | ".join(map(str, cells)) + " |"
