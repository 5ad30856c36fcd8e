"""The result pages say what their records say."""

import pathlib
import re
import shutil

import matplotlib
import outputs
import pytest

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
PAGES = sorted(page.stem for page in RESULTS.glob("*.md"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "proteins" else [])
        for name in PAGES
    ],
)
def test_page_is_what_the_records_give(name, tmp_path, import_example):
    if name == "proteins":
        pytest.importorskip("logomaker")
    records = shutil.copytree(
        RESULTS / name, tmp_path / name, ignore=shutil.ignore_patterns("*.svg")
    )
    text = (RESULTS / f"{name}.md").read_text()
    with matplotlib.rc_context({"backend": "agg"}):
        filled = outputs.filled(text, f"{name}.md", records)
    assert filled == text
    figures = {path.name for path in records.glob("*.svg")}
    assert figures == {path.name for path in (RESULTS / name).glob("*.svg")}


@pytest.mark.parametrize("name", PAGES)
def test_page_begins_with_claims_and_has_no_typed_tables(name):
    text = (RESULTS / f"{name}.md").read_text()
    first = next(outputs.HIDDEN.finditer(text))
    assert re.search(r"^\| claim \| (published|to reach) \| ", first["output"], re.M)
    assert "\n|" not in outputs.HIDDEN.sub("", text)


def test_blocks_are_run_again():
    """A block prints Markdown; what stood there is replaced, prose is not."""
    page = "A\n\n<!-- python\nx = 3\n-->\n\nB\n\n<!-- python\nprint(x)\n-->\n{}\nC\n"
    shown = "\n3\n\n<!-- end -->\n"
    for before in ("", "\n2\n\n<!-- end -->\n", shown):
        filled = outputs.filled(page.format(before), "page.md", None)
        assert filled == page.format(shown)


def test_tracebacks_name_the_line_of_the_page():
    with pytest.raises(ZeroDivisionError) as error:
        outputs.filled("A\n\n<!-- python\n1 / 0\n-->\n", "page.md", None)
    last = error.traceback[-1]
    assert (str(last.path).rsplit("/")[-1], last.lineno + 1) == ("page.md", 4)


@pytest.mark.parametrize(
    ("other", "alike"),
    [("8.8 ± 0.4 of 5", True), ("9.9 ± 0.7 of 5", False), ("8.6 ± 0.7 of 6", False)],
)
def test_numbers_are_close_and_errors_of_a_size(other, alike):
    assert outputs.alike("8.6 ± 0.7 of 5", other) == alike
