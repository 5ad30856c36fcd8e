"""What the records of `experiment.py` say: tables of the page, and its figures."""

import math
from typing import NamedTuple

import numpy as np

from examples.papers.frank_wolfe.features import KINDS
from examples.papers.pages import table

#: The paper's epochs of CD.
EPOCHS = {"mnist": 200, "caltech101_silhouettes": 400}
SCORES = "test | interval | validation | gap | error, % | minutes"


class Setting(NamedTuple):
    """Runs of a rule that differ in their start, and in the rate that suits it.

    Attributes:
        rule: str, "CD", "PCD" or "PT".
        size: int, units of the grown model.
        epochs: int.
        last_rate: float.
        grown: run from the grown model, or `None`.
        random: list of runs from random starts, the highest validation likelihood
            first.
    """

    rule: str
    size: int
    epochs: int
    last_rate: float
    grown: dict | None
    random: list


class Cost(NamedTuple):
    """What growing to some size takes, beside the paper's epochs of CD.

    Attributes:
        run: dict, the record of steps from a model of that size.
        size: int, units.
        pace: float, seconds that a unit takes there.
        epoch: float, seconds of an epoch of CD of as many units.
        ratio: float, of the times of all units so far and of all epochs.
    """

    run: dict
    size: int
    pace: float
    epoch: float
    ratio: float


def costs_of(runs):
    """Returns a `Cost` for each size of a set at which steps were timed."""
    costs, size, pace, seconds = [], 0, 0.0, 0.0
    timed = [run for run in runs if run["start"] == "time"]
    for run in sorted(timed, key=lambda run: run["size"]):
        before, pace = pace, float(np.divide(sum(run["growing"]), run["gained"]))
        seconds += 0.5 * ((before or pace) + pace) * (run["size"] - size)
        size, epoch = run["size"], float(np.median(run["training"]))
        ratio = seconds / (EPOCHS[run["set"]] * epoch)
        costs.append(Cost(run, size, pace, epoch, ratio))
    return costs


def settings_of(runs):
    """Returns the settings of a set's runs, in order.

    Of a start's runs at several rates the one with the highest validation likelihood
    counts.
    """
    found = {}
    for run in sorted(trained(runs), key=lambda run: run["validation"]):
        key = rule_of(run), run["size"], run["epochs"], run["last_rate"]
        found.setdefault(key, {})[run["start"]] = run
    settings = []
    for key, own in sorted(found.items()):
        grown = own.pop("fw", None)
        random = sorted(own.values(), key=lambda run: -run["validation"])
        settings.append(Setting(*key, grown, random))
    return settings


def trained(runs):
    """Returns the runs of CD, PCD and PT."""
    return [run for run in runs if "validation" in run]


def rule_of(run):
    """Returns a run's rule, "CD", "PCD" or "PT"."""
    return run.get("rule", "cd").upper()


def stages(runs):
    """Returns the stages of a growth in their order, each up to where the next begins.

    One that went on from there has points that are no part of this growth.
    """
    grown = [run for run in runs if run["start"] == "grow" and run["points"]]
    grown.sort(key=lambda run: run["begin"])
    end, kept = math.inf, []
    for run in reversed(grown):
        points = [point for point in run["points"] if point["size"] <= end]
        kept.insert(0, run | {"points": points})
        end = run["begin"]
    return kept


def points_of(runs):
    """Returns the points of all stages, with the minutes since the first unit."""
    points, before = [], 0.0
    for stage in stages(runs):
        for point in stage["points"]:
            points.append(point | {"minutes": (before + point["seconds"]) / 60.0})
        before += stage["points"][-1]["seconds"]
    return points


def sizes(runs):
    """Returns what sizes validation data and the gap ask for, in words."""
    points = points_of(runs)
    if not points:
        return "Nothing was grown."
    running, annealed = (
        max(points, key=lambda point: point[key])["units"]
        for key in ("validation_running", "validation")
    )
    last = points[-1]["units"]
    found = f"is largest at {annealed} units of {last}, the running one at {running}"
    if running == annealed == last:
        found = f"still rose at {last}, where growing was ended"
    least = min(points, key=lambda point: point["gap"])
    gaps = [f"{p['gap']:.1f} with {p['units']}" for p in (points[0], least, points[-1])]
    return (
        f"Here validation likelihood {found}; the gap was {', '.join(gaps)} units "
        "(first, least, last)."
    )


def growth(runs):
    """Prints how a model was grown, and its scores."""
    for stage in stages(runs):
        print(
            f"* From {stage['begin']} to {stage['points'][-1]['units']} units: batches "
            f"of {stage['batch_size']:,}, {stage['samples']:,} chains, penalty "
            f"{stage['l2']} / (1 + units / {stage['halving']})."
        )
    print()
    rows = [
        (
            point["units"],
            f"{point['validation_running']:.2f}",
            *_scores(point, point["minutes"]),
        )
        for point in points_of(runs)
        if "error" in point
    ]
    table(f"FW: units | running | {SCORES}", rows)


def gaps(runs):
    """Prints how the gap and the likelihoods change as a model grows."""
    rows = [
        (
            point["units"],
            *(f"{point[key]:.1f}" for key in ("gap", "validation", "test")),
        )
        for point in points_of(runs)
    ]
    table("units | gap | validation | test", rows)


def costs(runs):
    """Prints what a unit and an epoch of CD take, and the ratio of all."""
    rows = [
        (
            cost.run["set"],
            cost.size,
            f"{cost.run['samples']:,}",
            f"{cost.run['gained']} in {len(cost.run['growing'])}",
            f"{cost.pace:.2f}",
            f"{cost.epoch:.2f}",
            f"{cost.ratio:.1f}",
        )
        for name in EPOCHS
        for cost in costs_of([run for run in runs if run["set"] == name])
    ]
    head = "set | units | chains | units in steps | s a unit | s an epoch of CD | ratio"
    table(head, rows)


def ended(runs):
    """Returns where a growth ended, in words."""
    points = points_of(runs)
    if not points:
        return "Nothing was grown."
    return (
        f"With {runs[0]['samples']:,} chains growing ended soon after "
        f"{points[-1]['units']} units, where five steps in a row found none that gains "
        "beyond chance."
    )


def lead(runs, others):
    """Returns how far a growth was ahead of another of the same set, in words."""
    ours, theirs = ({p["size"]: p for p in points_of(own)} for own in (runs, others))
    shared = [size for size in ours if size in theirs]
    if not shared:
        return "There is no other growth to compare with."
    gains = {size: ours[size]["test"] - theirs[size]["test"] for size in shared}
    ahead = [f"{gain:.1f} with {size}" for size, gain in gains.items() if gain > 0.0]
    behind = {size: -gain for size, gain in gains.items() if gain <= 0.0}
    least, most = min(behind.values()), max(behind.values())
    minutes = [f"{own[shared[-1]]['minutes']:.0f}" for own in (ours, theirs)]
    return (
        f"It took {minutes[0]} minutes to {shared[-1]} units, the growth above "
        f"{minutes[1]}. Its test likelihood was ahead by {' and '.join(ahead)} units, "
        f"and behind by {least:.1f} to {most:.1f} nats from {min(behind)} on."
    )


def training(runs):
    """Prints what each rule made of each start."""
    rows = []
    for setting in settings_of(runs):
        starts = {
            "grown": [setting.grown] if setting.grown else [],
            f"random, best of {len(setting.random)}": setting.random[:1],
        }
        for start, chosen in starts.items():
            for run in chosen:
                cells = _scores(run, run["seconds"] / 60.0)
                rows.append((*_named(setting, start, [run]), *cells, _chains([run])))
        if len(setting.random) > 1:
            rows.append(_spread(setting))
    table(f"rule | units | epochs | rate | start | {SCORES} | chains", rows)


def _named(setting, start, runs):
    rates = ", ".join(map(str, sorted({run["rate"] for run in runs})))
    rate = f"{rates} to {setting.last_rate:g}"
    return setting.rule, runs[0]["units"], setting.epochs, rate, start


def _scores(run, minutes):
    lower = "-∞" if run["lower"] is None else f"{run['lower']:.2f}"
    upper = "∞" if run["upper"] is None else f"{run['upper']:.2f}"
    return (
        f"{run['test']:.2f}",
        f"[{lower}, {upper}]",
        f"{run['validation']:.2f}",
        f"{run['gap']:.2f}",
        f"{run['error']:.2f}" if "error" in run else "",
        f"{minutes:.0f}",
    )


def _spread(setting):
    """Returns the row of means of several random starts, and of how they spread."""
    runs = setting.random

    def spread(key):
        values = [run[key] for run in runs if key in run]
        return f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"

    minutes = np.mean([run["seconds"] for run in runs]) / 60.0
    cells = spread("test"), "", spread("validation"), spread("gap"), spread("error")
    named = _named(setting, "random, mean ± s.d.", runs)
    return *named, *cells, f"{minutes:.0f}", _chains(runs)


def _chains(runs):
    """Returns means of the nats and pixels that chains come to in the end."""
    ends = [run["chains"][-1] for run in runs]
    nats, pixels = (np.mean([end[key] for end in ends]) for key in ("nats", "pixels"))
    return f"{nats:+.0f}, {pixels:.0f}"


def rates(runs):
    """Prints validation likelihood and chains by rate, where several were tried."""
    tried = {}
    for run in trained(runs):
        if run["start"] in ("fw", "0"):
            start = "grown" if run["start"] == "fw" else "random"
            key = rule_of(run), run["size"], start
            tried.setdefault(key, {})[run["rate"]] = run
    tried = {key: own for key, own in sorted(tried.items()) if len(own) > 1}
    columns = sorted({rate for own in tried.values() for rate in own})
    rows = [
        (
            *key,
            *(
                f"{own[rate]['validation']:.1f} ({_chains([own[rate]])})"
                if rate in own
                else ""
                for rate in columns
            ),
        )
        for key, own in tried.items()
    ]
    table(" | ".join(["rule", "units", "start", *map(str, columns)]), rows)


def features(runs):
    """Prints the errors on features of several kinds."""
    found = {run["kind"]: run for run in runs if run["start"] == "features"}
    rows = [
        (words, found[kind]["units"], f"{found[kind]['error']:.2f}")
        for kind, words in KINDS.items()
        if kind in found
    ]
    table("features | units | error, %", rows)


def components(runs):
    """Prints errors of features whose hidden units see few principal components."""
    for run in runs:
        if run["start"] == "components":
            words = {"grown": f"grown, {run['units']} units", "fw": "CD from these"}
            rows = [
                (
                    words.get(name, "CD from random weights"),
                    *(f"{error:.2f}" for error in errors.values()),
                )
                for name, errors in run["errors"].items()
            ]
            kept = next(iter(run["errors"].values()))
            head = [
                f"{count} components" if count != "all" else count for count in kept
            ]
            table(" | ".join(["features", *head]), rows)


def draw(figure, runs):
    """Draws likelihood, gap and error against hidden units: the paper's figure 1."""
    figure.set_size_inches(11, 3.6)
    likelihood, gap, error = figure.subplots(1, 3)
    points, settings = points_of(runs), settings_of(runs)
    units = [point["units"] for point in points]
    running = [point["validation_running"] for point in points]
    likelihood.plot(units, running, "0.7", label="FW, running, validation")
    gap.plot(units, [point["gap"] for point in points], "C0o-", ms=3)
    curves = {"FW": [[point] for point in points]}
    for rule in dict.fromkeys(setting.rule for setting in settings):
        own = [setting for setting in settings if setting.rule == rule]
        curves[f"{rule}, random starts"] = [s.random for s in own if s.random]
        curves[f"{rule}, from FW"] = [[s.grown] for s in own if s.grown]
    for axes, key in ((likelihood, "test"), (error, "error")):
        for label, by_size in curves.items():
            _draw_curve(axes, key, label, by_size)
        axes.legend(frameon=False, fontsize="small")
    likelihood.set(xlabel="hidden units", ylabel="test log-likelihood, nats")
    gap.set(xlabel="hidden units", ylabel="training less validation, nats")
    error.set(xlabel="hidden units", ylabel="test error, %")


def _draw_curve(axes, key, label, by_size):
    """Draws means against units, with bars where there are several runs of a size."""
    scored = [[run for run in runs if key in run] for runs in by_size]
    scored = [runs for runs in scored if runs]
    units = [runs[0]["units"] for runs in scored]
    values = [[run[key] for run in runs] for runs in scored]
    means = [np.mean(own) for own in values]
    bars = [3.0 * np.std(own, ddof=1) if len(own) > 1 else 0.0 for own in values]
    axes.errorbar(
        units, means, bars, fmt="o-", ms=4, label=label, mfc="none", capsize=3
    )
