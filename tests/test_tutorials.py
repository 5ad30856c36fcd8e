"""Tutorials run from end to end, and have cards; their links lead to pages."""

import pathlib
import re
import runpy

import matplotlib
import pytest

DOCS = pathlib.Path(__file__).parents[1] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))
BY_NAME = pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)


@BY_NAME
def test_links_are_those_of_the_built_site(path):
    """The site's tool leaves links in cells as they are."""
    words = [line for line in path.read_text().splitlines() if line.startswith("#")]
    for link in re.findall(r"\]\(([^)]+)\)", "\n".join(words)):
        page = (DOCS / "tutorials" / path.stem / link).resolve()
        assert page.with_suffix(".md").exists() or page.with_suffix(".py").exists()


@BY_NAME
def test_has_a_card(path):
    gallery = (DOCS / "gallery.md").read_text()
    assert f"](tutorials/{path.name})" in gallery
    assert f"/{path.stem}/picture.png" in gallery


@BY_NAME
def test_has_one_name(path):
    """Its title, its card and its place in the menu are called the same."""
    title = re.search(r"^# # (.+)$", path.read_text(), re.M)[1]
    assert f"**[{title}](tutorials/{path.name})**" in (DOCS / "gallery.md").read_text()
    menu = (DOCS.parent / "mkdocs.yml").read_text()
    assert f"- {title}: tutorials/{path.name}\n" in menu


@pytest.mark.slow
@BY_NAME
def test_runs(path, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    with matplotlib.rc_context({"backend": "agg"}):
        runpy.run_path(str(path))
