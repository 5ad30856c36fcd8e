"""What the site's build adds: MathJax from its npm package, and the gallery's cards.

The built site needs no network, and the package is not in the repository.
"""

import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gallery_cards import Gallery  # noqa: E402

_PACKAGE = "mathjax@3.2.2"
_SCRIPT = pathlib.Path(__file__).parent / "javascripts" / "tex-svg.js"
#: What TensorFlow says when a tutorial starts.
_LOGGED = re.compile(r'<div [^>]*mime-type="[^"]*stderr"[^>]*>.*?</div>', re.DOTALL)
_gallery = Gallery()


def on_config(config):
    """Puts the script where the pages look for it, once."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # of the tutorials
    if not _SCRIPT.exists():
        with tempfile.TemporaryDirectory() as folder:
            command = ["npm", "pack", "--silent", _PACKAGE]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            (archive,) = pathlib.Path(folder).glob("*.tgz")
            with tarfile.open(archive) as package:
                content = package.extractfile("package/es5/tex-svg.js").read()
        part = _SCRIPT.with_suffix(".part")
        part.write_bytes(content)
        part.replace(_SCRIPT)
    return config


def on_page_markdown(markdown, page, **_):
    """Starts the clock of a page."""
    _gallery.begin()


def on_page_content(html, page, **_):
    """Keeps the card of a tutorial, which has just run, and drops its log lines."""
    if page.file.src_uri.startswith("tutorials/"):
        _gallery.add(page, html)
        return _LOGGED.sub("", html)
    return html


def on_page_context(context, page, nav, **_):
    """Puts the cards in their place; by now every page is rendered."""
    page.content = page.content.replace("<!-- cards -->", _gallery.html(nav.pages))
