"""What the site's build adds: MathJax, the changelog, the project's links, the cards.

MathJax is an npm package: the built site needs no network, and the package is not in
the repository.
"""

import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import tomllib
from mkdocs.structure.files import File

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import formulas  # noqa: E402, F401  # which docstrings.py then finds loaded
from gallery_cards import Gallery  # noqa: E402

_ROOT = pathlib.Path(__file__).parent.parent
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
    urls = _urls()
    config.repo_url = urls.get("Repository")
    config.site_url = urls.get("Documentation")
    return config


def _urls():
    """Returns `[project.urls]`, which whoever publishes the project fills in."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    return project.get("urls", {})


def on_files(files, config):
    """Makes the changelog a page; its links start at the repository's root."""
    text = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    page = text.replace("](docs/", "](")
    files.append(File.generated(config, "changelog.md", content=page))
    return files


def on_page_markdown(markdown, page, config, **_):
    """Starts the clock of a page, and says on the first one what to clone."""
    _gallery.begin()
    if page.is_homepage and config.repo_url:
        install = 'pip install -e ".[examples]"'
        clone = f"git clone {config.repo_url} keras-rbm && cd keras-rbm\n{install}"
        return markdown.replace(install, clone, 1)
    return markdown


def on_page_content(html, page, **_):
    """Keeps the card of a tutorial, which has just run, and drops its log lines."""
    if page.file.src_uri.startswith("tutorials/"):
        _gallery.add(page, html)
        return _LOGGED.sub("", html)
    return html


def on_page_context(context, page, nav, **_):
    """Puts the cards in their place; by now every page is rendered."""
    page.content = page.content.replace("<!-- cards -->", _gallery.html(nav.pages))
