"""The figure of a set on the page of `frank_wolfe.py`, as the paper's figure 1."""

import frank_wolfe_claims as claims
import numpy as np


def draw(figure, points, trained):
    """Draws likelihood, gap and error against the hidden units; returns the caption.

    Args:
        figure: of matplotlib.
        points: scored points of the growth.
        trained: runs of CD and PCD.
    """
    figure.set_size_inches(11, 3.6)
    likelihood, gap, error = figure.subplots(1, 3)
    units = [point["units"] for point in points]
    running = [point["validation_running"] for point in points]
    likelihood.plot(units, running, "0.7", label="FW, running, validation")
    gap.plot(units, [point["gap"] for point in points], "C0o-", ms=3)
    curves = {"FW": [[point] for point in points]}
    settings = claims.by_setting(trained)
    drawn = []
    for rule in dict.fromkeys(key[0] for key in settings):
        epochs, last_rate = way = _most_sizes(rule, settings)
        name = rule.upper()
        falls = "constant rate" if last_rate else "rate falling to 0"
        drawn.append(f"{name}: {epochs} epochs, {falls}")
        own = [settings[key] for key in settings if key[0] == rule and key[2:] == way]
        for start, label in (("random", "random starts"), ("fw", "from FW")):
            curves[f"{name}, {label}"] = [runs[start] for runs in own if runs[start]]
    for axes, key in ((likelihood, "test"), (error, "error")):
        for label, sizes in curves.items():
            _draw_curve(axes, key, label, sizes)
        axes.legend(frameon=False, fontsize="small")
    likelihood.set(xlabel="hidden units", ylabel="test log-likelihood, nats")
    gap.set(xlabel="hidden units", ylabel="training less validation, nats")
    error.set(xlabel="hidden units", ylabel="test error, %")
    caption = "Against size: likelihood, free-energy gap, and the classifier's error."
    if drawn:
        caption += f" {'; '.join(drawn)}. Bars: three standard deviations."
    return caption


def _most_sizes(rule, settings):
    """Returns the epochs and last rate with which a rule was run at most sizes."""
    ways = [key[2:] for key in settings if key[0] == rule]
    return max(ways, key=lambda way: (ways.count(way), way))


def _draw_curve(axes, key, label, sizes):
    """Draws means against units, with bars where there are several runs of a size."""
    scored = [[run for run in runs if key in run] for runs in sizes]
    scored = [runs for runs in scored if runs]
    units = [runs[0]["units"] for runs in scored]
    values = [[run[key] for run in runs] for runs in scored]
    means = [np.mean(own) for own in values]
    bars = [3.0 * np.std(own, ddof=1) if len(own) > 1 else 0.0 for own in values]
    axes.errorbar(
        units, means, bars, fmt="o-", ms=4, label=label, mfc="none", capsize=3
    )


if __name__ == "__main__":
    raise SystemExit("A part of frank_wolfe.py: run that.")
