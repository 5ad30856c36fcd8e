"""The API pages list all that is public, and only names that exist and are public.

The pages are read as text: nothing is built.
"""

import functools
import importlib
import inspect
import pathlib
import re

import keras
import pytest

import keras_rbm

DOCS = pathlib.Path(__file__).parents[1] / "docs"
PAGES = sorted((DOCS / "reference").glob("*.md"))
#: Of which all that is public is on a page; "" is the package itself.
MODULES = (
    *("", "callbacks", "datasets", "inference", "interop", "layers", "metrics"),
    *("optimizers", "plots", "regularizers", "rules", "tables", "units"),
)
#: What other rooms read of a model, and users do not.
INNER = {"form"}
MODELS = ("RBM", "CRBM", "InfiniteRBM", "DBN", "DBM")
_ENTRY = re.compile(r"^::: (\S+)\n((?: {4}.*\n|\n)*)", re.MULTILINE)
_MEMBERS = re.compile(r"^ +members: \[(.*?)\]", re.MULTILINE | re.DOTALL)


def resolved(path):
    """Returns the object of a dotted path, of which modules are imported."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        return functools.reduce(getattr, parts[cut:], found)
    raise ImportError(path)


def entries(page):
    """Returns the pairs of a dotted path and the names of its members on a page."""
    pairs = []
    for path, options in _ENTRY.findall(page.read_text() + "\n"):
        listed = _MEMBERS.search(options)
        names = listed[1].replace(",", " ").split() if listed else []
        pairs.append((path, names))
    return pairs


@functools.cache
def listed():
    """Returns the objects on all pages, by identity, with the names of members."""
    found = {}
    for page in PAGES:
        for path, names in entries(page):
            thing = resolved(path)
            found[id(thing)] = (thing, names)
    return found


def is_public(name):
    return not name.startswith("_") or name == "__call__"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_on_a_page_exist_and_are_public(page):
    for path, names in entries(page):
        thing = resolved(path)
        # The module of what a function returns may be private.
        assert is_public(path.rpartition(".")[2]), path
        assert thing.__doc__, f"{path} has no docstring"
        assert len(names) == len(set(names)), path
        for name in names:
            assert is_public(name), f"{path}.{name}"
            member = inspect.getattr_static(thing, name, None)
            assert member is not None, f"{path} has no {name}"
            # Without a docstring the page leaves it out.
            assert inspect.getdoc(member), f"{path}.{name} has no docstring"


def test_a_name_is_on_one_page():
    paths = [id(resolved(path)) for page in PAGES for path, _ in entries(page)]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("name", MODULES)
def test_public_objects_are_on_a_page(name):
    module = importlib.import_module(f"keras_rbm.{name}".rstrip("."))
    for name in dir(module):
        if not name.startswith("_") and callable(thing := getattr(module, name)):
            assert id(thing) in listed(), f"{module.__name__}.{name} is on no page"


@pytest.mark.parametrize("name", MODELS)
def test_own_names_of_a_model_are_on_its_page(name):
    """Methods and properties that no Keras model has."""
    cls = getattr(keras_rbm, name)
    _, names = listed()[id(cls)]
    for own in set(dir(cls)) - set(dir(keras.Model)) - INNER:
        member = getattr(cls, own)
        if is_public(own) and (callable(member) or isinstance(member, property)):
            assert own in names, f"{name}.{own} is on no page"


@pytest.mark.parametrize(
    ("module", "page"),
    [
        ("rules", "reference/rules.md"),
        ("units", "guides/which-unit-for-which-data.md"),
        ("inference.messages.approximate_inference", None),
    ],
)
def test_lists_of_names_are_complete(module, page):
    """What `get` takes, in its docstring and on the page that tells them apart."""
    module = importlib.import_module(f"keras_rbm.{module}")
    texts = [module.get.__doc__] + ([(DOCS / page).read_text()] if page else [])
    for text in texts:
        missing = {name for name in module._BY_NAME if f'"{name}"' not in text}
        assert not missing
