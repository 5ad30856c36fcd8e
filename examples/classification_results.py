"""What docs/results/classification says: claims and tables of MNIST."""

import json

#: Errors in percent of Larochelle & Bengio (2008), with hidden units.
PUBLISHED = {
    "discriminative": (1.81, 500),
    "hybrid": (1.28, 1500),
    "generative": (3.39, 6000),
}


def read(folder):
    """Returns the runs in a folder's files, dicts with "method"."""
    runs = []
    for path in sorted(folder.glob("*.json")):
        for key, run in json.loads(path.read_text()).items():
            runs.append(run | {"method": key.split(".")[0]})
    return runs


def claims(runs):
    """Yields the rows of the claims' table."""
    for method, (published, _) in PUBLISHED.items():
        run = min(chosen(runs, method), key=lambda run: run["wrong"])
        wrong = run["wrong"]
        verdict = "**holds**" if wrong <= published else "fails"
        names = "hidden", "epochs", *(["alpha"] if method == "hybrid" else [])
        options = " ".join(f"--{name} {run[name]:g}" for name in names)
        command = f"`--methods {method} {options}`"
        yield (
            f"{method} RBM, wrong",
            f"{published} %",
            f"{wrong:.2f} %",
            verdict,
            command,
        )


def chosen(runs, method):
    """Returns the runs of a method with all labels."""
    return [run for run in runs if run["method"] == method and not run["labels"]]


def rows(runs, labels=0):
    """Yields the rows of a table of all runs with so many labels."""
    for run in sorted(runs, key=lambda run: run["wrong"]):
        if run["labels"] == labels:
            own = f"{run['alpha']:g}" if run["method"] == "hybrid" else ""
            trained = run["method"] not in ("logistic", "spreading")
            sizes = (run["hidden"], run["epochs"]) if trained else ("", "")
            yield (
                run["method"],
                *sizes,
                own,
                f"{run['wrong']:.2f} %",
                f"{run['cpu_seconds']:.0f}",
            )
