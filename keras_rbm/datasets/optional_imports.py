"""Imports of packages that only some data sets need."""

import importlib


def import_optional(module, *, purpose):
    """Imports `module`, or raises an ImportError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Expected the module {module!r}, needed to read {purpose}. "
            f"Received: {error}. Run `pip install keras-rbm[examples]`."
        ) from error
