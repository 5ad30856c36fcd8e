"""The claims of Upadhya & Sastry (2017) on small sets."""

import numpy as np
import pages
from dc_programming_curves import by_less, ninety, of_rate

SMALL = "`small`"
RATES = (0.3, 0.5)
RIVALS = ("CD", "PCD", "CG")
#: Nats within which values count as about the same.
SAME = 0.15


def _bests(curves, rule):
    shown = ", ".join(f"{curves[rule, rate].best:.2f}" for rate in RATES)
    return f"{rule} {shown}"


def shifting_bar(curves):
    """Returns lines of the table, of a dict of rule and rate to the mean `Curve`."""
    stuck = [curves[rule, r].best < -3.0 for rule in ("CD", "PCD") for r in RATES]
    free = [curves["CG", 0.5].best > -3.0, curves["CG", 0.3].best < -3.0]
    steady = [
        abs(np.diff([curves[rule, rate].best for rate in RATES])[0]) < SAME
        for rule in ("S-DCP", "CS-DCP")
    ]
    shown = "; ".join(_bests(curves, rule) for rule in ("CD", "PCD"))
    both = "; ".join(_bests(curves, rule) for rule in ("S-DCP", "CS-DCP"))
    lines = [
        pages.row(
            "Shifting Bar: CD and PCD do not leave -3.15",
            "at rates 0.3 and 0.5",
            f"best {shown}",
            pages.verdict(stuck),
            SMALL,
        ),
        pages.row(
            "CG leaves it at the higher rate",
            "at 0.5, not at 0.3",
            f"best {_bests(curves, 'CG')}",
            pages.verdict(free),
            SMALL,
        ),
        pages.row(
            "S-DCP and CS-DCP reach the same value whatever the rate",
            "about",
            f"best {both}",
            pages.verdict(steady),
            SMALL,
        ),
    ]
    for rule in ("S-DCP", "CS-DCP"):
        shown, late = [], []
        for rival in RIVALS:
            firsts = [
                curves[rival, rate].first(curves[rule, rate].best - SAME)
                for rate in RATES
            ]
            late += [first is None or first > 30_000 for first in firsts]
            words = ", ".join("never" if f is None else f"{f:,}" for f in firsts)
            shown.append(f"{rival} {words}")
        lines.append(
            pages.row(
                f"the others need 30,000 updates to reach the value of {rule}",
                "over 30,000",
                f"{'; '.join(shown)} (of 50,000)",
                pages.verdict(late),
                SMALL,
            )
        )
    return lines


def bars_and_stripes(curves):
    """Returns lines of the table, of a dict of rule and rate to the mean `Curve`."""
    rules = ("S-DCP", "CS-DCP", "CG")
    groups = [of_rate(curves, rate) for rate in RATES]
    same, shown = [], []
    for word in ("best", "last"):
        values = [[getattr(own[rule], word) for rule in rules] for own in groups]
        same += [np.ptp(own) < SAME for own in values]
        cells = "; ".join(", ".join(f"{v:.2f}" for v in own) for own in values)
        shown.append(f"{word} {cells}")
    leads = [
        own["CG"].first(ninety(own)) - own["CS-DCP"].first(ninety(own))
        for own in groups
    ]
    low = [own[rule].best < own["S-DCP"].best for own in groups for rule in RIVALS[:2]]
    below = "; ".join(_bests(curves, rule) for rule in (*RIVALS[:2], "S-DCP"))
    return [
        pages.row(
            "Bars & Stripes: S-DCP, CS-DCP and CG reach the same value",
            "about",
            f"{', '.join(rules)} at 0.3; 0.5: {'; '.join(shown)}",
            pages.verdict(same),
            SMALL,
        ),
        pages.row(
            "CG reaches 90 % of the gain later than CS-DCP",
            "by 2,500 epochs",
            f"by {leads[0]:,} and {leads[1]:,}",
            by_less(min(leads), 2000),
            SMALL,
        ),
        pages.row(
            "CD and PCD do not reach that value",
            "lower, and sensitive to the rate",
            f"best {below}",
            pages.verdict(low),
            SMALL,
        ),
    ]


SETS = (
    ("shifting_bar", "Shifting Bar", shifting_bar),
    ("bars_and_stripes", "Bars & Stripes", bars_and_stripes),
)


if __name__ == "__main__":
    raise SystemExit("A part of dc_programming.py: run that.")
