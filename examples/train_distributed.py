"""Train one RBM on several devices, or in several processes.

    python examples/train_distributed.py --devices 2
    python examples/train_distributed.py --workers 2

`--devices` splits this machine's processor into logical devices under
`tf.distribute.MirroredStrategy`, which takes GPUs in the same way. `--workers` starts
as many processes here under `tf.distribute.MultiWorkerMirroredStrategy`; on a cluster a
scheduler starts them, and sets TF_CONFIG as this script does. The chief, worker 0,
writes `model.keras` after each epoch; with `--resume` a run that lost a worker goes on
from there.
"""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys


def main():
    args = parse_arguments()
    if args.workers > 1 and "TF_CONFIG" not in os.environ:
        sys.exit(start_workers(args.workers))

    import keras
    import numpy as np
    import tensorflow as tf

    strategy = make_strategy(tf, args)
    import keras_rbm as kr

    chief = strategy.cluster_resolver is None or not strategy.cluster_resolver.task_id
    path = pathlib.Path(args.out) / "model.keras"
    path.parent.mkdir(parents=True, exist_ok=True)
    data = kr.datasets.load("digits", "train", binarize="sample", redraw=False)
    images = data.batch(len(data)).get_single_element().numpy()

    steps = -(-len(images) // args.batch_size)
    with strategy.scope():
        if args.resume and path.exists():
            rbm = keras.saving.load_model(path)
        else:
            rbm = kr.RBM(args.hidden, num_visible=images.shape[1], seed=0)
            rbm.adapt(images)
            rule = kr.rules.PersistentContrastiveDivergence(5, num_chains=50)
            falling = keras.optimizers.schedules.PolynomialDecay(
                0.3, args.epochs * steps, end_learning_rate=0.0
            )
            rbm.compile(keras.optimizers.SGD(falling), rule=rule)
    done = int(rbm.optimizer.iterations.numpy()) // steps
    rbm.fit(
        images,
        batch_size=args.batch_size,
        epochs=args.epochs,
        initial_epoch=done,
        callbacks=[keras.callbacks.ModelCheckpoint(path)] if chief else [],
        verbose=0,
    )
    z = rbm.log_partition("ais")
    if chief:
        score = float(np.mean(rbm.log_likelihood(images, log_partition=z)))
        mean = np.clip(images.mean(0), 0.01, 0.99)
        alone = np.log(np.where(images > 0.5, mean, 1.0 - mean)).sum(1).mean()
        print(
            f"Found: {strategy.num_replicas_in_sync} replicas, {args.epochs} epochs: "
            f"log-likelihood {score:.2f} ± {float(z.stderr):.2f} nats; pixels on their "
            f"own {alone:.2f}"
        )


def make_strategy(tf, args):
    """Returns the strategy; it must come before anything else in TensorFlow."""
    if "TF_CONFIG" in os.environ:
        return tf.distribute.MultiWorkerMirroredStrategy()
    (cpu,) = tf.config.list_physical_devices("CPU")
    logical = [tf.config.LogicalDeviceConfiguration()] * args.devices
    tf.config.set_logical_device_configuration(cpu, logical)
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(args.devices)])


def start_workers(count):
    """Starts this script once for each worker; returns the first one's exit status."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    workers = []
    for index in range(count):
        task = {"type": "worker", "index": index}
        config = {"cluster": {"worker": addresses}, "task": task}
        environment = os.environ | {"TF_CONFIG": json.dumps(config)}
        workers.append(subprocess.Popen([sys.executable, *sys.argv], env=environment))
    return max(worker.wait() for worker in workers)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--out", default="out/distributed")
    parser.add_argument("--resume", action="store_true", help="from model.keras there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
