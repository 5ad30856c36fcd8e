"""Pins the public names, the direction of imports and what an import costs."""

import ast
import pathlib
import subprocess
import sys

import pytest

import keras_rbm

ROOT = pathlib.Path(keras_rbm.__file__).parent
#: From the ground up: a folder may import only from those before it.
FLOORS = """
    _checks _serializable random _replicas units inference rules
    optimizers regularizers models interop layers metrics _images _scoring _quality
    tables plots callbacks sklearn
""".split()
#: By module; "" is the package itself, and `sklearn` an extra, imported by users.
PUBLIC = {
    "": """
        CRBM DBM DBN InfiniteRBM RBM baseline_log_likelihood callbacks datasets
        inference interop layers metrics models
        optimizers plots quality_report random regularizers rules score_report tables
        units
    """,
    "metrics": "ExactMatch PixelError StateAccuracy errors",
    "optimizers": """
        FallingRate StochasticSpectralDescent falling_rate spectral_descent
    """,
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names(name):
    module = getattr(keras_rbm, name) if name else keras_rbm
    names = {name for name in vars(module) if not name.startswith("_")}
    assert names - {"sklearn"} == set(PUBLIC[name].split())


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "keras_rbm":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "keras_rbm":
                yield parts[1]


@pytest.mark.parametrize("floor", FLOORS)
def test_imports_point_down(floor):
    allowed = set(FLOORS[: FLOORS.index(floor) + 1]) | {"datasets"}
    if floor == "models":
        allowed.add("metrics")
    module = ROOT / f"{floor}.py"
    files = [module] if module.exists() else (ROOT / floor).rglob("*.py")
    for path in files:
        above = set(imports(path)) - allowed
        assert not above, f"{path.name} imports {above}"


def test_datasets_stand_alone():
    for path in (ROOT / "datasets").rglob("*.py"):
        above = set(imports(path)) - {"_checks", "_images", "datasets"}
        assert not above, path.name


def output_of(code):
    """Runs Python in a process of its own; returns what it prints, and its errors."""
    run = [sys.executable, "-c", code]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    return result.stdout.split(), result.stderr


@pytest.mark.slow
@pytest.mark.multiprocess
def test_import_is_light():
    """Keras itself imports scikit-learn and matplotlib where they are installed."""
    heavy = {"tensorflow_datasets", "tensorflow_probability", "sklearn", "requests"}
    code = (
        "import sys; sys.modules['matplotlib'] = None; import keras, tensorflow;"
        "before = set(sys.modules); import keras_rbm.datasets, keras_rbm.plots;"
        f"print(*({heavy} & (set(sys.modules) - before)), 'end')"
    )
    assert output_of(code)[0] == ["end"]


@pytest.mark.multiprocess
def test_another_backend_is_refused():
    code = (
        "import sys, types; keras = types.ModuleType('keras');"
        "keras.backend = types.SimpleNamespace(backend=lambda: 'jax');"
        "sys.modules['keras'] = keras; import keras_rbm"
    )
    assert "KERAS_BACKEND=tensorflow" in output_of(code)[1]


@pytest.mark.multiprocess
def test_without_tensorflow_probability():
    """It lags behind Python and TensorFlow: only some inference needs it."""
    code = """if True:
        import sys
        sys.modules["tensorflow_probability"] = sys.modules["tf_keras"] = None
        import numpy as np
        import keras_rbm as kr
        x = np.eye(6, dtype="float32")
        rbm, crbm = kr.RBM(3, seed=0), kr.CRBM(3, seed=0)
        rbm.compile()
        rbm.fit(x, verbose=0)
        methods = ["exact", "bidirectional"]
        kr.score_report(rbm, x, methods=methods, num_chains=10, steps=2)
        rbm.sample(3, steps=2)
        crbm.compile()
        crbm.fit(x, x, verbose=0)
        print(crbm.predict(x, verbose=0).shape)
    """
    printed, errors = output_of(code)
    assert printed == ["(6,", "6)"], errors
