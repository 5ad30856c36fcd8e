"""Log-likelihoods over the epochs, which claims, tables and figures are about."""

import math

import numpy as np


class Curves:
    """Runs that differ in nothing but their random numbers.

    Attributes:
        epochs: list of scored epochs.
        scores: array (runs, epochs) of log-likelihoods there.
        mean: array of their means over the runs.
    """

    def __init__(self, runs):
        self.epochs = runs[0]["epochs"]
        rows = [np.atleast_2d(run["log_likelihood"]) for run in runs]
        self.scores = np.concatenate(rows)
        self.mean = self.scores.mean(0)
        self.best, self.last = self.mean.max(), self.mean[-1]

    def first(self, goal):
        """Returns the first epoch at which the mean is at the goal or above.

        Infinity if there is none.
        """
        return first(self.epochs, self.mean, goal)

    def firsts(self, goal):
        """Returns the first epoch of each run."""
        return [first(self.epochs, scores, goal) for scores in self.scores]


def first(epochs, scores, goal):
    """Returns the first epoch that was scored at the goal or above, or infinity."""
    pairs = zip(epochs, scores, strict=True)
    return next((epoch for epoch, score in pairs if score >= goal), math.inf)


def by_rule(runs):
    """Returns a dict of rule to the `Curves` of its seeds, of the longest runs."""
    last = max((run["epochs"][-1] for run in runs), default=0)
    seeds = {}
    for run in runs:
        if run["epochs"][-1] == last:
            seeds.setdefault(run["rule"], []).append(run)
    return {rule: Curves(own) for rule, own in seeds.items()}


def ninety(curves):
    """Returns the score that is 90 % of the way to the best mean of all rules."""
    start = max(own.mean[0] for own in curves.values())
    return start + 0.9 * (max(own.best for own in curves.values()) - start)
