"""What the records of `experiment.py` say: tables of the page, and its figures."""

import math
from collections import namedtuple

import numpy as np

from examples.papers.dc_programming.curves import Curves
from examples.papers.dc_programming.rules import RULES
from examples.papers.dc_programming.sensitivity import TITLES
from examples.papers.pages import figure, table

ORDER = (*RULES, "SSD")
#: Of the best model of 4 hidden units (150 starts of L-BFGS).
ATTAINABLE = {"bars_and_stripes": -3.12, "shifting_bar": -2.197}
#: What runs of one section have in common; the rate first.
Settings = namedtuple(
    "Settings",
    "rate set gibbs_steps inner_steps batch_size hidden_units start epochs "
    "temperatures",
)
#: What should reach 90 % of the gain before what.
BEFORE = (("CS-DCP", "CG"), ("S-DCP", "CD"))


def small_set(folder, name, records):
    """Prints the table and the figure of a small set."""
    runs = [run for run in records if run["set"] == name]
    if not runs:
        return
    rows = []
    for run in sorted(runs, key=lambda run: (run["rate"], RULES.index(run["rule"]))):
        curves = Curves([run])
        best = curves.mean.argmax()
        places = [*map(curves.epochs.index, (5000, 50_000)), best]
        cells = [_mean(curves.scores[:, place]) for place in places]
        trials, epoch = len(curves.scores), f"{curves.epochs[best]:,}"
        rows.append((run["rule"], run["rate"], trials, *cells, epoch))
    head = "rule | rate | trials | epoch 5,000 | epoch 50,000 | best | at epoch"
    table(head, rows)
    figure(folder, name, _draw_small, runs, ATTAINABLE[name])


def stuck(records, rules, below):
    """Returns how many trials of Bars & Stripes stay below a value, in words."""
    own = [run for run in records if run["set"] == "bars_and_stripes"]
    found = []
    for rule in rules:
        bests = [np.max(run["log_likelihood"], 1) for run in own if run["rule"] == rule]
        if bests:
            low = [f"{np.sum(best < below)} of {len(best)}" for best in bests]
            rest = [best[best >= below] for best in bests]
            rest = np.mean(np.concatenate(rest))
            found.append(f"{rule} {' and '.join(low)}, the others {rest:.2f}")
    return "; ".join(found) or "not run"


def _mean(values):
    if len(values) == 1:
        return f"{values[0]:.2f}"
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.2f} ± {error:.2f}"


def _draw_small(figure, runs, attainable):
    rates = sorted({run["rate"] for run in runs})
    panels = figure.subplots(1, len(rates), sharey=True, squeeze=False)[0]
    low = 0.0
    for axes, rate in zip(panels, rates, strict=True):
        of_rate = [run for run in runs if run["rate"] == rate]
        for run in sorted(of_rate, key=lambda run: RULES.index(run["rule"])):
            curves = Curves([run])
            _draw_curves(axes, run["rule"], curves)
            low = min(low, curves.mean.min())
        axes.axhline(attainable, color="gray", linewidth=0.8, linestyle=":")
        axes.set(title=f"rate {rate}", xlabel="epoch", xscale="log")
        axes.set_xlim(left=50)
    panels[0].set_ylabel("log-likelihood, nats")
    panels[0].set_ylim(max(low, attainable - 2.5), attainable + 0.1)
    panels[-1].legend(frameon=False)


def _draw_curves(axes, label, curves):
    color = f"C{RULES.index(label)}" if label in RULES else None
    epochs, mean, spread = curves.epochs, curves.mean, curves.scores.std(0)
    (line,) = axes.plot(epochs, mean, color=color, label=label)
    color = line.get_color()
    axes.fill_between(
        epochs, mean - spread, mean + spread, color=color, alpha=0.15, linewidth=0.0
    )


def large_sets(folder, records):
    """Prints a section for each group of runs on large sets."""
    for settings, runs in _groups(records).items():
        if {run["rule"] for run in runs} <= {"S-DCP", "CS-DCP"}:
            continue  # one setting of those that *Sensitivity* varies
        _section(folder, settings, runs)


def _groups(runs):
    """Returns runs by all settings but rule and seed.

    Of spectral descent, whose rates are its own, by all but the rate, too: its runs
    stand in every group of the other settings.
    """
    groups = {}
    for run in runs:
        if run["rule"] != "SSD":
            groups.setdefault(_settings(run), []).append(run)
    for run in filter(lambda run: run["rule"] == "SSD", runs):
        own = _settings(run)
        for key in [key for key in groups if key[1:] == own[1:]] or [own]:
            groups.setdefault(key, []).append(run)
    return groups


def _settings(run):
    run = run | {"epochs": run["epochs"][-1]}
    return Settings(*(run[key] for key in Settings._fields))


def _section(folder, settings, runs):
    title = TITLES.get(settings.set, settings.set)
    print(
        f"### {title}, rate {settings.rate}, batches of {settings.batch_size}, "
        f"{settings.epochs} epochs\n"
    )
    inner = settings.gibbs_steps // settings.inner_steps
    print(
        f"{settings.hidden_units} hidden units, {settings.gibbs_steps} sweeps a batch "
        f"(S-DCP: {settings.inner_steps} inner steps of {inner}), start "
        f"*{settings.start}*, {settings.temperatures} temperatures.\n"
    )
    groups = {}
    for run in sorted(runs, key=lambda run: ORDER.index(run["rule"])):
        label = f"SSD, rate {run['rate']}" if run["rule"] == "SSD" else run["rule"]
        groups.setdefault(label, []).append(run)
    curves = {label: Curves(own) for label, own in groups.items()}
    start = np.mean([run["log_likelihood"][0] for run in runs])
    rivals = [own for label, own in curves.items() if label in RULES]
    best = max(own.scores.max() for own in rivals or curves.values())
    goal = start + 0.9 * (best - start)
    table("rule | seeds | last epoch | best | 90 %, epoch", _large_rows(curves, goal))
    leads = list(_leads(curves, start, goal))
    if leads:
        table("earlier by, epochs | 90 % | 90 % of the better of the two", leads)
    missing = [rule for rule in RULES if rule not in curves]
    if missing:
        print(f"Not run yet: {', '.join(missing)}.\n")
    name = f"{settings.set}_{settings.batch_size}_{settings.epochs}_{settings.rate}"
    figure(folder, name, _draw_large, groups, curves, goal)


def _large_rows(curves, goal):
    for label, own in curves.items():
        firsts = own.firsts(goal)
        reached = "not reached" if math.inf in firsts else _mean(firsts)
        lasts, bests = own.scores[:, -1], own.scores.max(1)
        yield label, len(own.scores), _mean(lasts), _mean(bests), reached


def _leads(curves, start, goal):
    """Yields how many epochs earlier some rules come to goals."""
    for pair in BEFORE:
        two = [curves[rule] for rule in pair if rule in curves]
        if len(two) == 2 and min(len(own.scores) for own in two) > 1:
            best = max(own.scores.max() for own in two)
            goals = goal, start + 0.9 * (best - start)
            yield " before ".join(pair), *(_lead(*two, goal) for goal in goals)


def _lead(ahead, behind, goal):
    """Returns how much earlier one rule's runs come to a goal, with standard error."""
    end = ahead.epochs[-1]
    firsts, lasts = ahead.firsts(goal), behind.firsts(goal)
    if math.inf in firsts:
        return f"not reached in {end}"
    late = f", or more: not reached in {end}" if math.inf in lasts else ""
    lasts = np.minimum(lasts, end)
    lead = np.mean(lasts) - np.mean(firsts)
    error = np.sqrt(sum(np.var(x, ddof=1) / len(x) for x in (firsts, lasts)))
    return f"{lead:.1f} ± {error:.1f}{late}"


def _draw_large(figure, groups, curves, goal):
    axes = figure.subplots()
    for label, own in curves.items():
        _draw_curves(axes, label, own)
        lower, upper = (
            np.array([run[key] for run in groups[label]], float).mean(0)
            for key in ("lower", "upper")
        )
        above = upper - own.mean  # NaN where an interval has no upper end
        bars = own.mean - lower, np.nan_to_num(above)
        axes.errorbar(own.epochs, own.mean, bars, fmt="none", color="gray", lw=0.7)
        open_ends = np.isnan(above)
        places = np.array(own.epochs)[open_ends], own.mean[open_ends]
        axes.plot(*places, "^", color="gray", ms=3)
    axes.axhline(goal, color="gray", linewidth=0.8, linestyle=":")
    axes.set(xlabel="epoch", ylabel="test log-likelihood, nats")
    axes.set_ylim(bottom=goal - 40.0)
    axes.legend(frameon=False)
