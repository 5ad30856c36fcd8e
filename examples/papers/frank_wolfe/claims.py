"""The claims of Ping, Liu & Ihler (2016), beside what the records say."""

import numpy as np
import pages

TITLES = {"mnist": "MNIST", "caltech101_silhouettes": "Caltech"}
#: Units that the paper's free-energy gap chose, and its epochs of CD.
CHOSEN = {"mnist": 460, "caltech101_silhouettes": 550}
EPOCHS = {"mnist": 200, "caltech101_silhouettes": 400}
ERRORS = {"mnist": "2 to 3.5 %", "caltech101_silhouettes": "34 to 42 %"}
#: Units from which grown features are said to be the better ones.
MANY = 450
#: Two standard errors of a difference of two classifiers' errors, in percent.
NOISE = {"mnist": 0.5, "caltech101_silhouettes": 2.7}
#: Nats that 100 units gain at most where the likelihood is flat.
FLAT = 2.0
#: How much the speed of the machine varied from run to run.
SPEEDS = 3.0


def table(name, points, trained):
    """Returns lines of the table, without its head.

    Args:
        name: data set.
        points: scored points of the growth.
        trained: runs of CD and PCD.
    """
    title = TITLES[name]
    grow, train = (f"`{c} --set {name}`" for c in ("grow", "train"))
    settings = by_setting([run for run in trained if not is_persistent(run)])
    persistent = by_setting([run for run in trained if is_persistent(run)])
    rows = [(*_rises(name, points), grow), (*_stops(name, points), grow)]
    rows += [(*_starts(settings), train), (*_time(name, points, settings), grow)]
    if persistent:
        rows.append((*_starts_of_pcd(persistent), f"`train --set {name} --rule pcd`"))
    rows += [(*cells, train) for cells in _features(name, points, settings)]
    return [pages.row(f"{title}: {claim}", *cells) for claim, *cells in rows]


def is_persistent(run):
    """Returns whether a run is of PCD, not CD."""
    return run.get("rule", "cd") == "pcd"


def by_setting(runs):
    """Returns a dict of setting to a dict of "fw" and "random" to their runs.

    A setting is a rule, a size, a number of epochs and how far the rate falls. Of a
    start's runs at several rates the one with the highest validation likelihood counts.
    The random starts with the highest validation likelihoods come first.
    """
    found = {}
    for run in runs:
        key = run.get("rule", "cd"), round(run["size"], -1)
        own = found.setdefault((*key, run["epochs"], run["last_rate"]), {})
        other = own.get(run["start"])
        if other is None or run["validation"] > other["validation"]:
            own[run["start"]] = run
    return {
        key: {
            "fw": [run for start, run in own.items() if start == "fw"],
            "random": sorted(
                (run for start, run in own.items() if start != "fw"),
                key=lambda run: -run["validation"],
            ),
        }
        for key, own in sorted(found.items())
    }


def _pairs(settings):
    """Returns size, epochs, run from the grown model, best random one and its starts.

    Only of settings with several random starts, if there are any.
    """
    both = {k: own for k, own in settings.items() if own["fw"] and own["random"]}
    most = max((len(own["random"]) for own in both.values()), default=0)
    return [
        (size, epochs, own["fw"][0], own["random"][0], len(own["random"]))
        for (_, size, epochs, _), own in both.items()
        if len(own["random"]) > 1 or most == 1
    ]


def _rises(name, points):
    scores = [point["test"] for point in points]
    first, last = points[0], points[-1]
    rises = all(
        after > before for before, after in zip(scores, scores[1:], strict=False)
    )
    late = next(p for p in points if p["units"] >= last["units"] - 100)
    gain = last["test"] - late["test"]
    here = f"{first['test']:.1f} with {first['units']} units, {last['test']:.1f} with "
    here += f"{last['units']}; the last {last['units'] - late['units']} gain {gain:.1f}"
    held = pages.verdict([rises, gain < FLAT])
    if held == "holds in part" and last["units"] <= CHOSEN[name]:
        held = "**holds** up to there"
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


def _starts(settings):
    """CD from the grown model against the best of several random starts."""
    claim = "CD ends higher from the grown model than from the best random start"
    shown, held, apart = [], [], 0
    for size, epochs, grown, random, count in _pairs(settings):
        gain = round(grown["test"] - random["test"], 1) + 0.0  # not -0.0
        starts = f"{count} start{'s' if count > 1 else ''}"
        shown.append(f"{size} units {gain:+.1f} ({starts}, {epochs} epochs)")
        held.append(gain > 0.0)
        apart += _are_apart(grown, random)
    verdict = pages.verdict(held)
    if held and not apart:
        verdict = "open: the intervals overlap"
    elif apart < len(held):
        verdict += f", beyond the intervals at {apart} of {len(held)} sizes"
    return claim, "at every size", "; ".join(shown) or "not run", verdict


def _are_apart(run, other):
    """Returns whether the intervals of two test likelihoods share no value."""
    lower, upper = sorted((run, other), key=lambda run: run["test"])
    ends = lower["upper"], upper["lower"]
    return None not in ends and ends[0] < ends[1]


def _starts_of_pcd(settings):
    claim, _, here, verdict = _starts(settings)
    return claim.replace("CD", "PCD"), "not in the paper", here, verdict


def _features(name, points, settings):
    """Yields the cells of claims about the classifier's errors."""
    random = {}
    for (_, size, epochs, _), own in settings.items():
        scored = [run for run in own["random"] if "error" in run]
        if scored and epochs >= random.get(size, (0,))[0]:
            random[size] = epochs, scored[0]["error"]
    grown = {round(p["units"], -1): p["error"] for p in points if "error" in p}
    for claim, wins, sizes in (
        ("with few units grown features are worse than CD's", np.less, (0, MANY)),
        ("from 450 units on they are better", np.greater, (MANY, np.inf)),
    ):
        shared = [k for k in grown if k in random and sizes[0] <= k < sizes[1]]
        shown = [f"{grown[k]:.1f} and {random[k][1]:.1f} % with {k}" for k in shared]
        gains = [random[k][1] - grown[k] for k in shared]
        yield claim, ERRORS[name], _list(shown), _beyond_chance(name, gains, wins)
    pairs = [
        (size, epochs, grown["error"], other["error"])
        for size, epochs, grown, other, _ in _pairs(settings)
        if "error" in grown and "error" in other
    ]
    shown = [f"{a:.1f} and {b:.1f} % with {k}, {e} epochs" for k, e, a, b in pairs]
    gains = [theirs - ours for *_, ours, theirs in pairs]
    claim = "CD from the grown model gives better features than from random starts"
    yield claim, "yes", _list(shown), _beyond_chance(name, gains, np.greater)


def _beyond_chance(name, gains, wins):
    """Returns the verdict of gains, where one within the noise says nothing."""
    clear = [gain for gain in gains if abs(gain) > NOISE[name]]
    if gains and not clear:
        return "open: no difference beyond chance"
    return pages.verdict([bool(wins(gain, 0.0)) for gain in clear])


def _list(shown):
    return "; ".join(shown) or "not run"


def _time(name, points, settings):
    minutes, epochs = points[-1]["minutes"], EPOCHS[name]
    claim = f"growing takes at most twice the time of {epochs} epochs of CD"
    units = points[-1]["units"]
    large = {key: own["random"] for key, own in settings.items() if own["random"]}
    large = {key: runs for key, runs in large.items() if key[1] >= MANY}
    if not large:
        return claim, "at most 2", "not run", "open"
    run = large[max(large, key=lambda key: (key[1], key[2]))][0]
    theirs = run["seconds"] / 60.0 * epochs / run["epochs"]
    ratio = minutes / theirs
    here = f"{ratio:.1f} times: {minutes:.0f} minutes to {units} units, CD {theirs:.0f}"
    if run["epochs"] != epochs:
        here += f", from {run['epochs']} epochs"
    held = "**holds**" if ratio <= 2.0 else "fails"
    if 2.0 / SPEEDS < ratio < 2.0 * SPEEDS:
        held = "open: the machine's speed varied as much"
    return claim, "at most 2", here, held
