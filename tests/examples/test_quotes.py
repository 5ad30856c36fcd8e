"""README, home, guides and docstrings quote what the records of the papers say."""

import functools
import json
import math
import pathlib
import re

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
MNIST = ("mnist_noisy_10", "mnist_noisy_20", "mnist_occluded_8", "mnist_occluded_12")
TASKS = (*MNIST, "caltech_noisy_20", "caltech_occluded_12")
LINK = re.compile(r"!?\[[^\]]*\]\((\.\./|docs/)?results/[^)]*\)")
MEASURED = re.compile(r"\d+(\.\d+)? (%|nats|minutes|percentage)|\d\.\d")
#: Rules with a run of 200 epochs on MNIST.
LONG_RUNS = "CS-DCP", "S-DCP", "CG", "CD"
SHORT_RUNS = ("CD", "CG", "S-DCP", "CS-DCP")
CALTECH = "caltech101_silhouettes"
LEARNERS = ("LR", "CD-1", "CD-10", "CD-PercLoss", "MLE-MF", "MLE-BP", "LSSVM", "MSSVM")


@functools.cache
def records(folder):
    paths = sorted((RESULTS / folder).glob("*.json"))
    return [json.loads(path.read_text()) for path in paths]


def select(folder, **wanted):
    runs = records(folder)
    return [run for run in runs if all(run.get(k) == v for k, v in wanted.items())]


def best(task, learner, **wanted):
    """Returns a cell's run, with fresh corruption: the least validation error."""
    wanted = {"corruption": "fresh", "hidden_units": 256} | wanted
    runs = select("structured_prediction", task=task, learner=learner, **wanted)
    return min(runs, key=lambda run: run["validation"])


def error(task, learner, **wanted):
    return best(task, learner, **wanted)["test"]["all"]


def best_rbm():
    (run,) = (run for run in records("best_rbm") if run["set"] == "mnist")
    return run


def first_pages():
    run = best_rbm()
    yield f"| {error('mnist_noisy_10', 'MLE-BP'):.2f} % | 1.69 % published |"
    score, minutes = run["both_ways"][0], math.ceil(run["minutes"])
    yield f"| {score:.1f} in {minutes} minutes on 2 cores |"
    ours, chains = (
        select("multilabel", set="yeast", method=method)[0][decision]["exact"]
        for method, decision in (("crbm", "mode"), ("chains", "marginal"))
    )
    yield f"| {ours:.1f} % | {chains:.1f} % by an ensemble of classifier chains |"


def settings():
    run = best_rbm()
    yield f"[{run['both_ways'][0]:.1f} nats](../results/best_rbm.md)"


def inference():
    errors = {task: {name: error(task, name) for name in LEARNERS} for task in TASKS}
    behind = max(own["MLE-BP"] / min(own.values()) - 1.0 for own in errors.values())
    yield f"within {math.ceil(100 * behind)} % of the best in all six here"
    ahead = sum(errors[task]["MSSVM"] < errors[task]["MLE-BP"] for task in MNIST)
    yield f"ahead of MLE-BP in {NUMBERS[ahead]} of the four MNIST tasks"
    silhouettes = errors["caltech_occluded_12"]
    lead = silhouettes["MLE-BP"] - silhouettes["LSSVM"]
    assert min(silhouettes, key=silhouettes.get) == "LSSVM"
    yield f"{lead:.3f} percentage points ahead of MLE-BP"
    low, high = (error("mnist_noisy_10", "CD-PercLoss", rate=r) for r in (0.02, 0.2))
    yield f"a rate of 0.02 ends with {low:.1f} % of the pixels wrong, "
    yield f"a rate of 0.2 with {high:.1f} %"
    for task, learner, name in (
        ("mnist_occluded_8", "CD-1", "8×8 pixels covered, CD-1"),
        ("mnist_occluded_8", "CD-10", "CD-10"),
        ("mnist_noisy_10", "CD-1", "10 % of the pixels wrong, CD-1"),
        ("mnist_noisy_10", "CD-10", "CD-10"),
        ("mnist_noisy_20", "CD-10", "20 % of the pixels wrong, CD-10"),
    ):
        by_start = converged(task, learner)["by_start"]
        least = min(by_start.values())
        cells = [f"{e:.2f}" for e in by_start.values()]
        cells = [f"**{c}**" if c == f"{least:.2f}" else c for c in cells]
        yield f"| {name} | {' | '.join(cells)} |"
    wrong = [converged(task, "MLE-MF")["by_start"]["biases"] for task in MNIST]
    yield f"{min(wrong):.0f} to {max(wrong):.0f} % of the pixels wrong"
    few, many = (error("mnist_noisy_10", "CD-1", sweeps=n) for n in (10, None))
    yield f"{few:.2f} % of the pixels wrong after 10 sweeps, {many:.2f} % at the fixed"


def converged(task, learner):
    """Returns the best run whose mean field starts at x and goes to a fixed point."""
    return best(task, learner, start="input", sweeps=None)


def mean_field():
    errors = converged("mnist_occluded_8", "CD-1")["by_start"]
    yield f"{errors['x']:.1f} % of the pixels are wrong"
    yield f"{errors['biases']:.1f} % from"
    yield f"it is {errors['both']:.1f} %"


def growing():
    points = growth("frank_wolfe", "mnist")
    gaps = [point["gap"] for point in points]
    yield f"rose by {gaps[-1] - min(gaps):.1f} nats up to {points[-1]['units']} units"
    gaps = [point["gap"] for point in growth("frank_wolfe", CALTECH)]
    low = int(np.argmin(gaps))
    yield f"fell by {gaps[0] - gaps[low]:.0f} and rose by {gaps[-1] - gaps[low]:.1f}"
    earlier = growth("frank_wolfe/earlier", "mnist")
    yield f"it was {excess(at(earlier, 400)):.1f} nats above annealing at 400 units"
    yield f"it was at most {max(map(excess, points)):.1f} above"
    first = at(earlier, 20)["test"] - at(points, 20)["test"]
    yield f"With 20 units the first row is ahead by {first:.0f} nats"
    quick, slow = (at(own, 200)["minutes"] for own in (earlier, points))
    yield f"200 units in {quick:.0f} minutes, the second row in {slow:.0f}"
    for own in (earlier, points):
        cells = [at(own, size) for size in (100, 200, 300, 400, 460)]
        shown = [f"{cell['test']:.1f}, {cell['error']:.1f} %" for cell in cells]
        yield f"| {' | '.join(shown)} | {cells[-1]['minutes']:.0f} |"
    last = points[-1]
    yield f"with {last['size']} units the second row has {last['test']:.1f} nats and "
    yield f"{last['error']:.1f} % errors, after {last['minutes']:.0f} minutes"
    for size in (100, 200, 300, 460, 600, 700):
        cells = [
            best_start(size, rule, grown)
            for rule in ("cd", "pcd")
            for grown in (True, False)
        ]
        yield f"| {size} | {' | '.join(cells)} |"


def best_start(size, rule, grown):
    """Test likelihood of the grown model's or the best random start's training."""
    runs = select("frank_wolfe", set="mnist", size=size, epochs=20, last_rate=0.0)
    runs = [run for run in runs if (run["start"] == "fw") == grown]
    runs = [run for run in runs if run.get("rule", "cd") == rule]
    if not runs:
        return "not run"
    run = max(runs, key=lambda run: run["validation"])
    return f"{run['test']:.1f}{'' if run['lower'] is not None else '†'}"


def growth(folder, name):
    """Returns the points of a growth, with the minutes since the first unit."""
    stages = select(folder, set=name, start="grow")
    points, before, end = [], 0.0, [run["begin"] for run in stages[1:]] + [math.inf]
    for stage, last in zip(sorted(stages, key=lambda s: s["begin"]), end, strict=True):
        for point in stage["points"]:
            if point["size"] <= last:
                minutes = (before + point["seconds"]) / 60.0
                points.append(point | {"minutes": minutes})
        before += max(p["seconds"] for p in stage["points"] if p["size"] <= last)
    return points


def at(points, size):
    return next(point for point in points if point["size"] == size)


def excess(point):
    """How far the running likelihood is above annealing, nats."""
    return point["validation_running"] - point["validation"]


def rules():
    run = best_rbm()
    yield f"[{run['both_ways'][0]:.1f} nats](../results/best_rbm.md)"
    plain, centered = (
        np.mean([best_mean(rule, rate) for rule in rules for rate in (0.3, 0.5)])
        for rules in (("CD", "S-DCP"), ("CG", "CS-DCP"))
    )
    yield f"settle {centered - plain:.1f} nats lower"
    last = {rule: np.mean(scores(rule, 40), 0)[-1] for rule in SHORT_RUNS}
    yield f"centered S-DCP is at {last['CS-DCP']:.1f} nats; CD is at {last['CD']:.1f}, "
    yield f"centered form at {last['CG']:.1f}, S-DCP at {last['S-DCP']:.1f}"
    long = [scores(rule, 200)[0] for rule in LONG_RUNS]
    *reach, never = (own >= ninety(*long) for own in long)
    assert not never.any()
    first, *later = (int(np.argmax(own)) * 5 for own in reach)
    yield f"90 % of the gain in {first} epochs, S-DCP in {later[0]}, "
    yield f"centered CD in {later[1]}, CD not at all"
    ends = [f"{own[-1]:.1f}" for own in long]
    yield f"end at {', '.join(ends[:-1])} and {ends[-1]} nats"
    early, late = scores("S-DCP", 40), scores("CD", 40)
    goal = ninety(early, late)
    firsts = [2 * np.mean(np.argmax(own >= goal, 1)) for own in (early, late)]
    yield f"leads CD by about {firsts[1] - firsts[0]:.0f} epochs"


def scores(rule, epochs):
    """Log-likelihoods of a rule's runs on MNIST, a row for each seed."""
    usual = {"rate": 0.01, "batch_size": 200, "inner_steps": 6, "start": "base"}
    runs = select("dc_programming", set="mnist", rule=rule, **usual)
    return np.array(
        [run["log_likelihood"] for run in runs if run["epochs"][-1] == epochs]
    )


def ninety(*curves):
    start = max(np.max(own[..., 0]) for own in curves)
    return start + 0.9 * (max(map(np.max, curves)) - start)


def best_mean(rule, rate):
    """The highest mean log-likelihood of the trials on Shifting Bar."""
    (run,) = select("dc_programming", set="shifting_bar", rule=rule, rate=rate)
    return np.mean(run["log_likelihood"], 0).max()


def changes():
    errors = converged("mnist_occluded_8", "CD-1")["by_start"]
    yield f"{errors['x']:.1f} % of the pixels wrong, and {errors['biases']:.1f} % with"


def priors():
    """The best of three rates of each prior, by validation."""
    record = json.loads((RESULTS / "discrete_vae" / "mnist.json").read_text())
    best = {}
    for name in ("rbm", "independent"):
        runs = [run for run in record["runs"].values() if run["prior"] == name]
        best[name] = max(runs, key=lambda run: run["validation"])
        yield f"| {best[name]['elbo']:.1f} | {best[name]['importance']:.1f} |"
    for milliseconds in record["milliseconds"].values():
        yield f"{milliseconds:.1f} ms |"
    gain = best["rbm"]["elbo"] - best["independent"]["elbo"]
    yield f"by {gain:.1f} nats over a prior of independent bits"
    low, high = best["rbm"]["interval"]
    yield f"| ±{(high - low) / 2:.2f} |"
    yield f"the encoder uses {best['independent']['used']} of the 128 bits"


def heads():
    record = json.loads((RESULTS / "structured_head" / "mnist.json").read_text())
    for run in record["runs"].values():
        test = run["test"]
        error, whole = test["pixel_error"][0], test["whole_images"][0]
        yield f"| {whole:.2f} | {test['log_likelihood'][0]:.1f} |"
        if "difference" not in run:
            continue
        difference = run["difference"]
        by, own = difference["pixel_error"]
        yield f"| {error:.3f} | {by:+.3f} ± {own:.3f} |"
        by, own = difference["log_likelihood"]
        yield f"| {by:+.1f} ± {own:.1f} |"


def sizes():
    chosen = {run["set"]: run for run in records("density") if "tempering" in run}
    trees = {run["set"]: run["test"] for run in select("density", method="tree")}
    below = []
    for run in select("density", kind="default"):
        best = chosen[run["set"]]
        nats = best["test"] + best["log_z"][0] - best["tempering"][0]
        below.append(nats - run["test"])
        assert run["test"] > trees[run["set"]]
    small = sum(gain <= 0.2 for gain in below)
    yield f"On {len(below)} tables"
    yield f"on {small} of them the best of all tried settings gains no more than 0.2"
    units = [run["units"] for run in chosen.values()]
    assert max(units) == 200  # "400 never gained more"


def forecasts():
    path = RESULTS / "defaults" / "scikit_learn.json"
    runs = json.loads(path.read_text())
    for name in ("sunspots", "lynx", "returns", "macro"):
        ridge, line, ours = (
            runs[f"{name} | {how}"] for how in ("ridge", "autoregression", "CRBM(8)")
        )
        errors = (f"{run['error']:.3f}" for run in (ridge, line, ours))
        densities = (f"{run['log_density']:.2f}" for run in (ridge, ours))
        yield f"| {' | '.join((*errors, *densities))} |"


def answers():
    def means(way):
        paths = (RESULTS / "gaps").glob(f"bfi.table.{way}.*.json")
        runs = [json.loads(path.read_text()) for path in paths]
        keys = ("accuracy", 100.0, 1), ("points", 1.0, 3)
        return [
            f"{np.mean([k * run[key] for run in runs]):.{n}f}" for key, k, n in keys
        ]

    right, points = means("RBM-12-gaussian")
    yield f"gets {right} % of the hidden answers right, and its means have an rms of "
    binary, regressions = means("RBM-16"), means("IterativeImputer-numbers")
    yield f"{points} points; with 16 binary hidden units {' % and '.join(binary)}"
    yield f"of numbers {' % and '.join(regressions)}"


QUOTES = {
    "docs/guides/which-unit-for-which-data.md": answers,
    "docs/guides/series.md": forecasts,
    "docs/guides/structured-prediction.md": heads,
    "docs/guides/rbm-as-a-prior.md": priors,
    "CHANGELOG.md": changes,
    "README.md": first_pages,
    "docs/index.md": first_pages,
    "docs/guides/choose-settings.md": settings,
    "docs/guides/how-many-units.md": sizes,
    "docs/guides/grow-the-hidden-layer.md": growing,
    "docs/guides/which-rule-for-an-rbm.md": rules,
    "docs/guides/which-inference-which-rule.md": inference,
    "keras_rbm/inference/messages/approximate_inference.py": mean_field,
}


@pytest.mark.parametrize("page", QUOTES)
def test_page_quotes_the_records(page):
    text = " ".join((ROOT / page).read_text().split())
    missing = [quote for quote in QUOTES[page]() if quote not in text]
    assert not missing


def test_no_page_gives_numbers_of_results_without_a_test():
    """A page with a paragraph of numbers that links to results quotes records."""
    pages = [ROOT / "README.md", ROOT / "docs/index.md"]
    for page in pages + sorted((ROOT / "docs/guides").rglob("*.md")):
        for block in page.read_text().split("\n\n"):
            words = LINK.sub("", block)
            if words != block and MEASURED.search(words):
                assert str(page.relative_to(ROOT)) in QUOTES
