"""What becomes of a worker when the other one no longer answers: it ends, too.

TensorFlow's coordination service misses its heartbeats, or the connection breaks; the
collectives that wait for the other one are aborted.
"""

import signal
import threading
import time

import pytest
from workers import start_workers

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.multiprocess]

#: Seconds until the other worker has ended, at most.
LIMIT = 120.0


def _lost(lost, sign, folder, task="go on", **environment):
    """Sends a signal to one of two workers that train; waits for the other one.

    Returns:
        `(code, seconds, errors)` of the other one, which ends within `LIMIT`.
    """
    workers = start_workers(folder, task, **environment)
    try:
        for worker in workers:
            while worker.stdout.readline().strip() != "3":
                assert worker.poll() is None, worker.stderr.read()[-3000:]
        other = workers[1 - lost]
        epochs = threading.Thread(target=other.stdout.read, daemon=True)
        epochs.start()  # nobody waits for room in a pipe
        if sign is not None:
            workers[lost].send_signal(sign)
        began = time.monotonic()
        errors = []
        reader = threading.Thread(target=lambda: errors.append(other.stderr.read()))
        reader.start()
        code = other.wait(timeout=LIMIT)
        seconds = time.monotonic() - began
        reader.join()
        epochs.join()
        return code, seconds, errors[0]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            worker.stdout.close()
            worker.stderr.close()


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("lost", [0, 1], ids=["chief", "other"])
def test_the_other_worker_ends(lost, sign, tmp_path):
    """The chief holds the service: without it the others end at once."""
    code, seconds, errors = _lost(lost, sign, tmp_path)
    print(f"{sign.name} of worker {lost}: the other ends with {code}, {seconds:.0f} s")
    assert code != 0
    assert "Collective ops is aborted" in errors or "UnavailableError" in errors


def test_a_worker_that_hangs_and_still_answers(tmp_path):
    """Its heart beats: only a limit for collectives tells."""
    options = {"COLLECTIVE_TIMEOUT": "10"}
    code, seconds, errors = _lost(1, None, tmp_path, "sleep", **options)
    print(f"a worker sleeps: the other ends with {code}, {seconds:.0f} s")
    assert code != 0 and "DeadlineExceededError" in errors
