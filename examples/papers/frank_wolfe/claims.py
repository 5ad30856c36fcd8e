"""The claims of Ping, Liu & Ihler (2016), beside what the records say."""

import numpy as np

from examples.papers.frank_wolfe.results import EPOCHS, costs_of, points_of, settings_of
from examples.papers.pages import verdict

TITLES = {"mnist": "MNIST", "caltech101_silhouettes": "Caltech"}
#: Units that the paper's free-energy gap chose.
CHOSEN = {"mnist": 460, "caltech101_silhouettes": 550}
ERRORS = {"mnist": "2 to 3.5 %", "caltech101_silhouettes": "34 to 42 %"}
#: Units from which grown features are said to be the better ones.
MANY = 450
#: Two standard errors of a difference of two classifiers' errors, in percent.
NOISE = {"mnist": 0.5, "caltech101_silhouettes": 2.7}
#: Nats that 100 units gain at most where the likelihood is flat.
FLAT = 2.0


def claims(records):
    """Yields claim, published, here, verdict, command."""
    for name, title in TITLES.items():
        runs = [run for run in records if run["set"] == name]
        points, settings = points_of(runs), settings_of(runs)
        if not points:
            continue
        of_rule = {
            rule: [s for s in settings if s.rule == rule]
            for rule in ("CD", "PCD", "PT")
        }
        cd = of_rule.pop("CD")
        grow, train = (f"`{command} --set {name}`" for command in ("grow", "train"))
        rows = [
            (*_rises(name, points), grow),
            (*_stops(name, points), grow),
            (*_starts("CD", "at every size", cd), train),
            (*_time(name, runs), f"`time --set {name}`"),
        ]
        for rule, own in of_rule.items():
            if own:
                command = f"`train --set {name} --rule {rule.lower()}`"
                rows.append((*_starts(rule, "not in the paper", own), command))
        rows += [(*cells, train) for cells in _features(name, points, cd)]
        for claim, *cells in rows:
            yield f"{title}: {claim}", *cells


def _rises(name, points):
    scores = [point["test"] for point in points]
    first, last = points[0], points[-1]
    late = next(p for p in points if p["units"] >= last["units"] - 100)
    gain = last["test"] - late["test"]
    here = f"{first['test']:.1f} with {first['units']} units, {last['test']:.1f} with "
    here += f"{last['units']}; the last {last['units'] - late['units']} gain {gain:.1f}"
    held = verdict([bool(np.all(np.diff(scores) > 0.0)), gain < FLAT])
    published = f"flat from {CHOSEN[name]} units on"
    return "test likelihood rises with the units, then flattens", published, here, held


def _stops(name, points):
    claim = "the free-energy gap finds the size with the highest likelihood"
    best = max(points, key=lambda point: point["validation"])["units"]
    last, chosen = points[-1]["units"], CHOSEN[name]
    if best < last:
        here = f"validation likelihood is highest at {best} units"
        return claim, f"{chosen} units", here, "see the gap below"
    here = f"validation likelihood still rises at {last} units, where growing ended"
    held = "open" if last <= chosen else "fails: more units are better"
    return claim, f"{chosen} units", here, held


def _pairs(settings):
    """Returns the settings with both starts: several random ones, if some have them."""
    both = [s for s in settings if s.grown and s.random]
    several = [s for s in both if len(s.random) > 1]
    return several or both


def _starts(rule, published, settings):
    """A rule from the grown model against the best of several random starts."""
    shown, held, apart = [], [], 0
    for setting in _pairs(settings):
        random, count = setting.random[0], len(setting.random)
        gain = round(setting.grown["test"] - random["test"], 1) + 0.0  # not -0.0
        starts = f"{count} start{'s' if count > 1 else ''}"
        shown.append(
            f"{setting.size} units {gain:+.1f} ({starts}, {setting.epochs} epochs)"
        )
        held.append(gain > 0.0)
        apart += _are_apart(setting.grown, random)
    found = verdict(held)
    if held and not apart:
        found = "open: the intervals overlap"
    elif apart < len(held):
        found += f", beyond the intervals at {apart} of {len(held)} sizes"
    claim = f"{rule} ends higher from the grown model than from the best random start"
    return claim, published, "; ".join(shown) or "not run", found


def _are_apart(run, other):
    """Returns whether the intervals of two test likelihoods share no value."""
    lower, upper = sorted((run, other), key=lambda run: run["test"])
    ends = lower["upper"], upper["lower"]
    return None not in ends and ends[0] < ends[1]


def _time(name, runs):
    """The time of growing: of steps at several sizes, in turns with epochs of CD."""
    claim = f"growing takes at most twice the time of {EPOCHS[name]} epochs of CD"
    costs = costs_of(runs)
    if not costs:
        return claim, "at most 2", "not run", "open"
    shown = ", ".join(f"{cost.ratio:.1f} with {cost.size}" for cost in costs)
    held = verdict([cost.ratio <= 2.0 for cost in costs])
    held += f", up to {costs[-1].size} units" * (costs[-1].size < CHOSEN[name])
    return claim, "at most 2", f"{shown} units", held


def _features(name, points, settings):
    """Yields the cells of claims about the classifier's errors."""
    grown = {point["size"]: point["error"] for point in points if "error" in point}
    random = {
        setting.size: setting.random[0]["error"]
        for setting in settings
        if setting.random and "error" in setting.random[0]
    }
    for claim, wins, sizes in (
        ("with few units grown features are worse than CD's", np.less, (0, MANY)),
        ("from 450 units on they are better", np.greater, (MANY, np.inf)),
    ):
        shared = [k for k in grown if k in random and sizes[0] <= k < sizes[1]]
        shown = [f"{grown[k]:.1f} and {random[k]:.1f} % with {k}" for k in shared]
        gains = [random[k] - grown[k] for k in shared]
        yield claim, ERRORS[name], _listed(shown), _beyond_chance(name, gains, wins)
    shown, gains = [], []
    for setting in _pairs(settings):
        runs = setting.grown, setting.random[0]
        if all("error" in run for run in runs):
            ours, theirs = (run["error"] for run in runs)
            size, epochs = setting.size, setting.epochs
            shown.append(f"{ours:.1f} and {theirs:.1f} % with {size}, {epochs} epochs")
            gains.append(theirs - ours)
    claim = "CD from the grown model gives better features than from random starts"
    yield claim, "yes", _listed(shown), _beyond_chance(name, gains, np.greater)


def _beyond_chance(name, gains, wins):
    """Returns the verdict of gains, where one within the noise says nothing."""
    clear = [gain for gain in gains if abs(gain) > NOISE[name]]
    if gains and not clear:
        return "undecided: no difference beyond chance"
    return verdict([bool(wins(gain, 0.0)) for gain in clear])


def _listed(shown):
    return "; ".join(shown) or "not run"
