"""Markdown tables and figures of the papers' result pages."""

import json
import math

import matplotlib.pyplot as plt


def read_records(folder):
    """Returns the records, one JSON file each, in a folder."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def write_record(path, record):
    """Writes a JSON file, as a whole or not at all; null where a number has no end."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(_finite(record), allow_nan=False) + "\n")
    part.replace(path)


def _finite(value):
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def row(*cells):
    """Returns a line of a Markdown table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def head(*cells):
    """Returns the two lines that a Markdown table begins with."""
    return [row(*cells), row(*["---"] * len(cells))]


def verdict(held):
    """Returns what bools, one for each case of a claim, say of it; "open" for none."""
    if not held:
        return "open"
    return "**holds**" if all(held) else "holds in part" if any(held) else "fails"


def figure(folder, name, draw, *arguments):
    """Draws a figure and returns the lines that show it on the page beside `folder`.

    Args:
        folder: path, where the figure is saved.
        name: str, its file name without ending.
        draw: function of a matplotlib figure and the arguments; returns the caption.
    """
    plt.rcParams["svg.hashsalt"] = name  # the same file each time
    canvas = plt.figure(figsize=(7.5, 3.6), layout="constrained")
    caption = draw(canvas, *arguments)
    for axes in canvas.axes:
        axes.spines[["top", "right"]].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    canvas.savefig(folder / f"{name}.svg", metadata={"Date": None})
    plt.close(canvas)
    return [f"![{name.replace('_', ' ')}]({folder.name}/{name}.svg)", "", caption, ""]


if __name__ == "__main__":
    raise SystemExit("A part of the commands here: see README.md.")
