"""Runs the Python blocks of pages and writes below each what it prints.

    python docs/outputs.py docs/guides/deploy.md docs/results/best_rbm.md

Pages of results do not show their blocks: these are comments, `<!-- python … -->`, that
print Markdown, up to `<!-- end -->`. A test runs all blocks again and compares.
"""

import contextlib
import io
import os
import pathlib
import re
import sys
import tempfile

BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
#: A block that the page does not show, and the Markdown that it prints.
HIDDEN = re.compile(
    r"^<!-- python\n(?P<code>.*?)^-->\n(?:(?P<output>(?:(?!^<!--).)*)^<!-- end -->\n)?",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_PROGRESS = re.compile(
    r"^Epoch \d+/\d+|━|^.*\r|\x08|^Downloading|downloaded and prepared"
)


def outputs(text, name):
    """Runs a page's blocks in one namespace; yields each match and what it prints."""
    namespace = {"__name__": "guide"}
    for block in BLOCK.finditer(text):
        lines = _printed(block, name, namespace).splitlines(keepends=True)
        yield block, "".join(row for row in lines if not _PROGRESS.search(row))


def filled(text, name, folder):
    """Returns a page of results with what its blocks print.

    Args:
        text: str, the page.
        name: str, for tracebacks.
        folder: path, that of the page's records and figures. Blocks know it as
            `folder`.
    """
    namespace = {"__name__": "results", "folder": folder}

    def fill(block):
        printed = _printed(block, name, namespace).strip("\n")
        shown = f"\n{printed}\n\n<!-- end -->\n" if printed else ""
        return f"<!-- python\n{block['code']}-->\n{shown}"

    return HIDDEN.sub(fill, text)


def _printed(block, name, namespace):
    """Runs a block and returns what it prints."""
    first_line = block.string.count("\n", 0, block.start("code"))
    code = "\n" * first_line + block["code"]  # tracebacks name the page's own lines
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), namespace)
    return printed.getvalue()


def alike(one, other, tolerance=0.1):
    """Returns whether texts are equal, whole numbers too, and other numbers close.

    Spaces do not count: NumPy pads a column of numbers to the longest of them. A
    standard error, after ±, may be twice the other: with few draws it varies as much.
    """
    one, other = " ".join(one.split()), " ".join(other.split())
    between = _NUMBER.split(one)
    if between != _NUMBER.split(other):
        return False
    numbers = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(
        _close(*pair, 0.5 if before.endswith("± ") else tolerance)
        for before, pair in zip(between, numbers, strict=False)
    )


def _close(one, other, tolerance):
    if one.lstrip("-").isdigit() and other.lstrip("-").isdigit():
        return one == other
    one, other = float(one), float(other)
    return abs(one - other) <= tolerance * max(abs(one), abs(other)) + 0.02


def write(path):
    """Writes the outputs of a page into it."""
    text = path.read_text(encoding="utf-8")
    if HIDDEN.search(text):
        text = filled(text, path.name, path.with_suffix(""))
        path.write_text(text, encoding="utf-8")
        return
    done, end = "", 0
    for block, output in outputs(text, path.name):
        done += text[end : block.start()] + f"```python\n{block['code']}```\n"
        end = block.end("code") + len("```\n")
        if output.strip():
            done += f"\n```text\n{output.rstrip()}\n```\n"
            end = block.end()
    path.write_text(done + text[end:], encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))  # for `examples`
    pages = [pathlib.Path(page).absolute() for page in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:  # pages save files
        os.chdir(folder)
        for page in pages:
            write(page)
