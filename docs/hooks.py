"""Gets MathJax from its npm package when the site is built, and quietens TensorFlow.

The built site then needs no network, and the package is not in the repository.
"""

import os
import pathlib
import subprocess
import tarfile
import tempfile

_PACKAGE = "mathjax@3.2.2"
_SCRIPT = pathlib.Path(__file__).parent / "javascripts" / "tex-svg.js"


def on_config(config):
    """Puts the script where the pages look for it, once."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # of the tutorials
    if not _SCRIPT.exists():
        with tempfile.TemporaryDirectory() as folder:
            command = ["npm", "pack", "--silent", _PACKAGE]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            (archive,) = pathlib.Path(folder).glob("*.tgz")
            with tarfile.open(archive) as package:
                content = package.extractfile("package/es5/tex-svg.js").read()
        _SCRIPT.write_bytes(content)
    return config
