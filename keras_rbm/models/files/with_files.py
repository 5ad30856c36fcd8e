"""Models in files."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_rbm.models.files import saving
from keras_rbm.models.files.exporting import export_saved_model
from keras_rbm.models.files.summary import summary_of


class WithFiles(keras.Model):
    """Saves, loads and exports a Keras model: whole files, or none."""

    def _models_in_file(self):
        """Returns the Boltzmann machines whose variables a file holds."""
        return [self]  # no property: Keras would look for parts of the model there

    def save(
        self,
        filepath: str | os.PathLike,
        overwrite: bool = True,
        zipped: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Saves the model as `keras.Model.save` does.

        The file is written under another name and then renamed: if writing fails, an
        existing file is not changed.
        """
        suffix = None if zipped is False else ".keras"
        with saving.written_whole(filepath, suffix, "save", overwrite) as place:
            super().save(place, overwrite, zipped, **kwargs)

    def save_weights(
        self,
        filepath: str | os.PathLike,
        overwrite: bool = True,
        max_shard_size: float | None = None,
    ) -> None:
        """Saves all variables, as `keras.Model.save_weights`, written as by `save`.

        HDF5 keeps no checksum of them: a bit that has turned on a disk is not noticed.
        A `.keras` file is checked when it is loaded.
        """
        if max_shard_size is not None:
            super().save_weights(filepath, overwrite, max_shard_size)
            return
        method = "save_weights"
        with saving.written_whole(filepath, ".weights.h5", method, overwrite) as place:
            super().save_weights(place, overwrite)

    def load_weights(
        self, filepath: str | os.PathLike, *args: Any, **kwargs: Any
    ) -> None:
        """Restores all variables, as `keras.Model.load_weights`, or none of them."""
        self._assert_built("load_weights")
        with saving.unchanged_unless_loaded(self._models_in_file(), filepath):
            super().load_weights(filepath, *args, **kwargs)

    def export(
        self,
        filepath: str | os.PathLike,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Exports the model to a format that is loaded without keras_rbm.

        A SavedModel's endpoints take batches of any size and return dicts of tensors;
        see the guide "Deploy a model" for those of each model. `sample` with a seed
        returns the same as the model's own `sample` with that seed. `sample_stateful`
        draws again at each call, with the same series of draws after each loading.
        Written as by `save`.

        Args:
            filepath: str or path of a directory to write for a SavedModel, else of a
                file.
            format: `"tf_saved_model"` with all endpoints, or what `keras.Model.export`
                writes of the model as a layer (`"onnx"`, …).
            verbose: as in Keras.
            **kwargs: for the other formats, as in Keras.

        Raises:
            ValueError: if the model has no variables yet.
        """
        self._assert_built("export")
        if format == "tf_saved_model":
            export_saved_model(self, filepath, verbose, **kwargs)
        else:
            super().export(filepath, format, verbose, **kwargs)

    def summary(
        self,
        line_length: int | None = None,
        positions: Sequence[float] | None = None,
        print_fn: Callable[[str], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Prints the variables with their shapes, by `print_fn` if there is one."""
        (print_fn or print)(summary_of(self))
