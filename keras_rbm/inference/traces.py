"""How functions of a model run: traced for each size, compiled, at full precision."""

import contextlib
import functools
import threading

import tensorflow as tf

#: Whether XLA compiles what it makes faster. Tests of small models switch it off: they
#: take less time than their compilation.
compiles = True


def compiled(function):
    """Makes a function that XLA compiles, for tensors of known shapes."""
    fast = tf.function(function, autograph=False, jit_compile=True)
    return _if_compiling(fast, function)


def traced(function):
    """Makes a `tf.function`, such as of a function that calls compiled ones."""
    return _if_compiling(tf.function(function, autograph=False), function)


def _if_compiling(fast, function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return (fast if compiles else function)(*args, **kwargs)

    return call


def traced_by_size(function):
    """Makes a `tf.function` of a function of `Potentials` and other tensors.

    There is one for each size and type of the arguments. A single one would warn of
    retracing in a script that scores models of several sizes, and would confuse
    parameter classes of the same name.
    """

    @functools.cache
    def of_kind(*kind):
        # A partial is counted by itself, and not with others of the same code.
        return tf.function(functools.partial(function), autograph=False)

    @functools.wraps(function)
    def call(*args):
        return of_kind(*map(_kind, args))(*args)

    return call


def loop_by_size(function):
    """Makes what `traced_by_size` does, of a function whose loop is short in tests."""
    return _if_compiling(traced_by_size(function), function)


def kind_of_models(potentials):
    """Returns what models have in common that may share a trace: all but rows and H.

    Functions need to know all other shapes, which a shared trace would leave open.
    """
    visible, hidden = potentials.visible, potentials.hidden
    shapes = [(leaf.shape.rank, leaf.shape[-1:]) for leaf in tf.nest.flatten(visible)]
    parts = [part for name, part in hidden._asdict().items() if name != "bias"]
    rest = [leaf.shape for leaf in tf.nest.flatten(parts)]
    if "bias" in hidden._fields and not hidden.finite:  # a number for each unit
        rest = [shape.rank for shape in rest]
    return type(visible), type(hidden), hidden.bias.shape.rank, str((shapes, rest))


def _kind(value):
    """Returns types and shapes of a tree of tensors; the value of anything else."""
    if isinstance(value, (tuple, list)):
        return type(value), *map(_kind, value)
    return str(value.shape) if hasattr(value, "shape") else value


_lock = threading.Lock()
_inside, _was = 0, True


@contextlib.contextmanager
def full_precision():
    """Switches TensorFloat-32 off while it lasts; also a decorator.

    GPUs round the factors of float32 products to 10 bits by default. Chains hardly
    differ, but a score of a rounded kernel is that of another model. The switch is of
    the process: training in another thread is not rounded either while it lasts. It is
    read when a product is computed, so it has no effect on a graph that runs later.
    """
    global _inside, _was
    config = tf.config.experimental
    with _lock:
        if not _inside:
            _was = config.tensor_float_32_execution_enabled()
            config.enable_tensor_float_32_execution(False)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                config.enable_tensor_float_32_execution(_was)
