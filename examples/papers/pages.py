"""What pages of results print: tables, verdicts and figures."""

import matplotlib.pyplot as plt


def table(head, rows):
    """Prints a Markdown table.

    Args:
        head: str, the columns, as in `"rule | rate"`.
        rows: iterable of iterables of cells.
    """
    columns = head.split(" | ")
    for cells in (columns, ["---"] * len(columns), *rows):
        print("| " + " | ".join(map(str, cells)) + " |")
    print()


def verdict(held):
    """Returns what bools, one for each case of a claim, say of it; "open" for none."""
    if not held:
        return "open"
    return "**holds**" if all(held) else "holds in part" if any(held) else "fails"


def so_far(held, complete):
    """Returns the verdict of a claim that longer runs, if not complete, may change."""
    found = verdict(held)
    if complete or found == "open":
        return found
    return "open" if found == "fails" else f"{found}, so far"


def figure(folder, name, draw, *arguments):
    """Draws a figure, saves it in a folder, and prints what shows it on the page.

    Args:
        folder: path.
        name: str, its file name without ending.
        draw: function of a matplotlib figure and the arguments.
    """
    plt.rcParams["svg.hashsalt"] = name  # the same file each time
    canvas = plt.figure(figsize=(7.5, 3.6), layout="constrained")
    draw(canvas, *arguments)
    for axes in canvas.axes:
        axes.spines[["top", "right"]].set_visible(False)
    canvas.savefig(folder / f"{name}.svg", metadata={"Date": None})
    plt.close(canvas)
    print(f"![{name.replace('_', ' ')}]({folder.name}/{name}.svg)\n")
