"""The claims of Upadhya & Sastry (2017), beside what the records say."""

import math

import numpy as np

from examples.papers.dc_programming import sensitivity
from examples.papers.dc_programming.curves import by_rule, ninety
from examples.papers.pages import so_far, verdict

RATES = (0.3, 0.5)
#: A twelfth of these, where the claims about Shifting Bar hold.
SLOWER = (0.024, 0.04)
DCP = ("S-DCP", "CS-DCP")
#: Nats within which values count as about the same, on small sets and large ones.
SAME_SMALL, SAME = 0.15, 3.0
#: Epochs of the paper's runs on large sets, and of those with spectral descent.
LAST, LAST_OF_SPECTRAL = 200, 250


def claims(small, large):
    """Yields claim, published, here, verdict, command."""
    experiments = {}
    for of_set, curves in _small(small, RATES):
        yield from ((*cells, "`small`") for cells in of_set(*curves.values()))
        experiments |= curves
    mnist = [run for run in large if run["set"] == "mnist"]
    usual = by_rule([run for run in mnist if not sensitivity.differs(run)])
    if usual:
        yield from _mnist(usual)
        experiments["MNIST, 0.01"] = usual
    drawn = [run for run in large if run["set"] == "omniglot_drawings"]
    drawn = [run for run in drawn if sensitivity.differs(run) <= {"rate"}]
    for rate in sorted({run["rate"] for run in drawn}):
        curves = by_rule(_of_rate(drawn, rate))
        yield _drawings(rate, curves)
        experiments[f"OMNIGLOT, {rate}"] = curves
    yield from _spectral([run for run in mnist if run["batch_size"] == 1000])
    yield from sensitivity.claims(mnist)
    yield *_mostly_highest(experiments), "all of these"


def slower(small):
    """Yields claims that the small sets bear on, judged by runs at smaller rates."""
    experiments = {}
    for of_set, curves in _small(small, SLOWER):
        yield from of_set(*curves.values())
        experiments |= curves
    yield _mostly_highest(experiments)


def _small(runs, rates):
    """Yields what claims of each small set are, and a dict of its curves, by rate."""
    for name, title, of_set in (
        ("shifting_bar", "Shifting Bar", _shifting_bar),
        ("bars_and_stripes", "Bars & Stripes", _bars_and_stripes),
    ):
        own = [run for run in runs if run["set"] == name]
        if own:
            yield (
                of_set,
                {f"{title}, {rate}": by_rule(_of_rate(own, rate)) for rate in rates},
            )


def _of_rate(runs, rate):
    return [run for run in runs if run["rate"] == rate]


def _bests(rule, *groups):
    """Returns a rule's best values, one for each rate, in words."""
    return f"{rule} {', '.join(f'{own[rule].best:.2f}' for own in groups)}"


def _by_less(lead, enough):
    """Returns the verdict of a lead that should be about `enough` or more."""
    return "fails" if lead <= 0 else "**holds**" + (", by less" * (lead < enough))


def _shifting_bar(*groups):
    """Claims about a dict of rule to curves, one for each rate."""
    slow, fast = groups
    yield (
        "Shifting Bar: CD and PCD do not leave -3.15",
        "at rates 0.3 and 0.5",
        f"best {_bests('CD', *groups)}; {_bests('PCD', *groups)}",
        verdict([own[rule].best < -3.0 for own in groups for rule in ("CD", "PCD")]),
    )
    yield (
        "CG leaves it at the higher rate",
        "at 0.5, not at 0.3",
        f"best {_bests('CG', *groups)}",
        verdict([fast["CG"].best > -3.0, slow["CG"].best < -3.0]),
    )
    apart = [abs(fast[rule].best - slow[rule].best) for rule in DCP]
    yield (
        "S-DCP and CS-DCP reach the same value whatever the rate",
        "about",
        f"best {'; '.join(_bests(rule, *groups) for rule in DCP)}",
        verdict([nats < SAME_SMALL for nats in apart]),
    )
    for rule in DCP:
        firsts = {
            rival: [own[rival].first(own[rule].best - SAME_SMALL) for own in groups]
            for rival in ("CD", "PCD", "CG")
        }
        shown = [
            f"{rival} {', '.join('never' if e == math.inf else f'{e:,}' for e in own)}"
            for rival, own in firsts.items()
        ]
        yield (
            f"the others need 30,000 updates to reach the value of {rule}",
            "over 30,000",
            f"{'; '.join(shown)} (of 50,000)",
            verdict([epoch > 30_000 for own in firsts.values() for epoch in own]),
        )


def _bars_and_stripes(*groups):
    rules = (*DCP, "CG")
    same, shown = [], []
    for word in ("best", "last"):
        values = [[getattr(own[rule], word) for rule in rules] for own in groups]
        same += [np.ptp(own) < SAME_SMALL for own in values]
        cells = [", ".join(f"{value:.2f}" for value in own) for own in values]
        shown.append(f"{word} {' and '.join(cells)}")
    yield (
        "Bars & Stripes: S-DCP, CS-DCP and CG reach the same value",
        "about",
        f"{', '.join(rules)} at two rates: {', '.join(shown)}",
        verdict(same),
    )
    leads = [
        own["CG"].first(ninety(own)) - own["CS-DCP"].first(ninety(own))
        for own in groups
    ]
    yield (
        "CG reaches 90 % of the gain later than CS-DCP",
        "by 2,500 epochs",
        f"by {leads[0]:,} and {leads[1]:,}",
        _by_less(min(leads), 2000),
    )
    shown = [_bests(rule, *groups) for rule in ("CD", "PCD")]
    bests = [max(own[rule].best for rule in rules) for own in groups]
    shown.append(f"the best of the three {', '.join(f'{x:.2f}' for x in bests)}")
    yield (
        "CD and PCD do not reach that value",
        "lower, and sensitive to the rate",
        f"best {'; '.join(shown)}",
        verdict(
            [
                own[rule].best < best - SAME_SMALL
                for own, best in zip(groups, bests, strict=True)
                for rule in ("CD", "PCD")
            ]
        ),
    )


def _mnist(curves):
    last = next(iter(curves.values())).epochs[-1]
    command = "`large --set mnist`"
    if {"CG", "CS-DCP"} <= curves.keys():
        goal = ninety(curves)
        ahead, behind = (curves[rule].first(goal) for rule in ("CS-DCP", "CG"))
        yield (
            "MNIST, rate 0.01: CS-DCP reaches 90 % of the gain before CG",
            "by 100 epochs",
            f"CS-DCP at {ahead}, CG at {behind}",
            _by_less(behind - ahead, 80) if last >= LAST else "open",
            command,
        )
    values = [own.last for own in curves.values()]
    complete = last >= LAST and {"CD", "CG", "S-DCP", "CS-DCP"} <= curves.keys()
    shown = ", ".join(f"{rule} {own.last:.1f}" for rule, own in curves.items())
    yield (
        "MNIST: all rules end at the same value",
        "by epoch 200",
        f"after {last} epochs {shown}",
        verdict([np.ptp(values) < SAME]) if complete else "open",
        command,
    )


def _drawings(rate, curves):
    """S-DCP and CS-DCP against the others on drawings that are not the paper's set."""
    last = next(iter(curves.values())).epochs[-1]
    bests = {rule: own.best for rule, own in curves.items()}
    ranked = sorted(bests, key=bests.get, reverse=True)
    goal = ninety(curves)
    firsts = {rule: own.first(goal) for rule, own in curves.items()}
    firsts = {rule: epoch for rule, epoch in firsts.items() if epoch < math.inf}
    in_order = sorted(firsts, key=firsts.get)
    speed = ", ".join(f"{rule} at epoch {firsts[rule]}" for rule in in_order)
    values = ", ".join(f"{rule} {bests[rule]:.1f}" for rule in ranked)
    held = [set(order[:2]) == set(DCP) for order in (ranked, in_order)]
    return (
        f"OMNIGLOT (own drawings), rate {rate}: S-DCP and CS-DCP lead in speed and "
        "value",
        "figure 4",
        f"90 %: {speed}, of {last}; best {values}",
        so_far(held, last >= LAST),
        "`large --set omniglot_drawings`",
    )


def _spectral(runs):
    """Spectral descent at its best rate against CS-DCP at its best."""
    two = [[run for run in runs if run["rule"] == rule] for rule in ("SSD", "CS-DCP")]
    if not all(two):
        return
    shown, bests = [], []
    ours, _ = two = [max(own, key=lambda r: max(r["log_likelihood"])) for own in two]
    for run in two:
        scores, epochs = run["log_likelihood"], run["epochs"]
        bests.append(max(scores))
        shown.append(
            f"{run['rule']} at rate {run['rate']} best {max(scores):.1f} at epoch "
            f"{epochs[scores.index(max(scores))]}, last {scores[-1]:.1f} at "
            f"{epochs[-1]}"
        )
    good = bests[0] > bests[1] - SAME
    fell = ours["log_likelihood"][-1] < bests[0] - SAME
    complete = fell or ours["epochs"][-1] >= LAST_OF_SPECTRAL
    yield (
        "SSD with batches of 1,000: as good as CS-DCP, diverges by epoch 250",
        "figure 5",
        "; ".join(shown),
        so_far([good, fell], complete),
        "`large --batch-size 1000`",
    )


def _mostly_highest(groups):
    """In how many experiments CS-DCP's best value is above those of CD's variants."""
    rivals = {
        name: [own[rule].best for rule in ("CD", "PCD", "CG") if rule in own]
        for name, own in groups.items()
        if "CS-DCP" in own
    }
    won = [
        name
        for name, bests in rivals.items()
        if bests and groups[name]["CS-DCP"].best > max(bests)
    ]
    here = f"in {len(won)} of {len(rivals)}" + (f": {'; '.join(won)}" if won else "")
    return (
        "CS-DCP ends higher than CD, PCD and CG in most experiments",
        "most",
        here,
        verdict([2 * len(won) > len(rivals)]),
    )
