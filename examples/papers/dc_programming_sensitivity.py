"""Figures of what one setting changes, as the paper's figures 6 and 7."""

import numpy as np
import pages
from dc_programming_rules import RULES

#: Settings that are varied one at a time, and what a figure calls them.
VARIED = {
    "rate": "learning rate",
    "inner_steps": "inner steps d, d · K' = 24",
    "batch_size": "batch size",
    "start": "start: weights 0.01 or small, biases at the base rate or zero",
}
_OTHERS = ("set", "gibbs_steps", "hidden_units", "temperatures")


def sections(folder, runs):
    """Returns lines with a figure for each setting that some runs vary."""
    lines = []
    for key in VARIED:
        for name, panels in _varied(runs, key).items():
            if not lines:
                lines += ["## Sensitivity", ""]
            file = f"sensitivity_{name}_{key}"
            lines += pages.figure(folder, file, _draw, key, name, panels)
    return lines


def _varied(runs, key):
    """Returns a dict of data set to a dict of rule to a dict of value to runs."""
    fixed = [other for other in (*VARIED, *_OTHERS) if other != key]
    groups = {}
    for run in runs:
        if run["rule"] in RULES:
            same = tuple(run[other] for other in fixed), run["epochs"][-1]
            group = groups.setdefault(same, {}).setdefault(run["rule"], {})
            group.setdefault(run[key], []).append(run)
    found = {}
    for panels in groups.values():
        several = {rule: own for rule, own in panels.items() if len(own) > 1}
        if several:
            example = next(iter(next(iter(several.values())).values()))[0]
            found[example["set"]] = several
    return found


def _draw(figure, key, name, panels):
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    ordered = sorted(panels, key=RULES.index)
    for number, (panel, rule) in enumerate(zip(axes, ordered, strict=True)):
        for value, runs in sorted(panels[rule].items(), key=lambda item: str(item[0])):
            curve = np.mean([run["log_likelihood"] for run in runs], 0)
            panel.plot(runs[0]["epochs"], curve, label=str(value))
        panel.set(title=rule, xlabel="epoch")
        if number == 0:
            panel.set_ylabel("test log-likelihood, nats")
    bests = [
        max(run["log_likelihood"])
        for own in panels.values()
        for runs in own.values()
        for run in runs
    ]
    axes[0].set_ylim(min(bests) - 60.0, max(bests) + 5.0)
    axes[-1].legend(frameon=False, fontsize="small")
    return f"{name}: {VARIED[key]}."


if __name__ == "__main__":
    raise SystemExit("A part of dc_programming.py: run that.")
