"""The API pages list what the guides use, and only names that exist and are public.

The pages are read as text: nothing is built.
"""

import ast
import functools
import importlib
import inspect
import pathlib
import re

import formulas
import keras
import pytest

import keras_rbm

DOCS = pathlib.Path(__file__).parents[1] / "docs"
PAGES = sorted((DOCS / "reference").glob("*.md"))
GUIDES = sorted((DOCS / "guides").glob("*.md"))
OURS = ("kr", "keras_rbm")
#: Of which all that is public is on a page; "" is the package itself.
MODULES = (
    *("", "callbacks", "datasets", "inference", "layers", "metrics", "optimizers"),
    *("plots", "regularizers", "rules", "units"),
)
MODELS = ("RBM", "CRBM", "InfiniteRBM", "DBN", "DBM")
_ENTRY = re.compile(r"^::: (\S+)\n((?: {4}.*\n|\n)*)", re.MULTILINE)
_MEMBERS = re.compile(r"^ +members: \[(.*?)\]", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("code", "tex"),
    [
        ("log p(v) = -F(v) - log Z", r"\log  p(v) = -F(v) - \log  Z"),
        ("c' h + sum_i A_i(eta)", r"c^\top  h + \sum _{i} A_{i}(\eta )"),
        ("G_b = <v>+ - mu^2", r"G_{b} = \langle v\rangle _+ - \mu ^{2}"),
        ("w = p*_{beta_(k-1)}(v)", r"w = p^*_{\beta _{k-1}}(v)"),
        ("E[h | v_known]", r"E[h \mid v_{\text{known}}]"),
        ("seed + 1", None),
        ('method="tempering"', None),
        ("rate * (1 - epoch / epochs)", None),
        ("keras_rbm.inference.sum_product", None),
    ],
)
def test_formulas_are_typeset_and_code_is_not(code, tex):
    want = f"as `{code}`" if tex is None else f"as ${tex}$"
    assert formulas.typeset(f"as `{code}`") == want


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
        assert all(map(is_public, path.split("."))), path
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
    for own in set(dir(cls)) - set(dir(keras.Model)):
        member = getattr(cls, own)
        if is_public(own) and (callable(member) or isinstance(member, property)):
            assert own in names, f"{name}.{own} is on no page"


def test_all_pages_are_in_the_navigation():
    navigation = (DOCS.parent / "mkdocs.yml").read_text()
    for page in PAGES:
        assert f" reference/{page.name}\n" in navigation


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
        self.foreign -= set(OURS)

    def visit_Assign(self, node):
        self.generic_visit(node)
        if isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            path = self.path_of(node.value.func)
            made = resolved(path) if path else None
            if inspect.ismethod(made) and inspect.isclass(made.__self__):
                made = made.__self__  # from_rbm
            self.variables[node.targets[0].id] = made if inspect.isclass(made) else None

    def path_of(self, node):
        """Returns the dotted path of an expression that names a part of the package."""
        text = ast.unparse(node)
        root, _, rest = text.partition(".")
        if root in OURS and re.fullmatch(r"[\w.]+", rest):
            return f"keras_rbm.{rest}"
        return None

    def visit_Attribute(self, node):
        path = self.path_of(node)
        if path is None:
            self.generic_visit(node)
            return
        thing = resolved(path)
        owner = resolved(path.rpartition(".")[0])
        if inspect.isclass(owner):
            self.paths.add(path.rpartition(".")[0])
            self.members.add((node.attr, (owner,)))
        elif callable(thing):
            self.paths.add(path)

    def visit_Call(self, node):
        self.generic_visit(node)
        method = node.func
        if not isinstance(method, ast.Attribute) or self.path_of(method):
            return
        receiver = method.value
        if isinstance(receiver, ast.Call) and (path := self.path_of(receiver.func)):
            cls = resolved(path)
        elif isinstance(receiver, ast.Name) and receiver.id not in self.foreign:
            cls = self.variables.get(receiver.id)
        else:
            return
        if inspect.isclass(cls):
            classes = (cls,)
        else:
            things = [thing for thing, _ in listed().values() if inspect.isclass(thing)]
            classes = tuple(cls for cls in things if is_ours(cls, method.attr))
        if classes and is_ours(classes[0], method.attr):
            self.members.add((method.attr, classes))


def is_ours(cls, name):
    """Returns whether a class has a member that the package wrote."""
    homes = [base for base in cls.__mro__ if name in vars(base)]
    return bool(homes) and homes[0].__module__.startswith(keras_rbm.__name__)
