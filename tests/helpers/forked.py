"""Processes of their own that start in a moment.

They are forked from a server that has imported the library and done nothing with it.
"""

import multiprocessing

_CONTEXT = multiprocessing.get_context("forkserver")


def start(function, *arguments):
    """Starts `function(pipe, *arguments)`; returns the process and its other end."""
    _CONTEXT.set_forkserver_preload(["keras_rbm"])
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=function, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    return process, ours
