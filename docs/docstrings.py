"""Shows the examples of docstrings, which the tests run, as highlighted code.

In Markdown a line that begins with `>>>` is a quotation in a quotation.
"""

import re

import griffe  # comes with mkdocstrings

_DOCTEST = re.compile(r"^([ ]*)>>> .*(?:\n\1\S.*)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Puts a fence around each example as it is read."""

    def on_object(self, *, obj, **kwargs):
        if obj.docstring is not None and not obj.is_alias:
            text = obj.docstring.value.replace("Example:\n", "**Example:**\n")
            obj.docstring.value = _DOCTEST.sub(r"\1```pycon\n\g<0>\n\1```", text)
