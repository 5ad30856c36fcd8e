"""Imports of packages that only some parts of the library need."""

import importlib


def import_optional(module, purpose, extra="examples"):
    """Returns an imported module, or raises an ImportError that says how to install it.

    Args:
        module: str, such as `"matplotlib.figure"`.
        purpose: str, what it does, such as `"draws the pictures"`.
        extra: str, the extra of this package that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Expected the package {module.partition('.')[0]!r}, which {purpose}. "
            f"Received: {error}. Install it with: pip install keras-rbm[{extra}]"
        ) from error
