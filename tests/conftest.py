"""Loads `environment.py`, and TensorFlow with it, where tests run.

The process that hands them to workers needs neither.
"""


def pytest_configure(config):
    if hasattr(config, "workerinput") or not config.option.numprocesses:
        config.pluginmanager.import_plugin("environment")
