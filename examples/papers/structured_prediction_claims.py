"""The claims of Ping & Ihler (2017), beside what the records say."""

import pages

COMMAND = "`structured_prediction.py`"
#: A first learner that is said to make fewer errors than the others named.
BETTER = (
    ("MLE-BP", ("LR", "CD-1", "CD-10", "CD-PercLoss", "MLE-MF", "LSSVM", "MSSVM")),
    ("MLE-BP", ("MLE-MF",)),
    ("MLE-BP", ("CD-1", "CD-10")),
    ("MSSVM", ("LSSVM",)),
    ("CD-PercLoss", ("CD-1", "CD-10")),
)


def table(published, cells, figure, converged):
    """Returns the lines of the table.

    Args:
        published: dict of learner to its errors, a list over the tasks.
        cells: dict of corruption to a list over the tasks: dicts of learner to error.
        figure: dict of learner to a dict of the side of the square to error.
        converged: dict of corruption to the share that converged in the last epoch.
    """
    columns = "published", "here, fixed", "here, fresh", "verdict", "command"
    lines = pages.head("claim", *columns)
    count = len(next(iter(published.values())))
    theirs = [{name: row[k] for name, row in published.items()} for k in range(count)]
    for first, others in BETTER:
        rivals = "all others" if len(others) > 3 else " and ".join(others)
        counts = [_wins(tasks, first, others) for tasks in (theirs, *cells.values())]
        shown = [f"{won} of {of} tasks" if of else "not run" for won, of in counts]
        share, *ours = [won / max(of, 1) for won, of in counts]
        claim = f"{first} makes fewer errors than {rivals}"
        lines.append(pages.row(claim, *shown, _verdict(ours, share), COMMAND))
    for learner in published:
        met = []
        for tasks in cells.values():
            run = [(own, k) for k, own in enumerate(tasks) if learner in own]
            good = sum(own[learner] <= published[learner][k] for own, k in run)
            met.append((good, len(run)))
        shown = [f"{good} of {of}" for good, of in met]
        claim = f"errors of {learner}, at or below print"
        verdict = _verdict([good / max(of, 1) for good, of in met])
        own = f"`--learners {learner}`"
        lines.append(pages.row(claim, "tasks", *shown, verdict, own))
    sizes = sorted(figure["MLE-BP"])
    ahead = [s for s in sizes if figure["MLE-BP"][s] < figure["CD-10"].get(s, 101.0)]
    claim = "figure 3: MLE-BP beats CD-10 unless the image is nearly covered"
    shown = f"squares of {', '.join(map(str, ahead))}, of {', '.join(map(str, sizes))}"
    holds = all(size in ahead for size in sizes if size <= 20)
    lines.append(pages.row(claim, "", "", shown, _verdict([holds]), COMMAND))
    shares = [f"{share:.0%}" for share in converged.values()]
    claim = "figure 4: belief propagation converges on most images, last epoch"
    verdict = _verdict([share > 0.5 for share in converged.values()])
    lines.append(pages.row(claim, "most", *shares, verdict, COMMAND))
    return lines


def _wins(tasks, first, others):
    """Returns in how many tasks a learner is ahead of all others, and how many ran."""
    run = [own for own in tasks if {first, *others} <= own.keys()]
    return sum(own[first] < min(own[name] for name in others) for own in run), len(run)


def _verdict(shares, enough=1):
    """Returns what shares of tasks, or bools, say of a claim."""
    if min(shares) >= enough:
        return "**holds**"
    return "holds in part" if any(shares) else "fails"


if __name__ == "__main__":
    raise SystemExit("A part of structured_prediction.py: run that.")
