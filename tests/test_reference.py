"""The API pages list what the guides use, and only names that exist and are public.

The pages are read as text: nothing is built.
"""

import ast
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
GUIDES = sorted((DOCS / "guides").glob("*.md"))
#: Of which all that is public is on a page; "" is the package itself.
MODULES = (
    *("", "callbacks", "datasets", "inference", "layers", "metrics", "optimizers"),
    *("plots", "regularizers", "rules", "units"),
)
#: What other rooms read of a model, and users do not.
INNER = {"form"}
MODELS = ("RBM", "CRBM", "InfiniteRBM", "DBN", "DBM")
_ENTRY = re.compile(r"^::: (\S+)\n((?: {4}.*\n|\n)*)", re.MULTILINE)
_MEMBERS = re.compile(r"^ +members: \[(.*?)\]", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


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


#: Classes of what public functions return are in private modules.
RESULTS = re.compile(r"keras_rbm\._(scoring|quality)\.")


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


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_what_a_guide_calls_is_on_a_page(guide):
    used = Used()
    for block in _BLOCK.findall(guide.read_text()):
        used.visit(ast.parse(block))
    for path in used.paths:
        assert id(resolved(path)) in listed(), f"{path} is on no page"
    for name, classes in used.members:
        pages = [listed()[id(cls)] for cls in classes]
        assert any(name in names for _, names in pages), (
            f"{name} of {[cls.__name__ for cls in classes]} is on no page"
        )


class Used(ast.NodeVisitor):
    """Collects what a guide's blocks use of the package.

    An object's class is known where it is assigned, `rbm = kr.RBM(...)`; elsewhere a
    method may be that of any listed class that has one of this name.

    Attributes:
        paths: set of dotted paths of functions and classes, `keras_rbm.RBM`.
        members: set of pairs of a method's name and the classes it may belong to.
    """

    def __init__(self):
        self.paths, self.members, self.variables = set(), set(), {}
        self.foreign = {"keras", "np", "tf", "plt", "self"}

    def visit_Import(self, node):
        self.foreign |= {alias.asname or alias.name for alias in node.names}

    def visit_Assign(self, node):
        self.generic_visit(node)
        if isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            self.variables[node.targets[0].id] = self.class_of(node.value)

    def visit_Attribute(self, node):
        path = path_of(node)
        if path is None:
            self.generic_visit(node)
            return
        owner = path.rpartition(".")[0]
        if inspect.isclass(resolved(owner)):
            self.paths.add(owner)
            self.members.add((node.attr, (resolved(owner),)))
        elif callable(resolved(path)):
            self.paths.add(path)

    def visit_Call(self, node):
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute) or path_of(node.func):
            return
        receiver, name = node.func.value, node.func.attr
        cls = self.class_of(receiver)
        things = [cls]
        if cls is None and getattr(receiver, "id", "self") not in self.foreign:
            things = [thing for thing, _ in listed().values()]
        classes = [thing for thing in things if is_ours(thing, name)]
        if classes:
            self.members.add((name, tuple(classes)))

    def class_of(self, node):
        """Returns the class of a variable or of what a call returns, if known."""
        if isinstance(node, ast.Name):
            return self.variables.get(node.id)
        path = path_of(node.func) if isinstance(node, ast.Call) else None
        made = resolved(path) if path else None
        made = made.__self__ if inspect.ismethod(made) else made  # from_rbm
        return made if inspect.isclass(made) else None


def path_of(node):
    """Returns the dotted path of an expression that names a part of the package."""
    root, _, rest = ast.unparse(node).partition(".")
    if root in ("kr", "keras_rbm") and re.fullmatch(r"[\w.]+", rest):
        return f"keras_rbm.{rest}"
    return None


def is_ours(thing, name):
    """Returns whether a class has a member that the package wrote."""
    bases = thing.__mro__ if inspect.isclass(thing) else ()
    homes = [base for base in bases if name in vars(base)]
    return bool(homes) and homes[0].__module__.startswith("keras_rbm")
