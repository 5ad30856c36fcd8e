"""Two processes of one cluster on this machine."""

import json
import os
import pathlib
import socket
import subprocess
import sys

WORKER = pathlib.Path(__file__).parent / "distribution_worker.py"


def start_workers(*arguments, **environment):
    """Returns a list of both as `subprocess.Popen` whose output can be read.

    Args:
        *arguments: of the script.
        **environment: variables, str.
    """
    cluster = {"worker": [f"127.0.0.1:{port}" for port in _free_ports(2)]}
    workers = []
    for index in range(2):
        task = {"type": "worker", "index": index}
        config = json.dumps({"cluster": cluster, "task": task})
        own = {"TF_CONFIG": config, "CUDA_VISIBLE_DEVICES": ""}
        workers.append(
            subprocess.Popen(
                [sys.executable, WORKER, *arguments],
                env=os.environ | own | environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return workers


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
