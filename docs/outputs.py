"""Runs the Python blocks of pages and writes below each what it prints.

    python docs/outputs.py docs/guides/deploy.md

A test runs them again and compares.
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
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_PROGRESS = re.compile(
    r"^Epoch \d+/\d+|━|^.*\r|\x08|^Downloading|downloaded and prepared"
)


def outputs(text, name):
    """Runs a page's blocks in one namespace; yields each match and what it prints."""
    namespace = {"__name__": "guide"}
    for block in BLOCK.finditer(text):
        first_line = text.count("\n", 0, block.start("code"))
        code = "\n" * first_line + block["code"]  # tracebacks name the page's own lines
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), namespace)
        lines = printed.getvalue().splitlines(keepends=True)
        yield block, "".join(row for row in lines if not _PROGRESS.search(row))


def alike(one, other, tolerance=0.1):
    """Returns whether texts are equal, whole numbers too, and other numbers close."""
    if _NUMBER.split(one.rstrip()) != _NUMBER.split(other.rstrip()):
        return False
    numbers = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(_close(a, b, tolerance) for a, b in numbers)


def _close(one, other, tolerance):
    if one.lstrip("-").isdigit() and other.lstrip("-").isdigit():
        return one == other
    one, other = float(one), float(other)
    return abs(one - other) <= tolerance * max(abs(one), abs(other)) + 0.02


def write(path):
    """Writes the outputs of a page into it."""
    text = path.read_text(encoding="utf-8")
    done, end = "", 0
    for block, output in outputs(text, path.name):
        done += text[end : block.start()] + f"```python\n{block['code']}```\n"
        end = block.end("code") + len("```\n")
        if output.strip():
            done += f"\n```text\n{output.rstrip()}\n```\n"
            end = block.end()
    path.write_text(done + text[end:], encoding="utf-8")


if __name__ == "__main__":
    pages = [pathlib.Path(page).absolute() for page in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:  # pages save files
        os.chdir(folder)
        for page in pages:
            write(page)
