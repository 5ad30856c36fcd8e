"""Reads and writes records of runs."""

import json
import math
import resource


def read_records(folder):
    """Returns the records, one JSON file each, in a folder."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def write_record(path, record):
    """Writes a JSON file, as a whole or not at all; null where a number has no end."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(_finite(record), allow_nan=False) + "\n")
    part.replace(path)


def megabytes():
    """Returns how much memory this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _finite(value):
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
