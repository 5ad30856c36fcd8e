"""The base of this package's data sets, images that TensorFlow Datasets prepares."""

import tensorflow_datasets as tfds


class ImageBuilder(  # type: ignore[call-arg]
    tfds.core.GeneratorBasedBuilder, skip_registration=True
):
    """Base of builders of images.

    A subclass has `image`, the feature, or a property that returns it; and where images
    have labels, `num_classes` and a `homepage`.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "Initial release."}
    num_classes = 0
    homepage = None

    def _info(self):
        features = {"image": self.image}
        if self.num_classes:
            features["label"] = tfds.features.ClassLabel(num_classes=self.num_classes)
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict(features),
            supervised_keys=("image", "label") if self.num_classes else None,
            homepage=self.homepage,
            disable_shuffling=not self.num_classes,
        )

    def _split_generators(self, dl_manager):
        del dl_manager  # By default the images are generated.
        return {"train": self._generate_examples()}

    def _labeled(self, images, labels):
        """Yields arrays of images and labels as examples."""
        for index, (image, label) in enumerate(zip(images, labels, strict=True)):
            yield index, {"image": image, "label": int(label)}
