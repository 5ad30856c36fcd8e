"""Models that predict with an inference object."""

from typing import Any

import tensorflow as tf

from keras_rbm import inference as inference_module
from keras_rbm.inference.arguments import check_normalizable
from keras_rbm.models.layer_variables import potentials_of_any
from keras_rbm.units.bernoulli import are_binary


def check_prediction(model):
    """Raises a ValueError if mean field would diverge because Z is not finite."""
    units = tf.nest.flatten([model.visible, model.hidden])
    if model.inference is not None and not are_binary(*units):
        check_normalizable(potentials_of_any(model))


class WithInference:
    """Adds to a Boltzmann machine an inference that can be replaced at any time."""

    _awaits_inference = False  # whether it is chosen when the model is built

    def _check_inference(self, inference):
        """Raises a ValueError if the model cannot predict by this inference."""
        inference.check_input(self.conditional)
        types = tf.nest.flatten([self.visible, self.hidden])
        if not inference.takes(*types):
            raise ValueError(
                f"Expected inference='mean_field' for units {types!r:.200}. Received: "
                f"inference={inference!r}, which is only for binary units, or "
                "categorical visible ones."
            )

    @property
    def inference(self) -> inference_module.Inference:
        """`keras_rbm.inference.Inference` that the model predicts with.

        Another one, or its name, may be assigned at any time, if the rule fits it.
        """
        return self._inference

    @inference.setter
    def inference(
        self, inference: str | dict[str, Any] | inference_module.Inference
    ) -> None:
        inference = inference_module.get(inference)
        self._check_inference(inference)
        self._awaits_inference = False
        previous, self._inference = self._inference, inference
        if self.rule is not None:
            try:
                self._check_rule(self.rule, self.learner)
            except ValueError:
                self._inference = previous
                raise
            self.jit_compile = self._wants_jit(
                self._requested_jit, self.rule, self.run_eagerly
            )
        # Traced with the previous inference.
        self.train_function = self.test_function = self.predict_function = None
