"""The training step of all models."""

from typing import Any

import keras
import tensorflow as tf

from keras_rbm import random, rules
from keras_rbm._replicas import add, as_logs, normalized, num_replicas
from keras_rbm.inference import conditional_moments
from keras_rbm.inference.completion import complete
from keras_rbm.models.data.missing import entries, filled, is_known
from keras_rbm.models.data.rows import unpack
from keras_rbm.models.errors import lies_in
from keras_rbm.models.training.defaults import LATENT_SWEEPS
from keras_rbm.models.training.guard import (
    DATA_BIT,
    GRADIENT_BIT,
    LOSS_BIT,
    zeros_unless,
)
from keras_rbm.models.training.resume import inner_steps

#: Number of the seed that completes data, among the seeds made from a step's seed.
_COMPLETION, _MEANS = -3, -4


class TrainingStep(keras.Model):
    """What a Boltzmann machine does with a batch: `train_step` and `test_step`.

    A step becomes a `rules.Step`, from which the learning rule computes phases. They
    are applied under the model's `StepGuard`, which reverts a step that is not sound.
    """

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        features, visible, weights, sample_weight = self._step_inputs(data)
        # A pipeline may read `optimizer.iterations`, which must not change before the
        # batch is there.
        with tf.control_dependencies([visible]):
            before = self._guard.begin(self._state_of_a_step())
            sound = self._form.soundness(features, visible, weights)
            self._guard.look_at(*sound, first_bit=DATA_BIT)
            # An error of the pipeline may come before the step is reverted.
            features, visible, weights = zeros_unless(
                tf.reduce_all(sound), features, visible, weights
            )
            self._begin_pass(features)
            seed = self._next_seed()
            seeds = seed, random.fold_in(seed, 0)
            step = self._step(features, visible, normalized(weights), *seeds)
            phases = self._phases(step)
            self._guard.look_at(lies_in(phases.losses), first_bit=LOSS_BIT)
            # Metrics are of the model before the update.
            prediction = self._predicted(features, step, phases.prediction, visible)
            logs = self._update(step, phases)
        self._record(visible, weights)
        self._end_pass(features)
        with tf.control_dependencies(self._guard.end(before)):
            self._loss_tracker.update_state(phases.losses, sample_weight=weights)
            results = self._results(features, visible, prediction, sample_weight)
        return as_logs(results | logs)

    def _begin_pass(self, features):
        """Has a network in front of the model run as in training in this step."""

    def _end_pass(self, features):
        """Ends what `_begin_pass` has begun."""

    def _potentials_to_train(self, features):
        """Returns `Potentials` given a batch's features, whose gradients are used."""
        return self.potentials(features)

    def _phases(self, step):
        """Returns the `Phases` of a step, before it changes the model."""
        return self.rule.phases(step)

    def _update(self, step, phases):
        """Changes the model by a step; returns logs, a dict of scalars."""
        self.rule.update(step, phases)
        return {}

    def _test_losses(self, step):
        """Returns losses and a prediction of a batch that is evaluated."""
        return self.rule.losses(step)

    def _state_of_a_step(self):
        """Returns the variables that a step changes before it is known to be sound."""
        variables = [self.seed_generator.state, *self._learner.variables]
        if inner_steps(self.rule) > 1:
            variables += [*self.weights, *self.optimizer.variables]
        return variables

    def _step_inputs(self, data):
        """Returns a batch's features, visible states and weights, and those given."""
        x, y, sample_weight = unpack(data)
        features, visible = self._form.split(x, y)
        with tf.init_scope():
            if not self.built:
                self._build_from_batch(x, y)
            self._build_training()
        visible = tf.cast(visible, self.variable_dtype)
        visible = tf.ensure_shape(visible, (None, self._visible_width))
        if features is not None:
            features = tf.cast(features, self.variable_dtype)
            features = tf.ensure_shape(features, (None, *self._example_shape()))
        if sample_weight is None:
            weights = tf.ones(tf.shape(visible)[0], self.variable_dtype)
        else:
            weights = tf.reshape(tf.cast(sample_weight, self.variable_dtype), [-1])
        if self.missing is not None:
            known = is_known(visible)
            weights = tf.where(tf.reduce_any(known, -1), weights, 0.0)
            if self.missing == "absent":
                features = tf.cast(known, self.variable_dtype)
        return features, visible, weights, sample_weight

    def _step(self, features, visible, weights, root_seed, loss_seed):
        """Returns the `rules.Step` of a batch."""
        potentials = self._potentials_to_train(features)
        known = None if self.missing is None else is_known(visible)
        visible = visible if known is None else filled(visible)
        visible = self._drawn(visible, random.fold_in(root_seed, _MEANS))
        completion = random.fold_in(root_seed, _COMPLETION)
        states = self._complete(visible, completion)
        if self.missing == "latent":
            states = self._with_latent(potentials, states, known, completion)
        natural = potentials.hidden_natural(states)
        positive = self._positive(potentials, states, weights, natural)
        return rules.Step(
            potentials,
            states,
            weights,
            natural,
            positive,
            root_seed,
            loss_seed,
            features,
            self.inference,
            self._learner,
            known,
        )

    def _with_latent(self, potentials, visible, known, seed):
        """Returns states with a draw in the place of those that are not known."""

        def drawn():
            base = self._base_natural(potentials)
            return complete(potentials, visible, known, base, seed, LATENT_SWEEPS)

        return tf.cond(tf.reduce_all(known), lambda: visible, drawn)

    def _base_natural(self, potentials):
        """Returns natural parameters of the visible units without coupling."""
        return potentials.visible.bias

    def _drawn(self, visible, seed):
        """Returns states (B, V) for data that may be means, such as gray levels."""
        return visible

    def _complete(self, visible, seed):
        """Returns states of the whole visible layer, if data are only a part of it."""
        return visible

    def _positive(self, potentials, visible, weights, hidden_natural):
        """Returns the `Moments` of training states, see `conditional_moments`."""
        return conditional_moments(potentials, visible, weights, hidden_natural)

    def _scored(self, potentials, visible):
        """Returns what the loss is of: potentials, states, and how many are data."""
        return potentials, visible, self._visible_width

    def _descend(self, gradients, centering=None):
        """Descends along gradients of the potentials, see `Learner.descend`."""
        named, variables = self._by_variable(gradients), self.trainable_variables
        gradients = [  # a backbone's variables have no names of their own
            _regularized(named[str(id(v)) if str(id(v)) in named else v.name], v)
            for v in variables
        ]
        self._guard.look_at(*map(lies_in, gradients), first_bit=GRADIENT_BIT)
        scale = self.optimizer.scale_loss(1.0)
        if tf.is_tensor(scale) or scale != 1.0:
            gradients = [gradient * scale for gradient in gradients]

        def apply(gradients):
            before = None if centering is None else self._current_kernel()
            self.optimizer.apply(gradients, variables)
            self._stay_normalizable()
            if centering is None:
                return
            change = self._current_kernel() - before
            shifts = centering.shifts(change)
            if self.missing == "absent":
                add([self.kernel], [centering.kernel_shift(change)])
            shifts = self._bias_changes(*shifts.values())
            biases = [v for v in variables if v.name in shifts]
            add(biases, [shifts[bias.name] for bias in biases])

        self._guard.if_sound(apply, gradients)

    def _stay_normalizable(self):
        """Keeps the model where its partition function is finite."""

    def _current_kernel(self):
        return tf.identity(self.potentials(dtype=self.variable_dtype).kernel)

    def _bias_changes(self, visible, hidden):
        """Returns changes of biases by the variables' names."""
        return {"visible_bias": visible, "hidden_bias": hidden}

    def _by_variable(self, gradients):
        """Returns gradients by the variables' names, given those of the potentials."""
        return gradients

    def _record(self, visible, weights):
        """Records a batch's visible states, (B, V), with weights (B,)."""

    def _knows_data(self):
        """Returns whether the model has recorded data."""
        return False

    def _set_data_mean(self, mean):
        """Takes the mean of the encoded data as known, before training."""

    def _predicted(self, features, step, given, visible):
        """Returns the prediction for metrics: the rule's, or else the model's."""
        if self._reports_predictions and given is None:
            if self.missing is not None:
                visible = filled(visible, step.visible)
            return self._prediction(features, visible)
        return given

    def _results(self, features, visible, prediction, sample_weight):
        if not self._reports_predictions:
            return self.get_metrics_result()
        x = features if self.conditional else visible
        if self.missing is not None:
            parts = entries(visible, prediction, sample_weight)
            return self.compute_metrics(x, *parts)
        return self.compute_metrics(x, visible, prediction, sample_weight)

    def test_step(self, data: Any) -> dict[str, tf.Tensor]:
        features, visible, weights, sample_weight = self._step_inputs(data)
        seed = self._test_seed()
        step = self._step(features, visible, weights, seed, seed)
        losses, prediction = self._test_losses(step)
        prediction = self._predicted(features, step, prediction, visible)
        self._loss_tracker.update_state(losses, sample_weight=weights)
        return as_logs(self._results(features, visible, prediction, sample_weight))

    def _test_seed(self):
        """Returns a new seed for each batch, without changing the generator."""
        count = tf.cast(tf.convert_to_tensor(self._loss_tracker.count), tf.float32)
        seed = random.fold_in(0, tf.bitcast(count, tf.int32))
        context = tf.distribute.get_replica_context()
        return random.fold_in(seed, context.replica_id_in_sync_group)


def _regularized(gradient, variable):
    """Returns a gradient plus that of the variable's regularizer.

    Under a strategy each replica adds only its share, because gradients are summed.
    """
    if variable.regularizer is None:
        return gradient
    value = tf.convert_to_tensor(variable)
    with tf.GradientTape() as tape:
        tape.watch(value)
        penalty = variable.regularizer(value)
    return gradient + tape.gradient(penalty, value) / num_replicas()
