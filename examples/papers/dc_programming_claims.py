"""The claims of Upadhya & Sastry (2017), beside what the records say."""

import numpy as np
import pages

SMALL = "`small`"
MNIST = "`large --set mnist`"
DRAWINGS = "`large --set omniglot_drawings`"
RATES = (0.3, 0.5)
#: Nats within which values count as about the same.
SAME = 0.15


def table(small, large):
    """Returns the lines of the table, of records of small sets and of large ones."""
    lines = pages.head("claim", "published", "here", "verdict", "command")
    lines += _shifting_bar(_Curves(small, "shifting_bar"))
    lines += _bars_and_stripes(_Curves(small, "bars_and_stripes"))
    lines += _mnist([run for run in large if run["set"] == "mnist"])
    lines += _drawings([run for run in large if run["set"] == "omniglot_drawings"])
    claim = "SSD with batches of 1,000: like CS-DCP, diverges by epoch 250"
    lines.append(pages.row(claim, "figure 5", "not run", "open", ""))
    claim = "larger d at d·K' = 24 learns faster; batches and starts matter little"
    lines.append(pages.row(claim, "figures 6, 7", "not run", "open", ""))
    return lines


class _Curves:
    """Mean curves of the trials on a small set."""

    def __init__(self, runs, name):
        own = [run for run in runs if run["set"] == name]
        self.curves = {
            (run["rule"], run["rate"]): np.mean(run["log_likelihood"], 0) for run in own
        }
        self.epochs = own[0]["epochs"] if own else []

    def best(self, rule, rate):
        return self.curves[rule, rate].max()

    def first(self, rule, rate, goal):
        """Returns the first epoch at the goal or above, or `None`."""
        return first_epoch(self.epochs, self.curves[rule, rate], goal)


def first_epoch(epochs, scores, goal):
    """Returns the first epoch that was scored at the goal or above, or `None`."""
    pairs = zip(epochs, scores, strict=True)
    return next((epoch for epoch, score in pairs if score >= goal), None)


def _shifting_bar(curves):
    if not curves.curves:
        return []
    stuck = {
        (rule, rate): curves.first(rule, rate, -3.0)
        for rule in ("CD", "PCD")
        for rate in RATES
    }
    left = [f"{rule} at {rate} by {epoch:,}" for (rule, rate), epoch in stuck.items()]
    both = [[curves.best(rule, r) for r in RATES] for rule in ("S-DCP", "CS-DCP")]
    values = [f"{a:.2f} and {b:.2f}" for a, b in both]
    goals = {rate: curves.curves["S-DCP", rate].max() - SAME for rate in RATES}
    firsts = [
        curves.first(rule, rate, goals[rate])
        for rule in ("CD", "PCD", "CG")
        for rate in RATES
    ]
    earliest = min(epoch for epoch in firsts if epoch is not None)
    return [
        pages.row(
            "Shifting Bar: CD and PCD do not leave -3.15",
            "at both rates",
            f"above -3.0: {', '.join(left)} epochs",
            "fails",
            SMALL,
        ),
        pages.row(
            "CG leaves it at rate 0.5",
            "yes",
            f"{curves.best('CG', 0.5):.2f}",
            "**holds**" if curves.best("CG", 0.5) > -3.0 else "fails",
            SMALL,
        ),
        pages.row(
            "S-DCP and CS-DCP reach the same value at both rates",
            "about",
            f"S-DCP {values[0]}, CS-DCP {values[1]}",
            "**holds**" if np.ptp(both) < SAME else "fails: the centered one is higher",
            SMALL,
        ),
        pages.row(
            "the others need 30,000 updates to come to the value of S-DCP",
            "over 30,000",
            f"the first one {earliest:,}",
            "**holds**" if earliest > 30_000 else "fails",
            SMALL,
        ),
    ]


def _bars_and_stripes(curves):
    if not curves.curves:
        return []
    rules = ("S-DCP", "CS-DCP", "CG")
    bests = [[curves.best(rule, rate) for rule in rules] for rate in RATES]
    same = [np.ptp(best) < SAME for best in bests]
    shown = "; ".join(", ".join(f"{value:.2f}" for value in best) for best in bests)
    later = [
        curves.epochs[curves.curves["CG", rate].argmax()]
        - curves.epochs[curves.curves["CS-DCP", rate].argmax()]
        for rate in RATES
    ]
    return [
        pages.row(
            "Bars & Stripes: S-DCP, CS-DCP and CG reach the same value",
            "about",
            f"{shown} (rates 0.3; 0.5)",
            "**holds**" if all(same) else "holds in part" if any(same) else "fails",
            SMALL,
        ),
        pages.row(
            "CG comes there later than CS-DCP",
            "2,500 epochs",
            f"{later[0]:,} and {later[1]:,} epochs",
            "**holds**" if min(later) > 0 else "fails",
            SMALL,
        ),
    ]


def _mnist(runs):
    ends = {}
    for run in runs:
        ends.setdefault(run["rule"], []).append(run["log_likelihood"][-1])
    if not ends:
        return []
    last = max(run["epochs"][-1] for run in runs)
    means = {rule: np.mean(values) for rule, values in ends.items()}
    behind = ", ".join(f"{rule} {value:.1f}" for rule, value in means.items())
    spread = max(means.values()) - min(means.values())
    verdict = "**holds**" if spread < 3.0 else "fails"
    before = _first_ninety(runs, "CG") - _first_ninety(runs, "CS-DCP")
    return [
        pages.row(
            "MNIST, rate 0.01: CS-DCP comes 90 % of the way before CG",
            "100 epochs",
            f"{before:.0f} epochs of {last}",
            "**holds**, by less" if before > 0 else "fails",
            MNIST,
        ),
        pages.row(
            "MNIST: all rules end at the same value",
            "by epoch 200",
            f"after {last} epochs {behind}",
            verdict if last >= 200 else "open",
            MNIST,
        ),
    ]


def _first_ninety(runs, rule):
    """Returns the mean epoch that is 90 % of the way to the best of all rules."""
    start = np.mean([run["log_likelihood"][0] for run in runs])
    goal = start + 0.9 * (max(max(run["log_likelihood"]) for run in runs) - start)
    own = [run for run in runs if run["rule"] == rule]
    firsts = [first_epoch(run["epochs"], run["log_likelihood"], goal) for run in own]
    ends = (run["epochs"][-1] for run in own)
    firsts = [e if f is None else f for f, e in zip(firsts, ends, strict=True)]
    return np.mean(firsts)


def _drawings(runs):
    claim = "OMNIGLOT: S-DCP and CS-DCP lead in speed and value"
    if not runs:
        return [pages.row(claim, "figure 4", "not run", "open", DRAWINGS)]
    lines = []
    for rate in sorted({run["rate"] for run in runs}):
        own = [run for run in runs if run["rate"] == rate]
        best = {run["rule"]: max(run["log_likelihood"]) for run in own}
        ranked = sorted(best, key=best.get, reverse=True)
        shown = ", ".join(f"{rule} {best[rule]:.1f}" for rule in ranked)
        holds = set(ranked[:2]) == {"S-DCP", "CS-DCP"}
        part = ranked[0] in ("S-DCP", "CS-DCP")
        verdict = "**holds**" if holds else "holds in part" if part else "fails"
        last = own[0]["epochs"][-1]
        here = f"{shown} ({last} epochs)"
        lines.append(
            pages.row(f"{claim}, rate {rate}", "figure 4", here, verdict, DRAWINGS)
        )
    return lines


if __name__ == "__main__":
    raise SystemExit("A part of dc_programming.py: run that.")
