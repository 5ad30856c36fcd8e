"""Mean curves of log-likelihoods, which the claims are about."""

import numpy as np


class Curve:
    """A mean curve of log-likelihoods over the epochs.

    Attributes:
        epochs: list of scored epochs.
        scores: array of mean log-likelihoods there.
    """

    def __init__(self, epochs, scores):
        self.epochs, self.scores = epochs, scores
        self.start, self.last, self.best = scores[0], scores[-1], max(scores)

    def first(self, goal):
        """Returns the first epoch that was scored at the goal or above, or `None`."""
        pairs = zip(self.epochs, self.scores, strict=True)
        return next((epoch for epoch, score in pairs if score >= goal), None)


def mean_curves(runs, name):
    """Returns a dict of rule and rate to the mean `Curve` of the trials."""
    return {
        (run["rule"], run["rate"]): Curve(
            run["epochs"], np.mean(run["log_likelihood"], 0)
        )
        for run in runs
        if run["set"] == name
    }


def of_rate(curves, rate):
    """Returns a dict of rule to its curve at a rate."""
    return {rule: curve for (rule, own), curve in curves.items() if own == rate}


def longest(runs):
    """Returns a dict of rule to the mean `Curve` of its seeds, of the longest runs."""
    last = max((run["epochs"][-1] for run in runs), default=0)
    seeds = {}
    for run in runs:
        if run["epochs"][-1] == last:
            seeds.setdefault(run["rule"], []).append(run)
    return {
        rule: Curve(
            own[0]["epochs"], np.mean([run["log_likelihood"] for run in own], 0)
        )
        for rule, own in seeds.items()
    }


def ninety(curves):
    """Returns the score that is 90 % of the way to the best of all rules."""
    start = max(curve.start for curve in curves.values())
    return start + 0.9 * (max(curve.best for curve in curves.values()) - start)


def by_less(lead, enough):
    """Returns the verdict of a lead that should be about `enough` or more."""
    return "fails" if lead <= 0 else "**holds**" + (", by less" * (lead < enough))


if __name__ == "__main__":
    raise SystemExit("A part of dc_programming.py: run that.")
