"""Shows the doctest blocks of docstrings as highlighted code, and formulas typeset.

In Markdown a line that begins with `>>>` is a quotation in a quotation; the
docstrings' examples, which the tests run, need a fence around them.
"""

import re

import griffe  # comes with mkdocstrings
from formulas import typeset  # docs/hooks.py has loaded it

_DOCTEST = re.compile(r"^([ ]*)>>> .*(?:\n\1\S.*)*", re.MULTILINE)
_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)
_REFERENCES = re.compile(r"^References:\n((?:[ ]+.*\n?)+)", re.MULTILINE)


def _fence(match):
    indent = match[1]
    return f"{indent}```pycon\n{match[0]}\n{indent}```"


def _dedent(match):
    lines = match[1].splitlines()
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "**References**\n\n" + "\n".join(line[margin:] for line in lines) + "\n"


class ForPages(griffe.Extension):
    """Rewrites docstrings as they are read."""

    def on_object(self, *, obj, **kwargs):
        if obj.docstring is None or obj.is_alias:
            return
        text = obj.docstring.value
        text = typeset(text)
        text = _REFERENCES.sub(_dedent, text)
        text = _EXAMPLE.sub("**Example**\n", text)
        obj.docstring.value = _DOCTEST.sub(_fence, text)
