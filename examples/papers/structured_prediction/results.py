"""What the records of `experiment.py` say: tables of the page, and its figures."""

from itertools import product

from matplotlib.ticker import MaxNLocator

from examples.papers.structured_prediction.experiment import (
    ALL_TASKS,
    EPOCHS,
    OCCLUSIONS,
    TASKS,
)

KINDS = ("fixed", "fresh")
# The paper's tables 1 to 3, task by task: percentage of wrong pixels,
ALL = """
LR           1.960  4.088  1.468  3.498  5.653  4.771
CD-1         1.925  4.012  1.814  3.983  5.876  5.033
CD-10        1.816  3.995  1.707  3.921  5.736  5.149
CD-PercLoss  1.760  3.970  1.394  3.483  5.622  5.081
MLE-MF       1.862  3.917  1.492  3.477  5.617  4.692
MLE-BP       1.688  3.691  1.329  3.117  5.445  4.548
LSSVM        1.807  3.910  1.496  3.468  5.628  4.703
MSSVM        1.751  3.804  1.391  3.273  5.549  4.534
"""
# and of wrong pixels among those changed.
CHANGED = """
LR          12.531 12.609 61.304 53.971 11.460 16.587
CD-1        12.229 12.597 63.130 58.376 12.423 20.300
CD-10       11.103 11.271 67.925 63.237 12.013 21.087
CD-PercLoss 11.121 10.876 45.684 35.755 10.808 15.102
MLE-MF      11.319 10.939 49.553 40.703 11.083 15.995
MLE-BP      10.718 10.409 39.785 36.233 10.731 16.541
LSSVM       11.565 11.175 44.037 39.140 11.468 16.014
MSSVM       11.023 10.627 41.829 35.712 11.389 14.918
"""


def _published(table):
    """Returns a table's figures by learner."""
    rows = (line.split() for line in table.split("\n") if line)
    return {name: list(map(float, figures)) for name, *figures in rows}


PUBLISHED = {"all": _published(ALL), "changed": _published(CHANGED)}
LEARNERS = tuple(PUBLISHED["all"])


def select(records, **wanted):
    """Returns the records with these entries."""
    return [record for record in records if wanted.items() <= record.items()]


def best(records, task, learner, corruption):
    """Returns a cell's run: the one with the least validation error."""
    runs = select(records, task=task, learner=learner, corruption=corruption)
    return min(runs, key=lambda run: run["validation"])


def longest(records, task, learner, corruption):
    """Returns a cell's run of the most epochs."""
    runs = select(records, task=task, learner=learner, corruption=corruption)
    return max(runs, key=lambda run: len(run["history"]["bp_converged"]))


def errors_of(records, corruption):
    """Returns a dict of task to a dict of learner to its test error."""
    return {
        task: {
            name: best(records, task, name, corruption)["test"]["all"]
            for name in LEARNERS
        }
        for task in TASKS
    }


def errors_by_size(records, learner):
    """Returns a dict of the side of the occluded square to the test error."""
    tasks = {size: f"mnist_occluded_{size}" for size in OCCLUSIONS}
    return {
        size: best(records, task, learner, "fresh")["test"]["all"]
        for size, task in tasks.items()
    }


def summary(records):
    """Yields the rows of a table of the best learner in each task."""
    errors = {kind: errors_of(records, kind) for kind in KINDS}
    for (column, task), kind in product(enumerate(TASKS), KINDS):
        own = errors[kind][task]
        first = min(own, key=own.get)
        beside = []
        for name in ("MLE-BP", "MSSVM"):
            beside += [f"{own[name]:.3f}", f"{PUBLISHED['all'][name][column]:.3f}"]
        yield TASKS[task][-1], kind, len(own), first, f"{own[first]:.3f}", *beside


def surprises(records):
    """Returns where the best learner is not the published one, in a few words."""
    errors = {kind: errors_of(records, kind) for kind in KINDS}
    found = []
    for (column, task), kind in product(enumerate(TASKS), KINDS):
        own = errors[kind][task]
        first = min(own, key=own.get)
        expected = min(LEARNERS, key=lambda name: PUBLISHED["all"][name][column])
        if first != expected:
            lead = f"{own[expected] - own[first]:.3f} below {expected}"
            found.append(f"{TASKS[task][-1]}, {kind}: {first}, {lead}")
    return "; ".join(found)


def task_rows(records, task):
    """Yields the rows of a task's table."""
    column = list(TASKS).index(task)
    for learner, kind in product(LEARNERS, KINDS):
        runs = select(records, task=task, learner=learner, corruption=kind)
        run = best(runs, task, learner, kind)
        cells = {}
        for pixels in ("all", "changed"):
            ours, theirs = run["test"][pixels], PUBLISHED[pixels][learner][column]
            shown = f"**{ours:.3f}**" if ours <= theirs else f"{ours:.3f}"
            cells[pixels] = shown, f"{theirs:.3f}"
        difference = run["test"]["all"] - PUBLISHED["all"][learner][column]
        figures = *cells["all"], f"{difference:+.3f}", *cells["changed"]
        tried = "; ".join(map(_setting, runs))
        yield learner, kind, *figures, _setting(run), run["best_epoch"], tried


def _setting(run):
    start = " from x" if run.get("start") == "input" else ""
    start += f", {run['sweeps']} sweeps" if "sweeps" in run else ""
    decay = f", decay {run['weight_decay']}" if "weight_decay" in run else ""
    optimizer = "momentum" if decay else run["optimizer"]
    return f"{optimizer} {run['rate']}{decay}, {run['epochs']}{start}"


def start_rows(records):
    """Yields the rows of the table of errors by mean field's start."""
    scored = [record for record in records if "by_start" in record]
    for task, learner, kind in product(TASKS, LEARNERS, KINDS):
        if select(scored, task=task, learner=learner):
            errors = best(scored, task, learner, kind)["by_start"].values()
            cells = [f"{e:.3f}" if e > min(errors) else f"**{e:.3f}**" for e in errors]
            yield TASKS[task][-1], learner, kind, *cells


def fixed_rows(records):
    """Yields the rows of a table of MLE-BP's optimizers, fixed corruption."""
    for column, task in enumerate(TASKS):
        published = PUBLISHED["all"]["MLE-BP"][column]
        cells = []
        for name in ("sgd", "average", "decay", "momentum"):
            own = select(records, optimizer=name)
            cells.append("")
            if select(own, task=task, learner="MLE-BP", corruption="fixed"):
                run = best(own, task, "MLE-BP", "fixed")
                error = f"{run['test']['all']:.3f}"
                if run["test"]["all"] <= published:
                    error = f"**{error}**"
                decay = f"decay {run['weight_decay']}, " if name == "decay" else ""
                epochs = f"epoch {run['best_epoch']} of {run['epochs']}"
                cells[-1] = f"{error} ({decay}rate {run['rate']}, {epochs})"
        yield TASKS[task][-1], f"{published:.3f}", *cells


def marginal_rows(records):
    """Yields the rows of a table of learning by the marginals, beside three others."""
    for task in TASKS:
        run = best(records, task, "Marginals", "fresh")
        cells = [_with_epochs(run)]
        epochs = EPOCHS[ALL_TASKS[task][0], "fresh"]
        for learner in ("MLE-BP", "MSSVM", "CD-PercLoss"):
            own = select(records, epochs=epochs)
            cells.append(_with_epochs(best(own, task, learner, "fresh")))
        yield TASKS[task][-1], *cells


def _with_epochs(run):
    return f"{run['test']['all']:.3f} ({run['epochs']})"


def larger_rows(records):
    """Yields the rows of the table of models of more hidden units."""
    for run in records:
        setting = [run[key] for key in ("learner", "hidden_units", "corruption")]
        errors = [f"{run['test'][pixels]:.3f}" for pixels in ("all", "changed")]
        minutes = round(sum(run["history"]["seconds"]) / 60.0, 1)
        yield TASKS[run["task"]][-1], *setting, *errors, _setting(run), minutes


def draw_convergence(figure, records):
    """Draws the paper's figure 4."""
    axes = figure.subplots()
    for kind in KINDS:
        run = longest(records, "mnist_occluded_8", "MLE-BP", kind)
        percent = [100.0 * share for share in run["history"]["bp_converged"]]
        axes.plot(range(1, len(percent) + 1), percent, "o-", label=kind)
    axes.legend(frameon=False)
    axes.set(xlabel="epoch", ylabel="converged, %", ylim=(0.0, 102.0))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_occlusion(figure, records):
    """Draws the paper's figure 3."""
    axes = figure.subplots()
    for learner in ("LR", "CD-10", "MLE-BP"):
        errors = errors_by_size(records, learner)
        axes.plot(list(errors), list(errors.values()), "o-", label=learner)
    axes.legend(frameon=False)
    axes.set(
        xlabel="side of the occluded square, pixels", ylabel="wrong pixels, %", ylim=0.0
    )
    axes.set_xticks(OCCLUSIONS)
