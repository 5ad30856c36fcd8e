"""What one setting changes, as the paper's figures 6 and 7: figures and claims."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from examples.papers.dc_programming.rules import RULES
from examples.papers.pages import figure, so_far, table

#: Settings of most of the paper's runs on large sets; each section varies one of them.
USUAL = {
    "rate": 0.01,
    "inner_steps": 6,
    "batch_size": 200,
    "start": "base",
    "gibbs_steps": 24,
    "hidden_units": 500,
}
TITLES = {"mnist": "MNIST", "omniglot_drawings": "OMNIGLOT's drawings"}
#: Nats within which ends count as the same, and the epoch by which they should.
SAME, LAST = 3.0, 200
#: Training images of MNIST, and updates after which batches of each size are compared.
IMAGES, UPDATES = 50_000, (5000, 10_000, 20_000)


class Setting(NamedTuple):
    """A setting that is varied.

    Attributes:
        label: what a figure calls it.
        figure: the paper's.
        claim: what the paper says of it.
        option: the command's option.
        rules: that the claim is about.
        judge: function of a rule's runs by value, and of the epoch that all of them
            reach, to a list of bools: the parts of the claim, and whether they hold.
    """

    label: str
    figure: str
    claim: str
    option: str
    rules: tuple
    judge: Callable


def _mostly_rises(runs, end):
    return [np.mean(np.diff(runs[USUAL["rate"]]["log_likelihood"]) > 0.0) > 0.5]


def _faster_with_value(runs, end):
    early = [_score(run, end // 4) for run in runs.values()]
    return [early == sorted(early), *_ends_alike(runs, end)]


def _ends_alike(runs, end):
    return [np.ptp([_score(run, end) for run in runs.values()]) < SAME]


BOTH = ("S-DCP", "CS-DCP")
VARIED = {
    "rate": Setting(
        "learning rate",
        "6(a)",
        "a small rate, 0.01, rises in most epochs",
        "--rates",
        BOTH,
        _mostly_rises,
    ),
    "inner_steps": Setting(
        "inner steps d, d · K' = 24",
        "6(b)",
        "larger d at d · K' = 24 learns faster, to the same end",
        "--inner-steps",
        BOTH,
        _faster_with_value,
    ),
    "batch_size": Setting(
        "batch size",
        "7(a)",
        "batches of any size end at the same value",
        "--batch-size",
        BOTH[:1],
        _ends_alike,
    ),
    "start": Setting(
        "start: *base* is weights of 0.01 and biases at the base rate, *small* is "
        "weights of 0.001, *zero* biases of 0",
        "7(b)",
        "all starts end at the same value",
        "--start",
        BOTH,
        _ends_alike,
    ),
}


def claims(runs):
    """Yields claims about runs on MNIST: claim, published, here, verdict, command."""
    for key, setting in VARIED.items():
        shown, held, end = [], [], 0
        for rule in setting.rules:
            curves = _long(_varied(runs, rule, key))
            if len(curves) > 1:
                end = _shared_end(curves)
                ends = [f"{v} {_score(run, end):.1f}" for v, run in curves.items()]
                shown.append(f"{rule} after {end} epochs: {', '.join(ends)}")
                held += setting.judge(curves, end)
        yield (
            f"MNIST: {setting.claim}",
            f"figure {setting.figure}",
            "; ".join(shown) or "not run",
            so_far(held, end >= LAST),
            f"`large {setting.option}`",
        )


def by_updates(runs):
    """Prints likelihoods of batches of each size after equally many updates."""
    rows = []
    for size, run in _varied(runs, "S-DCP", "batch_size").items():
        cells = []
        for updates in UPDATES:
            epoch = updates * size // IMAGES
            scored = epoch in run["epochs"]
            score = f"{_score(run, epoch):.1f} (epoch {epoch})" if scored else ""
            cells.append(score)
        rows.append((size, *cells))
    heads = [f"{updates:,} updates" for updates in UPDATES]
    table(" | ".join(["batch", *heads]), rows)


def figures(folder, runs):
    """Prints a figure for each setting that some runs vary."""
    for name in dict.fromkeys(run["set"] for run in runs):
        own = [run for run in runs if run["set"] == name]
        for key, setting in VARIED.items():
            panels = {rule: _varied(own, rule, key) for rule in RULES}
            panels = {rule: runs for rule, runs in panels.items() if len(runs) > 1}
            if panels:
                figure(folder, f"sensitivity_{name}_{key}", _draw, panels)
                print(f"{TITLES[name]}: {setting.label}; one run each.\n")


def differs(run):
    """Returns the settings in which a run differs from the usual ones."""
    return {key for key, usual in USUAL.items() if run[key] != usual}


def _varied(runs, rule, key):
    """Returns a rule's runs by the value of one setting, the others as usual.

    The longest run of the first seed stands for its setting.
    """
    found = {}
    for run in sorted(runs, key=lambda run: (-run["seed"], run["epochs"][-1])):
        if run["rule"] == rule and differs(run) <= {key}:
            found[run[key]] = run
    return dict(sorted(found.items()))


def _long(runs):
    """Returns the runs that are as long as published, or all if these are not two."""
    long = {value: run for value, run in runs.items() if run["epochs"][-1] >= LAST}
    return long if len(long) > 1 else runs


def _shared_end(runs):
    return min(run["epochs"][-1] for run in runs.values())


def _score(run, epoch):
    """Returns a run's likelihood where it was last scored up to an epoch."""
    pairs = zip(run["epochs"], run["log_likelihood"], strict=True)
    return [score for scored, score in pairs if scored <= epoch][-1]


def _draw(figure, panels):
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, (rule, runs) in zip(axes, panels.items(), strict=True):
        for value, run in runs.items():
            panel.plot(run["epochs"], run["log_likelihood"], label=str(value))
        panel.set(title=rule, xlabel="epoch", xlim=(0, _shared_end(runs)))
    best = max(
        max(run["log_likelihood"]) for runs in panels.values() for run in runs.values()
    )
    axes[0].set(ylabel="test log-likelihood, nats", ylim=(best - 60.0, best + 5.0))
    axes[-1].legend(frameon=False, fontsize="small")
