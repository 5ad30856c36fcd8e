"""Times belief propagation against its published matrix form, and at large sizes.

The published form (Ping & Ihler 2017, Algorithm 1) is written out literally as a
`tf.function`: probabilities as messages, exponentials and logarithms on every edge.
Whatever is compared is timed in turns in one process; tables have medians and, in
brackets, the least. PGMax is compared where it is installed
(`pip install pgmax jax==0.4.38 jaxlib==0.4.38`).

Run: python examples/benchmarks/belief_propagation.py
"""

import argparse
import resource
import statistics
import time

import numpy as np
import tensorflow as tf

from keras_rbm import inference


def model(num_visible, num_hidden, batch_size, deviation):
    """Returns potentials with normal random parameters."""
    rng = np.random.default_rng(0)

    def normal(*shape, scale=1.0):
        return tf.constant(scale * rng.standard_normal(shape, "float32"))

    return inference.Potentials(
        normal(num_visible, num_hidden, scale=deviation),
        normal(batch_size, num_visible),
        normal(batch_size, num_hidden),
    )


@tf.function
def published(potentials, sweeps):
    """Returns visible beliefs by Algorithm 1 as published, for a batch."""
    b, c = potentials.visible_bias, potentials.hidden_bias
    odds = tf.exp(potentials.kernel)
    shape = (tf.shape(b)[0], *potentials.kernel.shape)
    to_visible, to_hidden = tf.fill(shape, 0.5), tf.fill(shape, 0.5)
    visible, hidden = tf.sigmoid(b), tf.sigmoid(c)

    def messages(incoming, belief):
        ones = (1.0 - incoming) * belief
        zeros = incoming * (1.0 - belief)
        return tf.sigmoid(tf.math.log((odds * ones + zeros) / (ones + zeros)))

    def log_odds(message, axis):
        return tf.reduce_sum(tf.math.log(message / (1.0 - message)), axis)

    for _ in tf.range(sweeps):
        to_visible = messages(to_hidden, hidden[:, tf.newaxis, :])
        visible = tf.sigmoid(b + log_odds(to_visible, 2))
        to_hidden = messages(to_visible, visible[:, :, tf.newaxis])
        hidden = tf.sigmoid(c + log_odds(to_hidden, 1))
    return visible


def seconds(function, calls=1):
    """Returns the seconds that a call takes, after which its result is there."""
    start = time.perf_counter()
    for _ in range(calls):
        np.asarray(function())
    return (time.perf_counter() - start) / calls


def in_turns(first, second, repeats, calls=1):
    """Returns lists of seconds of two functions, in turns after warm-up.

    A turn of the first is the mean of several calls.
    """
    first(), second()
    pairs = [(seconds(first, calls), seconds(second)) for _ in range(repeats)]
    return [list(times) for times in zip(*pairs, strict=True)]


def cell(values, scale=1.0):
    return f"{scale * statistics.median(values):.2f} ({scale * min(values):.2f})"


def against_published(arguments):
    potentials = model(arguments.visible, arguments.hidden, arguments.batch_size, 0.05)
    sweeps = tf.constant(arguments.sweeps)

    def ours():
        return inference.sum_product(
            potentials, max_iterations=sweeps, tolerance=0.0
        ).visible

    difference = np.abs(ours() - published(potentials, sweeps)).max()
    mine, theirs = in_turns(
        ours, lambda: published(potentials, sweeps), arguments.repeats
    )
    size = tf.size(potentials.kernel).numpy() * arguments.batch_size
    updates = 2 * arguments.sweeps * size
    ratios = [b / a for a, b in zip(mine, theirs, strict=True)]
    print(
        "| V×H, batch, sweeps | ours, ms | published form, ms | faster by | ours, ns |"
    )
    print("| --- | --- | --- | --- | --- |")
    print(
        f"| {arguments.visible}×{arguments.hidden}, {arguments.batch_size}, "
        f"{arguments.sweeps} | {cell(mine, 1e3)} | {cell(theirs, 1e3)} | "
        f"{cell(ratios)} | {1e9 * statistics.median(mine) / updates:.3f} |"
    )
    print(f"\nns: for each edge and direction. Beliefs differ by {difference:.1e}.")


def against_pgmax(sweeps):
    try:
        from pgmax import fgraph, fgroup, infer, vgroup
    except ImportError:
        print("\nPGMax is not installed: no comparison.")
        return
    potentials = model(1000, 500, 1, 0.05)
    kernel, (b,), (c,) = (np.asarray(part) for part in (
        potentials.kernel, potentials.visible_bias, potentials.hidden_bias
    ))  # fmt: skip
    visible = vgroup.NDVarArray(num_states=2, shape=b.shape)
    hidden = vgroup.NDVarArray(num_states=2, shape=c.shape)
    graph = fgraph.FactorGraph(variable_groups=[visible, hidden])
    log_potentials = np.zeros((kernel.size, 2, 2))
    log_potentials[:, 1, 1] = kernel.ravel()
    graph.add_factors(
        fgroup.PairwiseFactorGroup(
            variables_for_factors=[
                [visible[i], hidden[j]] for i in range(b.size) for j in range(c.size)
            ],
            log_potential_matrix=log_potentials,
        )
    )
    bp = infer.build_inferer(graph.bp_state, backend="bp")
    evidence = {
        units: np.stack([np.zeros_like(bias), bias], 1)
        for units, bias in ((visible, b), (hidden, c))
    }
    arrays = bp.init(evidence_updates=evidence)

    def theirs():
        result = bp.run(arrays, num_iters=sweeps, damping=0.0, temperature=1.0)
        marginals = infer.get_marginals(bp.get_beliefs(result))
        return marginals[visible][:, 1]

    def ours():
        return inference.sum_product(
            potentials, max_iterations=sweeps, tolerance=0.0
        ).visible[0]

    difference = np.abs(np.asarray(theirs()) - np.asarray(ours())).max()
    # Milliseconds against seconds: twenty of ours, the first with cold caches.
    mine, other = in_turns(ours, theirs, 3, calls=20)
    ratios = [b / a for a, b in zip(mine, other, strict=True)]
    print("\n| V×H, sweeps | ours, ms | PGMax, ms | faster by |")
    print("| --- | --- | --- | --- |")
    print(
        f"| 1000×500, {sweeps} | {cell(mine, 1e3)} | {cell(other, 1e3)} | "
        f"{cell(ratios)} |"
    )
    print(f"\nBeliefs differ by {difference:.1e} (PGMax sweeps both ways at once).")


def peak_gigabytes():
    """Returns the most memory that the process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def large(repeats):
    print("\n| V×H, batch | to 1e-3, ms | sweeps | peak of the process, GB |")
    print("| --- | --- | --- | --- |")
    for sizes in ((784, 256, 40), (784, 256, 1000), (10_000, 2_000, 1)):
        potentials = model(*sizes, 0.02)
        beliefs = inference.sum_product(potentials, tolerance=1e-3)
        assert np.all(beliefs.converged)
        times = [
            seconds(lambda p=potentials: inference.sum_product(p, tolerance=1e-3)[0])
            for _ in range(repeats)
        ]
        print(
            f"| {sizes[0]}×{sizes[1]}, {sizes[2]} | {cell(times, 1e3)} | "
            f"{np.max(beliefs.num_iterations)} | {peak_gigabytes():.2f} |"
        )


def gradients(visible, hidden, batch_size, repeats):
    print(
        "\n| V×H, batch, sweeps | beliefs, ms | with their gradient, ms | times |",
        end="",
    )
    print(" peak of the process, GB |\n| --- | --- | --- | --- | --- |")
    parts = tf.nest.flatten(model(visible, hidden, batch_size, 0.05))
    for count in (10, 50):
        sweeps = tf.constant(count)

        def beliefs(sweeps=sweeps):
            return inference.sum_product(
                inference.Potentials(*parts),
                max_iterations=sweeps,
                tolerance=0.0,
                pairwise=None,
            ).visible

        def gradient(beliefs=beliefs):
            with tf.GradientTape() as tape:
                tape.watch(parts)
                total = tf.reduce_sum(beliefs() ** 2)
            return tape.gradient(total, parts)[0]

        forward, both = in_turns(beliefs, gradient, repeats)
        ratios = [b / a for a, b in zip(forward, both, strict=True)]
        print(
            f"| {visible}×{hidden}, {batch_size}, {count} | {cell(forward, 1e3)} | "
            f"{cell(both, 1e3)} | {cell(ratios)} | {peak_gigabytes():.2f} |"
        )
    print()


def main():
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visible", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=40)
    parser.add_argument("--sweeps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    large(arguments.repeats)  # first: the peak of memory is that of the process
    gradients(arguments.visible, arguments.hidden, arguments.batch_size, 3)
    against_published(arguments)
    against_pgmax(arguments.sweeps)


if __name__ == "__main__":
    main()
