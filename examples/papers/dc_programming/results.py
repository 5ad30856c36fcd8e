"""Writes the page of `dc_programming.py`, and its figures, from its records."""

import dc_programming_claims as claims
import dc_programming_sensitivity as sensitivity
import numpy as np
import pages
from dc_programming_curves import Curve
from dc_programming_rules import RULES
from dc_programming_small import SETS

#: Of the best model of 4 hidden units (150 starts of L-BFGS).
ATTAINABLE = {"bars_and_stripes": -3.12, "shifting_bar": -2.197}

#: What the paper says of its curves.
CLAIMS = {
    "bars_and_stripes": """Published: S-DCP, CS-DCP and CG reach about the same value,
CG some 2,500 epochs after CS-DCP; CD and PCD are lower, and sensitive to the rate.""",
    "shifting_bar": """Published: CD and PCD stay near -3.15 at both rates; CG escapes
at 0.5; S-DCP and CS-DCP reach about the same value at both, where the others need more
than 30,000 updates.""",
}

TITLE = """# DC programming: the experiments of Upadhya & Sastry (2017)
"""
HEADER = """## How it was run

```bash
python examples/papers/dc_programming.py small
python examples/papers/dc_programming.py large --set mnist
one="large --set mnist --seeds 0 --every 4"
python examples/papers/dc_programming.py $one --epochs 200 --every 5 \\
    --rules CD CG S-DCP CS-DCP
python examples/papers/dc_programming.py $one --batch-size 1000 \\
    --rules SSD CS-DCP --rates 0.05
python examples/papers/dc_programming.py $one --batch-size 1000 --rules SSD --rates 0.1
for steps in 2 4 12; do
    python examples/papers/dc_programming.py $one --rules CS-DCP --inner-steps $steps
done
python examples/papers/dc_programming.py $one --rules CS-DCP --rates 0.005 0.05 0.1
for start in zero small small_zero; do
    python examples/papers/dc_programming.py $one --rules CS-DCP --start $start
done
for size in 100 500 1000; do
    python examples/papers/dc_programming.py $one --rules S-DCP --batch-size $size
done
python examples/papers/dc_programming.py large --set omniglot_drawings --data folder \\
    --rates 0.01 0.05 --seeds 0 --epochs 12
python examples/papers/dc_programming.py report
```

CD, PCD, CG (centered CD), S-DCP and CS-DCP (centered S-DCP), all with the same number
of Gibbs sweeps per batch, the same initial weights, and plain gradient descent at a
fixed rate. Figures are mean log-likelihoods in nats.
"""

SMALL = """## Small sets: exact likelihoods

4 hidden units, full batches, 12 sweeps an epoch (S-DCP: 3 inner steps of 4), means of
the trials ± their standard error. Bars & Stripes is drawn as in the papers: all-0 and
all-1 have probability 1/8, the other twelve patterns 1/16. The published entropy bounds
-2.6 and -2.2 are not attainable with 4 units on Bars & Stripes: the best found is
-3.12; on Shifting Bar it is -2.197. *Best* is the highest mean over the epochs: beyond
it the sampling rules decline at rates this high.
"""

#: What runs of one section have in common; the rate first.
SETTINGS = (
    "rate",
    "set",
    "gibbs_steps",
    "inner_steps",
    "batch_size",
    "hidden_units",
    "start",
    "epochs",
    "temperatures",
)

#: What should reach 90 % of the gain before what.
BEFORE = (("CS-DCP", "CG"), ("S-DCP", "CD"))

LARGE = """## Large sets: likelihoods by annealed importance sampling

The paper: up to 200 epochs, 10 trials, annealing with 10,000 temperatures. Here the
test set is binarized once at random, and training pixels are drawn again in each epoch;
100 chains. Start *base*: weights from N(0, 0.01²), visible biases at the base rate,
hidden ones at 0. OMNIGLOT's own drawings, shrunk to 28 × 28 and split at random, are
not the set of Burda et al.: likelihoods of the two cannot be compared.

*90 %* is the first scored epoch with `L >= L0 + 0.9 (L* - L0)`, L0 the common start, L*
the best of all rules of the section; ± is the standard error over the seeds, without
that of AIS, which is optimistic the more the worse its chains mix: see the bars.
"""
SECTION = """### {title}, rate {rate}, batches of {batch_size}, {epochs} epochs

{hidden_units} hidden units, {gibbs_steps} sweeps a batch
(S-DCP: {inner_steps} inner steps of {inner}), start *{start}*, {temperatures}
temperatures.
"""


def write(folder, page):
    """Writes the page and its figures from the records in a folder."""
    records = pages.read_records(folder)
    small = [record for record in records if "hidden_units" not in record]
    large = [record for record in records if "hidden_units" in record]
    lines = [TITLE, *claims.table(small, large), "", HEADER]
    lines += [SMALL] if small else []
    for name in dict.fromkeys(record["set"] for record in small):
        title, _ = SETS[name]
        runs = [record for record in small if record["set"] == name]
        lines += [f"### {title}", "", CLAIMS[name], "", *_small_table(runs), ""]
        lines += pages.figure(folder, name, _draw_small, runs, ATTAINABLE[name])
    lines += [LARGE] if large else []
    for settings, runs in _groups(large).items():
        if {run["rule"] for run in runs} <= {"S-DCP", "CS-DCP"}:
            continue  # one setting of those varied below
        named = dict(zip(SETTINGS, settings, strict=True))
        lines += _large_section(folder, named, runs)
    lines += sensitivity.sections(folder, large)
    page.write_text("\n".join(lines))
    print(f"Wrote {page} from {len(records)} records.")


def _small_table(runs):
    lines = pages.head(
        "rule", "rate", "trials", "epoch 5,000", "epoch 50,000", "best", "at epoch"
    )
    ordered = sorted(runs, key=lambda run: (run["rate"], RULES.index(run["rule"])))
    return lines + [_small_row(run) for run in ordered]


def _small_row(run):
    curves = np.array(run["log_likelihood"])
    epochs = run["epochs"]
    best = curves.mean(0).argmax()
    places = [epochs.index(e) if e in epochs else None for e in (5000, 50_000)]
    cells = ["" if i is None else _mean(curves[:, i]) for i in (*places, best)]
    return pages.row(run["rule"], run["rate"], len(curves), *cells, f"{epochs[best]:,}")


def _mean(values):
    if len(values) == 1:
        return f"{values[0]:.2f}"
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.2f} ± {error:.2f}"


def _draw_small(figure, runs, attainable):
    rates = sorted({run["rate"] for run in runs})
    panels = figure.subplots(1, max(len(rates), 1), sharey=True, squeeze=False)[0]
    for axes, rate in zip(panels, rates, strict=False):
        of_rule = {run["rule"]: run for run in runs if run["rate"] == rate}
        for rule in filter(of_rule.get, RULES):
            run = of_rule[rule]
            _curve(axes, rule, run["epochs"], np.array(run["log_likelihood"]))
        axes.axhline(attainable, color="gray", linewidth=0.8, linestyle=":")
        axes.set(title=f"rate {rate}", xlabel="epoch", xscale="log")
        axes.set_xlim(left=50)
    panels[0].set_ylabel("log-likelihood, nats")
    low = min((np.mean(run["log_likelihood"], 0).min() for run in runs), default=-4.0)
    panels[0].set_ylim(max(low, attainable - 2.5), attainable + 0.1)
    panels[-1].legend(frameon=False)
    return "Mean and standard deviation of the trials; dotted, the best attainable."


def _curve(axes, rule, epochs, curves):
    color = f"C{RULES.index(rule)}" if rule in RULES else None
    mean, spread = curves.mean(0), curves.std(0)
    (line,) = axes.plot(epochs, mean, color=color, label=rule)
    color = line.get_color()
    axes.fill_between(
        epochs, mean - spread, mean + spread, color=color, alpha=0.15, linewidth=0.0
    )


def _groups(runs):
    """Returns runs by all settings but rule and seed.

    Of spectral descent, whose rates are its own, by all but the rate, too: its runs
    stand in every group of the other settings.
    """
    groups = {}
    for run in runs:
        if run["rule"] != "SSD":
            groups.setdefault(_settings(run), []).append(run)
    for run in filter(lambda run: run["rule"] == "SSD", runs):
        own = _settings(run)
        for key in [key for key in groups if key[1:] == own[1:]] or [own]:
            groups.setdefault(key, []).append(run)
    return groups


def _settings(run):
    run = run | {"epochs": run["epochs"][-1]}
    return tuple(run[key] for key in SETTINGS)


def _large_section(folder, settings, runs):
    title = sensitivity.TITLES.get(settings["set"], settings["set"])
    inner = settings["gibbs_steps"] // settings["inner_steps"]
    lines = [SECTION.format(title=title, inner=inner, **settings)]
    start = np.mean([run["log_likelihood"][0] for run in runs])
    rivals = [run for run in runs if run["rule"] != "SSD"] or runs
    best = max(max(run["log_likelihood"]) for run in rivals)
    goal = start + 0.9 * (best - start)
    curves = {}
    for run in sorted(runs, key=lambda run: (*RULES, "SSD").index(run["rule"])):
        curves.setdefault(_label(run), []).append(run)
    lines += pages.head("rule", "seeds", "last epoch", "best", "90 %, epoch")
    lines += [_large_row(label, same, goal) for label, same in curves.items()]
    lines += ["", *_leads(runs, start, goal)]
    missing = [rule for rule in RULES if rule not in curves]
    if missing:
        lines += ["", f"Not run yet: {', '.join(missing)}."]
    keys = ("set", "batch_size", "epochs", "rate")
    name = "_".join(str(settings[key]) for key in keys)
    return [*lines, "", *pages.figure(folder, name, _draw_large, curves, goal)]


def _label(run):
    return f"SSD, rate {run['rate']}" if run["rule"] == "SSD" else run["rule"]


def _large_row(label, runs, goal):
    lasts = [run["log_likelihood"][-1] for run in runs]
    bests = [max(run["log_likelihood"]) for run in runs]
    firsts = [first_epoch(run, goal) for run in runs]
    reached = _mean(firsts) if None not in firsts else "not reached"
    return pages.row(label, len(runs), _mean(lasts), _mean(bests), reached)


def _leads(runs, start, goal):
    """Returns a table of how many epochs earlier some rules come to goals."""
    lines = pages.head("earlier by, epochs", "90 %", "90 % of the better of the two")
    for pair in BEFORE:
        two = [[run for run in runs if run["rule"] == rule] for rule in pair]
        if min(map(len, two)) < 2:
            continue
        best = max(max(run["log_likelihood"]) for run in two[0] + two[1])
        goals = goal, start + 0.9 * (best - start)
        lines.append(pages.row(" before ".join(pair), *(_lead(*two, g) for g in goals)))
    return lines if len(lines) > 2 else []


def _lead(ahead, behind, goal):
    """Returns how much earlier one rule's runs come to a goal, with standard error."""
    end = ahead[0]["epochs"][-1]
    firsts, lasts = ([first_epoch(run, goal) for run in two] for two in (ahead, behind))
    if None in firsts:
        return f"not reached in {end}"
    late = f", or more: not reached in {end}" if None in lasts else ""
    lasts = [end if epoch is None else epoch for epoch in lasts]
    lead = np.mean(lasts) - np.mean(firsts)
    error = np.sqrt(sum(np.var(x, ddof=1) / len(x) for x in (firsts, lasts)))
    return f"{lead:.1f} ± {error:.1f}{late}"


def first_epoch(run, goal):
    """Returns the first epoch of a run that was scored at the goal or above."""
    return Curve(run["epochs"], run["log_likelihood"]).first(goal)


def _draw_large(figure, curves, goal):
    axes = figure.subplots()
    for label, runs in curves.items():
        epochs = runs[0]["epochs"]
        keys = ("log_likelihood", "lower", "upper")
        values, lower, upper = (
            np.array([run[key] for run in runs], float) for key in keys
        )
        _curve(axes, label, epochs, values)
        mean = values.mean(0)
        above = upper.mean(0) - mean  # NaN where an interval has no upper end
        bars = (mean - lower.mean(0), np.nan_to_num(above))
        axes.errorbar(epochs, mean, bars, fmt="none", color="gray", linewidth=0.7)
        unbounded = np.isnan(above)
        axes.plot(np.array(epochs)[unbounded], mean[unbounded], "^", color="gray", ms=3)
    axes.axhline(goal, color="gray", linewidth=0.8, linestyle=":")
    axes.set(xlabel="epoch", ylabel="test log-likelihood, nats")
    axes.set_ylim(bottom=goal - 40.0)
    axes.legend(frameon=False)
    return (
        "Mean over the seeds, their standard deviation (shaded) and three standard "
        "errors of AIS (bars; triangles where those of a seed have no upper end); "
        "dotted, 90 % of the way."
    )


if __name__ == "__main__":
    raise SystemExit("A part of dc_programming.py: run that.")
