"""Writes the page of `frank_wolfe.py`, and its figures, from its records."""

import math

import frank_wolfe_claims as claims
import frank_wolfe_prose as prose
import numpy as np
import pages
from frank_wolfe_features import KINDS
from frank_wolfe_figure import draw

TITLES = {"mnist": "MNIST", "caltech101_silhouettes": "Caltech 101 silhouettes"}


def write(folder, page):
    """Writes the page and its figures from the records in a folder."""
    records = pages.read_records(folder)
    earlier = pages.read_records(folder / "earlier")
    lines = [prose.TITLE, *_claims(records), "", prose.HEADER]
    for name, title in TITLES.items():
        runs = [record for record in records if record["set"] == name]
        if runs:
            lines += [f"## {title}", "", *_section(folder, name, runs)]
        runs = [record for record in earlier if record["set"] == name]
        if runs:
            lines += [
                f"### An earlier growth on {title}",
                "",
                prose.EARLIER[name],
                *_tables(runs),
            ]
    page.write_text("\n".join(lines))
    print(f"Wrote {page} from {len(records) + len(earlier)} records.")


def _claims(records):
    lines = pages.head("claim", "published", "here", "verdict", "command")
    for name in TITLES:
        runs = [record for record in records if record["set"] == name]
        points = [point for point in _points(stages(runs)) if "test" in point]
        if points:
            lines += claims.table(name, points, _trained(runs))
    return lines


def _section(folder, name, runs):
    points, trained = _points(stages(runs)), _trained(runs)
    lines = [*_sizes(points, name), ""] if points else []
    lines += _tables(runs) + _rates_table(runs) + _features_table(runs)
    return lines + pages.figure(folder, name, draw, points, trained)


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


def _points(grown):
    """Returns the points of all stages, with the minutes since the first unit."""
    points, before = [], 0.0
    for stage in grown:
        for point in stage["points"]:
            points.append(point | {"minutes": (before + point["seconds"]) / 60.0})
        before += stage["points"][-1]["seconds"]
    return points


def _trained(runs):
    """Returns the runs of CD, those of one setting together, the grown start first."""
    runs = [run for run in runs if run["start"] not in ("grow", "features")]
    return sorted(runs, key=lambda run: (*_setting(run), run["start"] != "fw"))


def _rule(run):
    return run.get("rule", "cd").upper()


def _setting(run):
    return _rule(run), run["size"], run["epochs"], run["last_rate"]


def _tables(runs):
    """Returns the lines of what was grown, and of what CD and PCD made of it."""
    grown = stages(runs)
    lines = []
    for stage in grown:
        lines.append(
            f"* From {stage['begin']} to {stage['points'][-1]['units']} units: batches "
            f"of {stage['batch_size']:,}, {stage['samples']:,} chains, penalty "
            f"{stage['l2']} / (1 + units / {stage['halving']})."
        )
    scores = "test", "interval", "validation", "gap", "error, %", "minutes"
    lines += ["", *pages.head("FW: units", "running", *scores)]
    for point in _points(grown):
        if "error" in point:
            running = f"{point['validation_running']:.2f}"
            scored = _scores(point, point["minutes"])
            lines.append(pages.row(point["units"], running, *scored))
    settings = "rule", "units", "epochs", "rate", "start"
    lines += ["", *pages.head(*settings, *scores, "chains")]
    for (*_, epochs, _), starts in claims.by_setting(_trained(runs)).items():
        grown, random = starts["fw"], starts["random"]
        named = {"grown": grown, f"random, best of {len(random)}": random[:1]}
        for start, chosen in named.items():
            for run in chosen:
                rate = f"{run['rate']} to {run['last_rate']:g}"
                setting = _rule(run), run["units"], epochs, rate, start
                scored = _scores(run, run["seconds"] / 60.0)
                lines.append(pages.row(*setting, *scored, _chains([run])))
        if len(random) > 1:
            lines.append(_spread_row(random, epochs))
    return [*lines, ""]


def _spread_row(runs, epochs):
    """Returns the row of means of several random starts, and of how they spread."""

    def spread(key, digits=2):
        values = [run[key] for run in runs if key in run]
        if len(values) < 2:
            return ""
        return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"

    rates = sorted({run["rate"] for run in runs})
    rate = f"{', '.join(map(str, rates))} to {runs[0]['last_rate']:g}"
    minutes = np.mean([run["seconds"] for run in runs]) / 60.0
    cells = spread("test"), "", spread("validation"), spread("gap"), spread("error")
    setting = _rule(runs[0]), runs[0]["units"], epochs, rate, "random, mean ± s.d."
    return pages.row(*setting, *cells, f"{minutes:.0f}", _chains(runs))


def _chains(runs):
    """Returns means of the nats and pixels that chains come to in the end."""
    ends = [run["chains"][-1] for run in runs if "chains" in run]
    if not ends:
        return ""
    nats, pixels = (np.mean([end[key] for end in ends]) for key in ("nats", "pixels"))
    return f"{nats:+.0f}, {pixels:.0f}"


def _rates_table(runs):
    """Returns the lines of the table of what each rate gave, if some tried several."""
    tried = {}
    for run in _trained(runs):
        if run["start"] in ("fw", "0") and not run["last_rate"]:
            start = "grown" if run["start"] == "fw" else "random"
            key = _rule(run), run["size"], run["epochs"], start
            tried.setdefault(key, {})[run["rate"]] = run
    tried = {key: own for key, own in tried.items() if len(own) > 1}
    if not tried:
        return []
    rates = sorted({rate for own in tried.values() for rate in own})
    lines = ["Validation likelihood at each rate, and in brackets *chains*:", ""]
    lines += pages.head("rule", "units", "start", *rates)
    for (rule, size, _, start), own in sorted(tried.items()):
        cells = [
            f"{own[rate]['validation']:.1f} ({_chains([own[rate]])})"
            if rate in own
            else ""
            for rate in rates
        ]
        lines.append(pages.row(rule, size, start, *cells))
    return [*lines, ""]


def _features_table(runs):
    """Returns the lines of the table of errors on features of several kinds."""
    own = {run["kind"]: run for run in runs if run["start"] == "features"}
    if not own:
        return []
    lines = pages.head("features", "units", "error, %")
    for kind, words in KINDS.items():
        if kind in own:
            run = own[kind]
            lines.append(pages.row(words, run["units"], f"{run['error']:.2f}"))
    return [*lines, ""]


def _scores(run, minutes):
    return (
        f"{run['test']:.2f}",
        f"[{_bound(run['lower'], '-∞')}, {_bound(run['upper'], '∞')}]",
        f"{run['validation']:.2f}",
        f"{run['gap']:.2f}",
        f"{run['error']:.2f}" if "error" in run else "",
        f"{minutes:.0f}",
    )


def _bound(value, unknown):
    return unknown if value is None else f"{value:.2f}"


def _sizes(points, name):
    """Returns sentences of the sizes that validation data and the gap ask for."""
    running, annealed = (
        max(points, key=lambda point: point[key])["units"]
        for key in ("validation_running", "validation")
    )
    last = points[-1]["units"]
    if running == annealed == last:
        found = f"still rose at {last}, where growing was ended"
    else:
        found = (
            f"is largest at {annealed} units of {last}, the running one at {running}"
        )
    gaps = ", ".join(
        f"{point['gap']:.1f} with {point['units']}"
        for point in (points[0], min(points, key=lambda p: p["gap"]), points[-1])
    )
    chosen = claims.CHOSEN[name]
    return [
        f"The paper's gap chose {chosen} units. Here validation likelihood {found}; "
        f"the gap was {gaps} units (first, least, last)."
    ]
