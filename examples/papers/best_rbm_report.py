"""Writes the page of `best_rbm.py` from its records."""

import pages

HEADER = """# The best RBM of 500 units on MNIST in 20 minutes

```bash
python examples/papers/best_rbm.py
```

PCD on 50,000 digits, their pixels drawn again in each epoch, by plain gradient descent
at a rate that falls linearly to 0. Test set of 10,000 binarised once at random. Nats
per example: *AIS* with 100 chains and 10,000 temperatures and, in brackets, three
standard errors of log Z; *RAISE*, annealing from each image, is of the first 100
images (± one standard error of their mean), and *AIS of these* the other on the same.

Published: -86.34 by AIS, for 500 units trained by CD-25 (Salakhutdinov, Murray 2008).
"""


def write(folder, page):
    """Writes the page from the records in a folder."""
    lines = [HEADER]
    lines += pages.head(
        *("rule", "chains", "batch", "rate", "epochs", "minutes"),
        *("AIS", "RAISE of 100", "AIS of these"),
    )
    records = sorted(pages.read_records(folder), key=lambda run: run["log_likelihood"])
    lines += [_row(record) for record in reversed(records)]
    page.write_text("\n".join([*lines, ""]))


def _row(run):
    rule = f"{'PCD' if run['plain'] else 'centred PCD'}-{run['gibbs_steps']}"
    score = "{log_likelihood:.2f} [{lower:.2f}, {upper:.2f}]".format(**run)
    other = "{raise:.2f} ± {raise_error:.2f}".format(**run)
    same = f"{run['of_the_same']:.2f}"
    keys = ("chains", "batch_size", "learning_rate", "epochs", "minutes")
    return pages.row(rule, *(run[key] for key in keys), score, other, same)


if __name__ == "__main__":
    raise SystemExit("A part of best_rbm.py: run that.")
