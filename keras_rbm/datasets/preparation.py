"""Finds a prepared copy of a TFDS data set, or prepares one."""

import contextlib
import io
import os
import pathlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

MANUAL_DIR_VARIABLE = "KERAS_RBM_MANUAL_DIR"
PROBE_TIMEOUT = 5.0  # seconds


def prepared_builder(builder_cls, *, config=None, data_dir=None, manual_dir=None):
    """Returns a TFDS builder whose data are on disk.

    The copy may be in `data_dir`, in the folder named by the environment variable
    `TFDS_DATA_DIR` or in `~/tensorflow_datasets`. If there is none, the set is prepared
    in the first of these that can be written to.

    Args:
        builder_cls: subclass of `tfds.core.DatasetBuilder`.
        config: optional `tfds.core.BuilderConfig` or its name.
        data_dir: optional path of prepared data sets.
        manual_dir: optional path of a folder with source files downloaded by hand.
            Default: the environment variable `KERAS_RBM_MANUAL_DIR`, else
            `downloads/manual` in the data directory.

    Returns:
        `tfds.core.DatasetBuilder` that is ready for `as_dataset`.

    Raises:
        ConnectionError: if source files are missing and their host cannot be reached.
        FileNotFoundError: if the set must be downloaded by hand and no file is there.
        PermissionError: if the set must be prepared and no directory can be written to.
    """
    import tensorflow_datasets as tfds

    roots = _data_roots(data_dir)
    for root in roots:
        builder = builder_cls(data_dir=root, config=config)
        if (builder.data_path / "dataset_info.json").exists():
            return builder
    root = next((root for root in roots if _is_writable(root)), None)
    if root is None:
        raise PermissionError(
            f"Expected a writable directory to prepare {builder_cls.name!r} in. "
            f"Received: {', '.join(map(str, roots))}. Pass data_dir= or set "
            "TFDS_DATA_DIR to a folder that you may write to."
        )
    builder = builder_cls(data_dir=root, config=config)
    manual = pathlib.Path(
        manual_dir or os.environ.get(MANUAL_DIR_VARIABLE) or root / "downloads/manual"
    ).expanduser()
    _check_sources(builder, manual)
    options = tfds.download.DownloadConfig(
        manual_dir=manual, force_checksums_validation=True
    )
    with contextlib.ExitStack() as stack:
        if not _has_sources(builder):  # TFDS speaks of a download nevertheless
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        builder.download_and_prepare(download_config=options)
    return builder


def can_connect(url):
    """Returns whether the host of `url` answers within `PROBE_TIMEOUT` seconds."""
    import requests  # As TFDS does, with the same proxies and certificates.

    try:
        requests.head(url, timeout=PROBE_TIMEOUT)
    except requests.RequestException:
        return False
    return True


def _data_roots(data_dir):
    candidates = [data_dir, os.environ.get("TFDS_DATA_DIR"), "~/tensorflow_datasets"]
    roots = [pathlib.Path(root).expanduser() for root in candidates if root]
    return list(dict.fromkeys(roots))


def _is_writable(root):
    existing = next(path for path in (root, *root.parents) if path.exists())
    # Check the mode too: os.access lets root write where the owner has forbidden it.
    writable = existing.stat().st_mode & 0o222 and os.access(existing, os.W_OK)
    return existing.is_dir() and bool(writable)


def _has_sources(builder):
    """Returns whether a set is made of files that are not installed."""
    return bool(builder.url_infos or builder.MANUAL_DOWNLOAD_INSTRUCTIONS)


def _check_sources(builder, manual):
    """Raises an error at once where TFDS would try to download for minutes."""
    if builder.MANUAL_DOWNLOAD_INSTRUCTIONS:
        if not manual.is_dir() or not any(manual.iterdir()):
            raise FileNotFoundError(
                f"Expected the source file of {builder.name!r} in a manual folder. "
                f"Received: manual_dir={str(manual)!r}, missing or empty. "
                f"{' '.join(builder.MANUAL_DOWNLOAD_INSTRUCTIONS.split())}"
            )
        return
    missing = {
        url: info.filename or url.rpartition("/")[2]
        for url, info in (builder.url_infos or {}).items()
        if not info.filename or not (manual / info.filename).exists()
    }
    if missing and not can_connect(next(iter(missing))):
        sources = "".join(f"\n  {name}  from  {url}" for url, name in missing.items())
        raise ConnectionError(
            f"Expected a prepared copy of {builder.name!r}, its source files, or a "
            f"connection to download them. Received: no copy in data_dir="
            f"{str(builder.data_dir)!r}, no source files in manual_dir="
            f"{str(manual)!r}, no answer from the host. Where there is a connection, "
            f"download:{sources}\nSave them under these names in one folder, and pass "
            f"it as manual_dir= or set {MANUAL_DIR_VARIABLE} to it. Or copy a folder "
            f"that TFDS prepared and set TFDS_DATA_DIR to it."
        )
