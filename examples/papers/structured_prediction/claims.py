"""The claims of Ping & Ihler (2017), beside what the records say."""

from examples.papers.pages import verdict
from examples.papers.structured_prediction.experiment import TASKS
from examples.papers.structured_prediction.results import (
    KINDS,
    PUBLISHED,
    best,
    errors_by_size,
    errors_of,
    longest,
)

COMMAND = "`experiment`"
SQUARES = "`--tasks mnist_occluded_4 …`"
FIGURE_4 = "`--optimizers sgd --epochs 50 …`"
#: Epochs of the paper's runs.
LAST = 50
CD = ("CD-1", "CD-10", "CD-PercLoss")
OTHERS = ("LR", *CD, "MLE-MF", "LSSVM")
# That the best of some learners makes fewer errors than all of others, and a part of
# the names of the tasks that this is about.
BETTER = (
    ("MLE-BP makes fewer errors than all others", ["MLE-BP"], [*OTHERS, "MSSVM"], ""),
    ("MNIST: MLE-BP makes fewer errors than MSSVM", ["MLE-BP"], ["MSSVM"], "mnist"),
    ("MNIST: MSSVM makes fewer errors than the other six", ["MSSVM"], OTHERS, "mnist"),
    ("Caltech: MLE-BP or MSSVM makes the fewest errors", ["MLE-BP", "MSSVM"], OTHERS,
     "caltech"),
    ("MLE-BP makes fewer errors than MLE-MF", ["MLE-BP"], ["MLE-MF"], ""),
    ("MLE-BP makes fewer errors than CD-1, CD-10, CD-PercLoss", ["MLE-BP"], CD, ""),
    ("MSSVM makes fewer errors than LSSVM", ["MSSVM"], ["LSSVM"], ""),
    ("occluded: CD-1 and CD-10 make more errors than LR", ["LR"], CD[:2], "occluded"),
)  # fmt: skip


def claims(records):
    """Yields claim, published, here fixed, here fresh, verdict, command."""
    errors = [_published(), *(errors_of(records, kind) for kind in KINDS)]
    for claim, first, others, tasks in BETTER:
        won = [_wins(own, first, others, tasks) for own in errors]
        theirs, *ours = map(sum, won)
        held = verdict([count >= theirs for count in ours])
        if held == "fails" and any(ours):
            held = "holds in part"
        shown = [f"{sum(own)} of {len(own)} tasks" for own in won]
        yield claim, *shown, held, COMMAND
    theirs, *ours = gains = list(map(_gains, errors))
    held = [
        gain >= least for own in ours for gain, least in zip(own, theirs, strict=True)
    ]
    shown = [f"{', '.join(map(str, own))} %" for own in gains]
    shown[0] += " (from its tables)"
    claim = "MNIST: MLE-BP makes fewer errors than CD-PercLoss, by"
    yield claim, *shown, verdict(held), COMMAND
    yield _squares(records)
    yield from _convergence(records)


def counts(records):
    """Yields learner, and of each corruption how many cells are at or below print."""
    published, *ours = [_published(), *(errors_of(records, kind) for kind in KINDS)]
    for learner in PUBLISHED["all"]:
        good = [
            sum(own[task][learner] <= published[task][learner] for task in TASKS)
            for own in ours
        ]
        yield learner, *(f"{count} of {len(TASKS)}" for count in good)


def _published():
    """Returns a dict of task to a dict of learner to its published error."""
    return {
        task: {name: errors[column] for name, errors in PUBLISHED["all"].items()}
        for column, task in enumerate(TASKS)
    }


def _wins(errors, first, others, tasks):
    """Returns whether the claim holds, for each of its tasks."""
    return [
        min(own[name] for name in first) < min(own[name] for name in others)
        for task, own in errors.items()
        if tasks in task
    ]


def _gains(errors):
    """Returns by how many percent MLE-BP's errors are fewer, on each task of MNIST."""
    return [
        round(100.0 * (1.0 - own["MLE-BP"] / own["CD-PercLoss"]))
        for task, own in errors.items()
        if "mnist" in task
    ]


def _squares(records):
    ours = errors_by_size(records, "MLE-BP")
    ahead = {}
    for rival in ("CD-10", "LR"):
        theirs = errors_by_size(records, rival)
        ahead[rival] = [size for size in ours if theirs[size] < ours[size]]
    shown = [f"{name} ahead at {_listed(sizes)}" for name, sizes in ahead.items()]
    return (
        "figure 3: MLE-BP beats CD-10 unless the image is almost fully covered",
        "but at about 28",
        "not run",
        f"{'; '.join(shown)}, of squares of {_listed(ours)}",
        verdict([size not in ahead["CD-10"] for size in ours if size <= 20]),
        SQUARES,
    )


def _convergence(records):
    """Belief propagation early in training, and at its end."""
    held, early = [], []
    for kind in KINDS:
        first = {
            task: best(records, task, "MLE-BP", kind)["history"]["bp_converged"][0]
            for task in TASKS
        }
        words = []
        for name in ("MNIST", "Caltech"):
            own = [x for task, x in first.items() if task.startswith(name.lower())]
            held += [share > 0.5 for share in own]
            words.append(f"{name} {min(own):.0%} to {max(own):.0%}")
        early.append(f"{', '.join(words)} of images")
    claim = "belief propagation converges within 7 sweeps early in training"
    yield claim, "typically", *early, verdict(held), COMMAND
    late = [longest(records, "mnist_occluded_8", "MLE-BP", kind) for kind in KINDS]
    late = [run["history"]["bp_converged"] for run in late]
    shown = [f"{own[-1]:.0%} in epoch {len(own)}" for own in late]
    complete = [own[-1] > 0.5 for own in late if len(own) >= LAST]
    claim = "figure 4, occluded 8×8: it converges on most images in the end"
    yield claim, f"by epoch {LAST}", *shown, verdict(complete), FIGURE_4


def _listed(sizes):
    return ", ".join(map(str, sizes)) or "none"
