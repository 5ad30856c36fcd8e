"""Any value for any argument: a result, or an error that says what was expected.

A call is one that works, with one or two arguments replaced. Counts between thousands
and 2**31 are left out: that many chains or epochs are what somebody may want.
"""

import warnings

import hypothesis
import numpy as np
import pytest
from fuzzed_calls import CALLS, MODELS, used
from hostile import VALUES
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from same import state

import keras_rbm as kr

pytestmark = pytest.mark.faults

#: Calls of some seconds, where the arguments are good.
SLOW = {"export", "temper", "pretrain", "quality_report", "score_report"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Has calls write their files in a folder of the test."""
    monkeypatch.chdir(tmp_path)


class Models:
    """Models to call; a new one after a call that may have changed it."""

    def __init__(self):
        self._made = {}

    def __getitem__(self, name):
        if name not in self._made:
            self._made[name] = MODELS[name]()
        return self._made[name]

    def forget(self, name):
        self._made.pop(name, None)


def everything(model):
    """Returns all that an error must leave as it was."""
    objects = [model.built]
    for part in getattr(model, "rbms", [model]):
        objects += [part.rule, part.optimizer, part.inference, part.fit_state]
    return objects, state(model)


def is_same(one, other):
    if one[0] != other[0] or len(one[1]) != len(other[1]):
        return False
    pairs = zip(one[1], other[1], strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


def outcome(models, name, spoilt):
    """Makes a call with some arguments replaced; returns what is wrong, or `None`."""
    owner, function, arguments = CALLS[name]
    arguments = {
        key: value() if callable(value) and key not in spoilt else value
        for key, value in (arguments | spoilt).items()
    }
    before = None
    if owner is not None:
        model = models[owner]
        before = everything(model)
        function = getattr(kr if owner == function else model, function)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            used(function(**arguments))
    except (ValueError, TypeError) as error:
        text = str(error).lower()
        if "expected" not in text or "received" not in text:
            return f"{type(error).__name__}: {error}"
        if before is not None and not is_same(before, everything(model)):
            models.forget(owner)
            return f"the model has changed, with {error}"
    except Exception as error:
        models.forget(owner)
        return f"{type(error).__name__}: {error}"
    else:
        models.forget(owner)
    return None


def is_own(argument, value):
    """Returns whether what a call raises is the value's own: a function that is run."""
    return argument.endswith("_initializer") and value in ("function", "class")


@st.composite
def calls(draw, names):
    """Draws the name of a call, and values for some of its arguments."""
    name = draw(st.sampled_from(names))
    arguments = sorted(CALLS[name][2])
    if not arguments:
        return name, {}
    chosen = draw(st.lists(st.sampled_from(arguments), min_size=1, max_size=2))
    return name, {argument: draw(values) for argument in chosen}


random_arrays = arrays.arrays(
    st.one_of(
        arrays.boolean_dtypes(), arrays.integer_dtypes(), arrays.floating_dtypes()
    ),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=12),
)
values = st.one_of(
    st.sampled_from(sorted(VALUES)).map(lambda name: Named(name)),
    random_arrays,
    st.integers(-5, 5),
    st.floats(),
)


class Named:
    """A value of `VALUES`, made when it is used, of a name that is shown."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"<{self.name}>"


def fuzzed(names, count):
    models = Models()

    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(calls(names))
    def run(call):
        name, spoilt = call
        made = {
            key: VALUES[value.name]() if isinstance(value, Named) else value
            for key, value in spoilt.items()
            if not is_own(key, getattr(value, "name", None))
        }
        wrong = outcome(models, name, made)
        assert wrong is None, f"{name}({spoilt}): {wrong}"

    run()


def test_some_calls():
    quick = [name for name in CALLS if not SLOW & set(name.split("."))]
    fuzzed(quick, 60)


@pytest.mark.slow
def test_calls():
    fuzzed(sorted(CALLS), 2000)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_good_arguments_are_good(name):
    owner, function, arguments = CALLS[name]
    made = {k: v() if callable(v) else v for k, v in arguments.items()}
    if owner is not None:
        function = getattr(kr if owner == function else Models()[owner], function)
    used(function(**made))
