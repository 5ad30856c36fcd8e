"""What the site's build adds: MathJax, the changelog, the project's links, pictures.

MathJax is an npm package: the built site needs no network, and the package is not in
the repository.
"""

import base64
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import tomllib
from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

_ROOT = pathlib.Path(__file__).parent.parent
_PACKAGE = "mathjax@3.2.2"
_SCRIPT = pathlib.Path(__file__).parent / "javascripts" / "tex-svg.js"
#: What TensorFlow says when a tutorial starts.
_LOGGED = re.compile(r'<div [^>]*mime-type="[^"]*stderr"[^>]*>.*?</div>', re.DOTALL)
#: What a notebook's page begins with, the same on each, and its styles.
_BODY = '<div class="jupyter-wrapper">'
_STYLE = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)
_STYLES = "stylesheets/notebook.css"
_PICTURE = re.compile(r'src="data:image/png;base64,([^"]+)"')


def on_config(config):
    """Puts the script where the pages look for it, once, and names the addresses."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # of the tutorials
    if not _SCRIPT.exists():
        with tempfile.TemporaryDirectory() as folder:
            command = ["npm", "install", "--silent", "--prefix", folder, _PACKAGE]
            subprocess.run(command, check=True)
            shutil.copy(f"{folder}/node_modules/mathjax/es5/tex-svg.js", _SCRIPT)
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    urls = project.get("urls", {})  # which whoever publishes the project fills in
    config.repo_url = urls.get("Repository")
    config.site_url = urls.get("Documentation")
    return config


def on_files(files, config):
    """Makes the changelog a page; its links start at the repository's root."""
    text = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    page = text.replace("](docs/", "](")
    files.append(File.generated(config, "changelog.md", content=page))
    return files


def on_page_markdown(markdown, page, config, **_):
    """Says on the first page what to clone."""
    if page.file.src_uri == "index.md" and config.repo_url:
        install = 'pip install -e ".[examples]"'
        clone = f"git clone {config.repo_url} keras-rbm && cd keras-rbm\n{install}"
        return markdown.replace(install, clone, 1)
    return markdown


def on_page_content(html, page, config, **_):
    """Drops what a tutorial logs, keeps its richest picture for the gallery.

    The styles of notebooks, 0.6 MB a page, go to one file that all tutorials link.
    """
    if not page.file.src_uri.startswith("tutorials/"):
        return html
    if pictures := _PICTURE.findall(html):
        path = _in_site(config, f"{page.url}picture.png")
        path.write_bytes(base64.b64decode(max(pictures, key=len)))
    head, body, rest = html.partition(_BODY)
    styles = "\n".join(_STYLE.findall(head))
    _in_site(config, _STYLES).write_text(styles, encoding="utf-8")
    link = f'<link rel="stylesheet" href="{get_relative_url(_STYLES, page.url)}">\n'
    rest = _PICTURE.sub(_marked, _LOGGED.sub("", rest))
    return _STYLE.sub("", head) + link + body + rest


def _marked(picture):
    """Returns a PNG as it is, marked if it is wide: on a phone those scroll."""
    width = int.from_bytes(base64.b64decode(picture[1])[16:20], "big")
    return ("data-wide " if width > 900 else "") + picture[0]


def _in_site(config, name):
    """Returns the path of a file of the built site, in a folder that exists."""
    path = pathlib.Path(config.site_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
