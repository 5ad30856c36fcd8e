"""What the page of the best RBMs says of their records."""

TITLES = {"mnist": "MNIST", "caltech": "Caltech silhouettes", "omniglot": "OMNIGLOT"}
#: Test log-likelihoods of 500 units, nats.
PUBLISHED = {"mnist": -86.34, "caltech": -114.75}
COLUMNS = (
    "data | batch | prior | rate | epochs | minutes | AIS | both ways | ladders "
    "| RAISE of 100 | AIS of these"
)


def in_order(runs):
    """Returns the records, MNIST first."""
    return sorted(runs, key=lambda run: [*TITLES].index(run["set"]))


def shown(value, lower, upper):
    """Returns a likelihood with its interval; an end that is not known is open."""
    lower = "-∞" if lower is None else f"{lower:.2f}"
    upper = "∞" if upper is None else f"{upper:.2f}"
    return f"{value:.2f} [{lower}, {upper}]"


def sentence(runs):
    """Returns what was found, in one sentence."""
    best = runs[0]
    return (
        f"**500 hidden units reach {best['both_ways'][0]:.1f} nats on MNIST's test "
        f"images in {best['minutes']:.0f} minutes on 2 cores; {PUBLISHED['mnist']:.1f} "
        "are published.** Below: digits, samples that the model draws on its ladder of "
        "replicas, as means, and the filters of some units."
    )


def claims(runs):
    """Yields rows of the table of claims."""
    for run in runs:
        name = run["set"]
        value, lower, upper = run["both_ways"]
        claim = f"{TITLES[name]}: test log-likelihood, nats"
        if name == "mnist":
            claim += f", in {run['minutes']:.1f} minutes on 2 cores"
        published = PUBLISHED.get(name)
        if published is None:
            published, verdict = "none for these drawings", ""
        elif lower is not None and lower > published:
            verdict = "better"
        else:
            verdict = "worse" if upper is not None and upper < published else "open"
        command = "experiment" if name == "mnist" else f"experiment {name}"
        yield claim, published, shown(value, lower, upper), verdict, f"`{command}`"


def rows(runs):
    """Yields rows of the table of runs."""
    for run in runs:
        yield (
            TITLES[run["set"]],
            run["batch_size"],
            run["stddev"] or "none",
            run["learning_rate"],
            run["epochs"],
            run["minutes"],
            shown(run["log_likelihood"], run["lower"], run["upper"]),
            shown(*run["both_ways"]),
            f"{run['by_ladder']:.2f}",
            f"{run['raise']:.2f} ± {run['raise_error']:.2f}",
            f"{run['of_the_same']:.2f}",
        )
