"""Shows the examples of docstrings, which the tests run, as highlighted code.

They come first, before arguments. In Markdown a line that begins with `>>>` is a
quotation in a quotation.
"""

import re

import griffe  # comes with mkdocstrings

_EXAMPLE = re.compile(r"^Example:\n.*?(?=^[A-Z]\w+:\n|\Z)", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^(?:Args|Attributes|Returns|Yields|Raises):\n", re.MULTILINE)
_DOCTEST = re.compile(r"^([ ]*)>>> .*(?:\n\1\S.*)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Puts a fence around each example as it is read."""

    def on_object(self, *, obj, **kwargs):
        if obj.docstring is not None and not obj.is_alias:
            text = _example_first(obj.docstring.value)
            text = text.replace("Example:\n", "**Example:**\n")
            obj.docstring.value = _DOCTEST.sub(r"\1```pycon\n\g<0>\n\1```", text)


def _example_first(text):
    """Returns a docstring whose example stands before its first section."""
    example, section = _EXAMPLE.search(text), _SECTION.search(text)
    if not example or not section or example.start() < section.start():
        return text
    rest = text[: example.start()] + text[example.end() :]
    shown = example[0].strip() + "\n\n"
    return rest[: section.start()] + shown + rest[section.start() :]
