"""Files of a model: written whole or not at all, loaded whole or not at all."""

import contextlib
import math
import os
import shutil
import uuid

import keras

from keras_rbm.checks import as_path
from keras_rbm.models.workflow.exporting import export_saved_model
from keras_rbm.models.workflow.named_state import restore, snapshot
from keras_rbm.models.workflow.portable import check_portable, export_portable


class StoredModel(keras.Model):
    """A Keras model whose files are saved and loaded completely or not at all.

    A subclass implements `endpoints()`, for `export`, and `_parts()`.
    """

    def _parts(self):
        """Returns the list of `RuleModel`s that the model consists of."""
        raise TypeError(f"{type(self).__name__} must implement _parts.")

    def save(
        self, filepath: str | os.PathLike, overwrite: bool = True, zipped=None, **kwargs
    ) -> None:
        """Saves the model as `keras.Model.save` does.

        The file is written under another name and then renamed: if writing fails, an
        existing file is not changed.
        """
        _check_suffix(filepath, ".keras", "save", zipped)
        with _written_beside(filepath, overwrite) as place:
            super().save(place, overwrite, zipped, **kwargs)

    def save_weights(
        self, filepath: str | os.PathLike, overwrite: bool = True, max_shard_size=None
    ) -> None:
        """Saves all variables, as `keras.Model.save_weights`, written as by `save`."""
        if max_shard_size is not None:
            super().save_weights(filepath, overwrite, max_shard_size)
            return
        _check_suffix(filepath, ".weights.h5", "save_weights")
        with _written_beside(filepath, overwrite) as place:
            super().save_weights(place, overwrite)

    def load_weights(self, filepath: str | os.PathLike, *args, **kwargs) -> None:
        """Restores all variables, as `keras.Model.load_weights`, or none of them."""
        self._assert_built("load_weights")
        _check_weights_path(filepath)
        before = [(part, snapshot(part)) for part in self._parts()]
        try:
            super().load_weights(filepath, *args, **kwargs)
        except BaseException:
            for part, taken in before:
                restore(part, taken)
            raise

    def export(
        self,
        filepath: str | os.PathLike,
        format: str = "tf_saved_model",
        verbose=None,
        *,
        endpoint: str = "serving_default",
        **kwargs,
    ) -> None:
        """Exports the model to a format that is loaded without keras_rbm.

        A SavedModel's endpoints take batches of any size and return dicts of tensors;
        see the guide "Deploy a model" for those of each model. `sample` with a seed
        returns the same as the model's own `sample` with that seed. `sample_stateful`
        draws again at each call, with the same series of draws after each loading.
        Written as by `save`.

        Args:
            filepath: str or path: a directory to write for a SavedModel, else a file
                that ends in `.onnx`, `.tflite` or `.xml`.
            format: `"tf_saved_model"` with all endpoints, or `"onnx"`, `"litert"` or
                `"openvino"` with one endpoint, if the installed Keras writes them.
            verbose: as in Keras.
            endpoint: str, the endpoint to write in the other formats, without random
                numbers.
            **kwargs: for the other formats, as in Keras (`input_signature`,
                `opset_version`, `optimizations`, …).

        Raises:
            ValueError: if the model has no variables yet, or the format cannot hold the
                endpoint; nothing is written then.
            ImportError: if a package that writes the format is missing.
        """
        self._assert_built("export")
        if format == "tf_saved_model":
            if endpoint != "serving_default":
                raise ValueError(
                    "Expected no endpoint: a SavedModel has all of them. Received: "
                    f"endpoint={endpoint!r}. Leave it out, or pass format='onnx'."
                )
            with _written_beside(filepath, True) as place:
                export_saved_model(self, place, verbose, **kwargs)
            return
        function = check_portable(self, filepath, format, endpoint)
        with _files_beside(filepath) as place:
            export_portable(self, place, format, endpoint, function, verbose, **kwargs)

    def quantize(self, *args, **kwargs):
        """Not supported: Keras quantizes only its own layers."""
        raise ValueError(
            "Expected a model of Keras' own layers to quantize. Received: "
            f"{type(self).__name__} '{self.name}'. Quantize its to_classifier(), or "
            "train and predict in bfloat16 with dtype='mixed_bfloat16'."
        )

    def summary(
        self, line_length=None, positions=None, print_fn=None, **kwargs
    ) -> None:
        """Prints the variables with their shapes, by `print_fn` if there is one."""
        (print_fn or print)(self._summary())

    def _summary(self):
        if not self.built:
            return f"{self.name} ({type(self).__name__}): not built yet."
        rows = []
        for variable in self.weights:
            name = variable.path.split("/", 1)[-1]
            fixed = "" if variable.trainable else "not trained"
            count = f"{math.prod(variable.shape):,}"
            rows.append((name, str(tuple(variable.shape)), count, fixed))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        trained = sum(math.prod(variable.shape) for variable in self.trainable_weights)
        return "\n".join(
            [
                f"{self.name} ({type(self).__name__})",
                *("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in rows),
                f"{trained:,} of {self.count_params():,} parameters are trainable.",
            ]
        )


def _check_suffix(filepath, suffix, method, zipped=None):
    """Raises a ValueError unless a path ends as its format requires."""
    if zipped is not False and not str(filepath).endswith(suffix):
        raise ValueError(
            f"Expected a path that ends in '{suffix}'. Received: filepath="
            f"{str(filepath)!r}. Call {method}('model{suffix}'), or export(directory) "
            "for a SavedModel."
        )


def _check_weights_path(filepath):
    """Raises an error unless a path ends like a file that weights are read from."""
    if not str(as_path(filepath)).endswith((".h5", ".keras", ".weights.json")):
        raise ValueError(
            "Expected a path that ends in '.weights.h5' or '.keras'. Received: "
            f"filepath={str(filepath)!r}."
        )


@contextlib.contextmanager
def _written_beside(filepath, overwrite):
    """Yields a path beside `filepath`; its file or directory is then renamed to it."""
    place = as_path(filepath)
    remote = "://" in str(filepath)
    if remote or (place.exists() and not overwrite):  # then Keras asks the user
        yield filepath
        return
    # The ending is kept: Keras reads the format from it.
    beside = place.with_name(f".{uuid.uuid4().hex[:8]}-{place.name}")
    try:
        yield beside
        _replace(beside, place)
    finally:
        _remove(beside)


@contextlib.contextmanager
def _files_beside(filepath):
    """Yields a path in a new folder; its files are then moved beside `filepath`."""
    place = as_path(filepath)
    folder = place.with_name(f".{uuid.uuid4().hex[:8]}-{place.name}")
    folder.mkdir()
    try:
        yield folder / place.name
        for file in sorted(folder.iterdir()):  # OpenVINO's .bin before its .xml
            _replace(file, place.with_name(file.name))
    finally:
        _remove(folder)


def _replace(beside, place):
    """Renames a file or directory, and replaces an existing one."""
    if not place.is_dir():
        os.replace(beside, place)
        return
    old = beside.with_name(beside.name + ".old")
    os.replace(place, old)
    try:
        os.replace(beside, place)
    except OSError:
        os.replace(old, place)
        raise
    _remove(old)


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
