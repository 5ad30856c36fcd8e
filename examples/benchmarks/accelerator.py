"""Times the library's compiled programs on an accelerator, which needs no TensorFlow.

XLA's programs of training steps, annealing and belief propagation do not depend on the
device. `save` writes them, with recipes of their inputs and what the processor here
gives. `run` needs only NumPy and JAX: it compiles each program for JAX's first device,
compares the results and times it, its state fed back from call to call. Beside each
time stand two bounds: the time of the matrix products alone, on the same device with
the same precision, and that of the bytes that have to be moved.

Run, where keras_rbm is installed: python examples/benchmarks/accelerator.py save FOLDER
Run, where JAX is installed: python examples/benchmarks/accelerator.py run FOLDER
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import statistics
import time

import numpy as np

BATCH = 100
SIZES = [(784, 500), (10_000, 2_000)]
#: Beyond so many operations the processor's result is not computed.
LARGEST_REFERENCE = 2e12
#: XLA counts the numbers of an array with 32 bits.
MOST_NOISE = 2**31
#: An argument without a recipe; a constant would be folded, and the noise with it.
SEED = (np.array([1, 2], "int32"), None)
#: Entries of a result that are compared.
SAMPLE = 4096

ROUNDED = "precision = [DEFAULT, DEFAULT]"
BFLOAT16 = (
    "algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, "
    "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
    "num_primitive_operations = 1, allow_imprecise_accumulation = false>"
)
PRECISIONS = {
    "float32": "precision = [HIGHEST, HIGHEST]",
    "TF32": ROUNDED,
    "bfloat16": f"{ROUNDED}, {BFLOAT16}",
}


def recipe(kind, shape, seed, scale):
    """Returns an array and what `cooked` needs to make it again."""
    how = {"kind": kind, "shape": list(shape), "seed": seed, "scale": scale}
    return cooked(how), how


def cooked(how):
    """Returns the array of a recipe: bits of a mean, or normal of a deviation."""
    rng = np.random.default_rng(how["seed"])
    if how["kind"] == "bits":
        return (rng.random(how["shape"], "float32") < how["scale"]).astype("float32")
    return how["scale"] * rng.standard_normal(how["shape"], "float32")


def cases():
    """Yields a dict of each program: what `save` needs."""
    for num_visible, num_hidden in SIZES:
        for chains in (100, 2_000, 20_000):
            for k in (1, 100):
                numbers = k * chains * (num_visible + num_hidden)
                if numbers >= MOST_NOISE:
                    continue
                counts = [1, 20] if (num_visible, chains) <= (784, 2_000) else [1]
                for count in counts:
                    yield training(num_visible, num_hidden, chains, k, count)
    yield sweep(784, 500, 2_000)
    yield annealing(784, 500, 100, 1_000)
    for rows in (40, 1_000):
        yield sum_product(784, 256, rows, 10)


def training(num_visible, num_hidden, chains, k, count):
    """Steps of PCD-k on batches of 100, one or many in a program."""
    import keras
    import tensorflow as tf

    import keras_rbm as kr

    rbm = kr.RBM(num_hidden, seed=0, num_visible=num_visible)
    rule = kr.rules.PersistentContrastiveDivergence(k, chains)
    rbm.compile(keras.optimizers.SGD(0.01), rule=rule)
    x, how = recipe("bits", (count, BATCH, num_visible), 0, 0.2)
    rbm.fit(x[0], batch_size=BATCH, epochs=1, verbose=0)
    kernel = recipe("normal", rbm.kernel.shape, 1, 0.02)
    states = recipe("bits", rule.chains.shape, 2, 0.5)
    rbm.kernel.assign(kernel[0])
    rule.chains.assign(states[0])
    recipes = {id(rbm.kernel.value.handle): kernel[1]}
    recipes[id(rule.chains.value.handle)] = states[1]

    def body(index, stack):
        rbm.train_step((stack[index],))
        return index + 1, stack

    def steps(stack):
        if count == 1:
            return rbm.train_step((stack[0],))
        loop = tf.while_loop(lambda index, _: index < count, body, (0, stack))
        with tf.control_dependencies([loop[0]]):
            return tf.reduce_mean(tf.square(rbm.kernel))

    units = num_visible + num_hidden
    return {
        "name": f"PCD-{k}, {num_visible}×{num_hidden}, {chains:,} chains"
        + (f", {count} steps" if count > 1 else ""),
        "function": steps,
        "arguments": [(x, how)],
        "variables": recipes,
        "work": count * k * chains * units,
        "unit": "flips",
        "calls": count,
        "products": [
            [count * (2 * k + 1), chains, num_visible, num_hidden],
            [count * 3, BATCH, num_visible, num_hidden],
        ],
        # Kernel and its gradient; states and noise once each, written and read.
        "bytes": 4.0 * count * (4 * num_visible * num_hidden + 4 * k * chains * units),
    }


def potentials_of(kernel):
    from keras_rbm import inference

    zeros = [np.zeros(size, "float32") for size in kernel.shape]
    return inference.Potentials(kernel, *zeros)


def sweep(num_visible, num_hidden, chains):
    """A Gibbs sweep, of chains given and returned."""
    from keras_rbm import inference

    units = num_visible + num_hidden
    return {
        "name": f"Gibbs sweep, {num_visible}×{num_hidden}, {chains:,} chains",
        "function": lambda kernel, visible, seed: inference.gibbs_sweep(
            potentials_of(kernel), visible, seed
        ),
        "arguments": [
            recipe("normal", (num_visible, num_hidden), 1, 0.02),
            recipe("bits", (chains, num_visible), 2, 0.5),
            SEED,
        ],
        "work": chains * units,
        "unit": "flips",
        "products": [[2, chains, num_visible, num_hidden]],
        "bytes": 4.0 * (num_visible * num_hidden + 4 * chains * units),
    }


def annealing(num_visible, num_hidden, chains, count):
    """Annealed importance sampling, whole."""
    from keras_rbm.inference.annealing.chains import anneal_forward
    from keras_rbm.inference.annealing.path import temperatures

    units = num_visible + num_hidden
    return {
        "name": f"annealing, {num_visible}×{num_hidden}, {chains} chains, "
        f"{count:,} temperatures",
        "function": lambda kernel, seed: (
            anneal_forward(
                potentials_of(kernel), None, temperatures(count), chains, seed
            ).log_weights
        ),
        "arguments": [recipe("normal", (num_visible, num_hidden), 1, 0.05), SEED],
        "work": count,
        "unit": "temperatures",
        "products": [[2 * count, chains, num_visible, num_hidden]],
        "bytes": 4.0 * count * (num_visible * num_hidden + 4 * chains * units),
    }


def sum_product(num_visible, num_hidden, rows, count):
    """Sweeps of sum-product belief propagation on many models, all at once."""
    import tensorflow as tf

    from keras_rbm.inference.messages import belief_propagation, ratio_messages

    messages = ratio_messages.RatioMessages(sums=True, damping=0.0, block=8)
    options = {"messages": messages, "pairwise": "mean"}

    def beliefs(odds, visible, hidden):
        weights, sweeps = tf.fill((rows,), 1.0 / rows), tf.constant(count)
        arguments = (odds, visible, hidden), weights, sweeps, 0.0
        beliefs, pairs = belief_propagation._chunk(*arguments, **options)
        return *beliefs[:3], *pairs

    kernel, how = recipe("normal", (num_visible, num_hidden), 1, 0.05)
    edges = num_visible * num_hidden
    return {
        "name": f"sum-product, {num_visible}×{num_hidden}, {rows:,} models, "
        f"{count} sweeps",
        "function": lambda kernel, *biases: beliefs(tf.exp(kernel), *biases),
        "arguments": [
            (kernel, how),
            recipe("normal", (rows, num_visible), 2, 1.0),
            recipe("normal", (rows, num_hidden), 3, 1.0),
        ],
        "work": 2 * count * rows * edges,
        "unit": "messages",
        "products": [],
        # Each sweep reads and writes one number of each edge.
        "bytes": 8.0 * count * rows * edges,
    }


def save(folder):
    """Writes programs, inputs and results into a folder."""
    import tensorflow as tf

    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for number, case in enumerate(cases()):
        compiled = tf.function(case["function"], jit_compile=True, autograph=False)
        arguments = [tf.constant(array) for array, _ in case["arguments"]]
        concrete = compiled.get_concrete_function(*arguments)
        program = compiled.experimental_get_compiler_ir(*arguments)
        (folder / f"{number}.hlo").write_bytes(program(stage="hlo_serialized"))
        header = program(stage="hlo").split("\n", 1)[0]
        alias = re.findall(r"\{(\d+)\}: \((\d+), \{\}, \w+-alias\)", header)
        # Variables come after the arguments; outputs that alias them are their values.
        values = {id(variable.handle): variable for variable in concrete.variables}
        inputs = [array if how is None else how for array, how in case["arguments"]]
        for tensor in concrete.captured_inputs:
            known = case.get("variables", {}).get(id(tensor))
            inputs.append(known or values.get(id(tensor), tensor).numpy())
        stored = {
            f"in{i}": value
            for i, value in enumerate(inputs)
            if not isinstance(value, dict)
        }
        operations = sum(2.0 * np.prod(product) for product in case["products"])
        if operations < LARGEST_REFERENCE:
            results = tf.nest.flatten(compiled(*arguments))
            stored |= {f"out{i}": sample(value) for i, value in enumerate(results)}
        np.savez_compressed(folder / f"{number}.npz", **stored)
        kept = ("name", "work", "unit", "products", "bytes")
        listed.append(
            {key: case[key] for key in kept}
            | {
                "calls": case.get("calls", 1),
                "alias": [[*map(int, pair)] for pair in alias],
            }
            | {"inputs": [how if isinstance(how, dict) else None for how in inputs]}
        )
        print(case["name"], flush=True)
    (folder / "programs.json").write_text(json.dumps(listed, indent=1))


def sample(array):
    """Returns some entries of an array, evenly spaced."""
    flat = np.asarray(array).astype("float64").ravel()
    return flat[:: max(1, flat.size // SAMPLE)]


class Bounds:
    """What a device needs for matrix products alone, and for moving bytes."""

    def __init__(self):
        import jax

        self.jax = jax
        self._products = {}
        size = 2**28
        self.bandwidth = (
            8.0
            * size
            / self._seconds(lambda array: array + 1.0, np.zeros(size, "float32"))
        )

    def _seconds(self, function, *arrays):
        jax = self.jax
        compiled = jax.jit(function)
        arrays = [jax.device_put(array) for array in arrays]
        compiled(*arrays).block_until_ready()
        times = []
        for _ in range(5):
            start = time.perf_counter()
            compiled(*arrays).block_until_ready()
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    def product(self, rows, num_visible, num_hidden, precision):
        """Returns the seconds of a product, one of many in a loop."""
        key = rows, num_visible, num_hidden, precision
        if key in self._products:
            return self._products[key]
        jax, jnp = self.jax, self.jax.numpy
        pairs = max(1, min(200, int(2e12 / (4.0 * rows * num_visible * num_hidden))))
        how = jax.lax.Precision.DEFAULT
        if precision == "float32":
            how = jax.lax.Precision.HIGHEST
        kind = jnp.bfloat16 if precision == "bfloat16" else jnp.float32

        def loop(visible, kernel):
            kernel = kernel.astype(kind)

            def body(_, visible):
                hidden = jnp.dot(visible, kernel, precision=how)
                return jnp.dot(hidden, kernel.T, precision=how)

            return jax.lax.fori_loop(0, pairs, body, visible.astype(kind))

        rng = np.random.default_rng(0)
        kernel = rng.standard_normal((num_visible, num_hidden), "float32")
        kernel /= num_visible**0.5 + num_hidden**0.5
        visible = rng.standard_normal((rows, num_visible), "float32")
        seconds = self._seconds(loop, visible, kernel) / (2 * pairs)
        return self._products.setdefault(key, seconds)


def run(folder, precisions, seconds, only):
    """Compiles, compares and times programs; prints a table."""
    import jax

    jax.config.update("jax_enable_x64", True)
    device = jax.devices()[0]
    print(f"{device.device_kind}, JAX {jax.__version__}")
    bounds = Bounds()
    print(f"bytes read and written: {bounds.bandwidth / 1e12:.2f} TB/s\n")
    listed = json.loads((folder / "programs.json").read_text())
    chosen = [
        (number, case, precision)
        for number, case in enumerate(listed)
        for precision in precisions
        if re.search(only, case["name"])
        and (case["products"] or precision == "float32")
    ]
    print(
        "| program | products | compiled, s | ms (least) | work a ns "
        "| products alone, ms | bytes alone, ms | working memory, GB "
        "| results differ by |"
    )
    print("| --- " * 9 + "|", flush=True)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        futures = [
            pool.submit(compile_program, folder / f"{number}.hlo", precision, device)
            for number, _, precision in chosen
        ]
        concurrent.futures.wait(futures)
    for (number, case, precision), future in zip(chosen, futures, strict=True):
        try:
            executable, compiling = future.result()
            stored = np.load(folder / f"{number}.npz")
            times, differ = timed(executable, case, stored, device, seconds)
        except Exception as error:  # the others are still worth their time
            print(
                f"| {case['name']} | {precision} | {str(error)[:200]!r} |", flush=True
            )
            continue
        alone = sum(
            count * bounds.product(*shape, precision)
            for count, *shape in case["products"]
        )
        memory = executable.get_compiled_memory_stats().temp_size_in_bytes
        cells = [
            case["name"],
            precision,
            f"{compiling:.1f}",
            f"{1e3 * statistics.median(times):.3f} ({1e3 * min(times):.3f})",
            f"{case['work'] / statistics.median(times) / 1e9:.3g} {case['unit']}",
            f"{1e3 * alone:.3f}",
            f"{1e3 * case['bytes'] / bounds.bandwidth:.3f}",
            f"{memory / 1e9:.2f}",
            differ,
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def compile_program(path, precision, device):
    """Returns an executable, and the seconds that its compilation took."""
    from jax._src.interpreters import mlir as jax_mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    program = xla_client.XlaComputation(path.read_bytes())
    text = xla_client._xla.mlir.xla_computation_to_mlir_module(program)
    text = text if isinstance(text, str) else text.decode()
    matrices = r"stablehlo\.dot (%\S+, %\S+), "
    text = re.sub(
        matrices, r"stablehlo.dot_general \1, contracting_dims = [1] x [0], ", text
    )
    text = re.sub(
        r"mhlo\.copy (%\S+) : (\S+)", r"stablehlo.reshape \1 : (\2) -> \2", text
    )
    text = text.replace(ROUNDED, PRECISIONS[precision])
    start = time.perf_counter()
    with jax_mlir.make_ir_context():
        executable = device.client.compile_and_load(
            ir.Module.parse(text),
            xla_client.DeviceList((device,)),
            xla_client.CompileOptions(),
        )
    return executable, time.perf_counter() - start


def timed(executable, case, stored, device, seconds):
    """Returns the seconds of calls, and how far the first one's results are off."""
    import jax

    arrays = [
        stored[f"in{i}"] if how is None else cooked(how)
        for i, how in enumerate(case["inputs"])
    ]
    inputs = [jax.device_put(array, device) for array in arrays]

    def call(inputs):
        outputs = executable.execute_sharded(
            inputs
        ).disassemble_into_single_device_arrays()
        outputs, inputs = [output[0] for output in outputs], list(inputs)
        for output, given in case["alias"]:
            inputs[given] = outputs[output]
        return outputs, inputs

    def several(count, inputs):
        start = time.perf_counter()
        for _ in range(count):
            outputs, inputs = call(inputs)
        jax.block_until_ready(outputs)
        return time.perf_counter() - start, inputs

    outputs, inputs = call(inputs)
    expected = [stored[name] for name in stored.files if name.startswith("out")]
    pairs = zip(outputs, expected, strict=False)  # then come the variables
    worst = [np.max(np.abs(sample(a) - b)) / np.max(np.abs(b)) for a, b in pairs]
    once, inputs = several(1, inputs)
    once, inputs = several(1, inputs)
    count = max(1, min(500, int(seconds / 5 / once)))
    times = []
    for _ in range(5):
        total, inputs = several(count, inputs)
        times.append(total / count)
    return times, ", ".join(f"{value:.1e}" for value in worst) or "not compared"


def main():
    """Saves programs, or runs them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["save", "run"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument(
        "--precisions", nargs="+", choices=PRECISIONS, default=[*PRECISIONS]
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="for each program")
    parser.add_argument("--only", default="", help="expression that names must contain")
    arguments = parser.parse_args()
    if arguments.action == "save":
        save(arguments.folder)
    else:
        settings = arguments.precisions, arguments.seconds, arguments.only
        run(arguments.folder, *settings)


if __name__ == "__main__":
    main()
