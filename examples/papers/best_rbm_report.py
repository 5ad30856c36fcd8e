"""Writes the page of `best_rbm.py` from its records."""

import pages

TITLE = "# The best RBM of 500 units on MNIST in 20 minutes"
COMMAND = "`best_rbm.py`"
PUBLISHED = -86.34

HEADER = """## How it was run

```bash
python examples/papers/best_rbm.py
```

PCD on 50,000 digits, their pixels drawn again in each epoch, by plain gradient descent
at a rate that falls linearly to 0. The test set of 10,000 is binarized once at random.
Nats per example: *AIS* with 100 chains and 10,000 temperatures and, in brackets, three
standard errors of log Z; *RAISE*, annealing from each image, for the first 100 images,
± one standard error of their mean; and *AIS of these*, AIS for the same images.

Published: -86.34 by AIS, for 500 units trained by CD-25 (Salakhutdinov, Murray 2008).
"""


def write(folder, page):
    """Writes the page from the records in a folder."""
    records = sorted(pages.read_records(folder), key=lambda run: -run["log_likelihood"])
    best = records[0]
    here = "{log_likelihood:.2f} [{lower:.2f}, {upper:.2f}]".format(**best)
    lines = [TITLE, "", *pages.head("claim", "published", "here", "verdict", "command")]
    claim = f"test log-likelihood, nats, in {best['minutes']:.1f} minutes on 2 cores"
    verdict = "better" if best["lower"] > PUBLISHED else "open"
    lines.append(pages.row(claim, f"{PUBLISHED:.2f}", here, verdict, COMMAND))
    lines += ["", HEADER]
    lines += pages.head(
        *("rule", "chains", "batch", "rate", "epochs", "minutes"),
        *("AIS", "RAISE of 100", "AIS of these"),
    )
    lines += [_row(record) for record in records]
    page.write_text("\n".join([*lines, ""]))


def _row(run):
    rule = f"{'PCD' if run['plain'] else 'centered PCD'}-{run['gibbs_steps']}"
    score = "{log_likelihood:.2f} [{lower:.2f}, {upper:.2f}]".format(**run)
    other = "{raise:.2f} ± {raise_error:.2f}".format(**run)
    same = f"{run['of_the_same']:.2f}"
    keys = ("chains", "batch_size", "learning_rate", "epochs", "minutes")
    return pages.row(rule, *(run[key] for key in keys), score, other, same)


if __name__ == "__main__":
    raise SystemExit("A part of best_rbm.py: run that.")
