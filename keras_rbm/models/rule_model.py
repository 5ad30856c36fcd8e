"""The training step and the saved state of every model."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.checks import check_counts, seed_number
from keras_rbm.inference import conditional_moments
from keras_rbm.models.workflow import faults
from keras_rbm.models.workflow.defaults import awaits_rate, default_rate
from keras_rbm.models.workflow.digests import OptimizerDigests
from keras_rbm.models.workflow.initializers import keras_part, normal
from keras_rbm.models.workflow.inputs import unpack
from keras_rbm.models.workflow.named_state import kind_of, load_named, save_named
from keras_rbm.models.workflow.penalties import regularized
from keras_rbm.models.workflow.resume import FitStart
from keras_rbm.models.workflow.stored_model import StoredModel
from keras_rbm.replicas import as_logs, is_single, normalized, num_replicas
from keras_rbm.rules.step import Step

#: Number of the seed that completes data, among the seeds made from a step's seed.
_COMPLETION = -3


class RuleModel(StoredModel):
    """A Keras model whose training step is a learning rule.

    A subclass creates its variables in `build` and implements

    * `potentials(features)`: the bipartite model, given its input;
    * `gradients(features, positive, negative)`: dict of variable name to gradient;
    * `_split_batch(x, y)`: which part of the data is input and which is visible state;
    * `_prediction(features, visible)`: what compiled metrics compare with v.

    Args:
        seed: int or `None`. Seeds all random numbers of the model.
        num_visible: int or `None`, V. `None` takes it from the first data.
        **kwargs: as for `keras.Model` (`name`, `dtype`, `trainable`).
    """

    _cure_unbuilt = (
        "Pass num_visible= to the constructor, or call build(), adapt() or fit() first."
    )

    def __init__(self, seed=None, num_visible=None, **kwargs):
        if num_visible is not None:
            check_counts(num_visible=num_visible)
        seed = seed_number(seed)
        super().__init__(**kwargs)
        if self.variable_dtype != "float32":
            raise ValueError(
                "Expected a dtype policy with float32 variables. Received: "
                f"dtype={self.dtype_policy.name!r}. Use 'float32', 'mixed_bfloat16' or "
                "'mixed_float16'."
            )
        self.autocast = False  # bfloat16 has no 257, which may be a category
        self.num_visible = None if num_visible is None else int(num_visible)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self._optimizer_digests = OptimizerDigests(lambda: self)
        self.rule = None
        self.visible_bias_initializer = None
        self._fault = None
        self._reports_faults = False
        self._chooses_rate = False
        self._visible_width = None  # columns of visible states, once built
        self._fit_start = FitStart()

    def _set_start(self, initializer, regularizer, visible_bias):
        """Sets the initializers of kernels and visible biases, and the regularizer."""
        get, regularizers = keras.initializers.get, keras.regularizers.get
        initializer = normal(self.seed) if initializer is None else initializer
        self.kernel_initializer = keras_part(get, "kernel_initializer", initializer)
        name = "visible_bias_initializer"
        self.visible_bias_initializer = keras_part(get, name, visible_bias)
        name = "kernel_regularizer"
        self.kernel_regularizer = keras_part(regularizers, name, regularizer)

    def potentials(self, features=None, dtype=None):
        """Returns the model's `Potentials`, given its input."""
        raise TypeError(f"{type(self).__name__} must implement potentials.")

    def gradients(self, features, positive, negative):
        """Returns negative minus positive mean statistics, by variable name."""
        raise TypeError(f"{type(self).__name__} must implement gradients.")

    def _start_config(self):
        """Returns the constructor's arguments that `_set_start` has set."""
        serialize = keras.initializers.serialize
        bias = self.visible_bias_initializer
        return {
            "kernel_initializer": serialize(self.kernel_initializer),
            "visible_bias_initializer": None if bias is None else serialize(bias),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
        }

    def _split_batch(self, x, y):
        """Returns `(features, visible)` for a batch's `x` and `y`."""
        raise TypeError(f"{type(self).__name__} must implement _split_batch.")

    def _complete(self, visible, seed):
        """Returns states of the whole visible layer, if data are only a part of it."""
        return visible

    def base_natural(self, potentials):
        """Returns visible natural parameters (V,) of the base-rate model, or `None`."""
        return None

    def _positive(self, potentials, visible, weights, hidden_natural):
        """Returns the `Moments` of training states, see `conditional_moments`."""
        return conditional_moments(potentials, visible, weights, hidden_natural)

    def _scored(self, potentials, visible):
        """Returns both for the loss, with units that always agree joined to one."""
        return potentials, visible

    def _record(self, visible, weights):
        """Records a batch's visible states, (B, V), with weights (B,)."""

    def _assert_built(self, method):
        """Raises a ValueError if the model has no variables yet."""
        if not self.built:
            raise ValueError(
                f"Expected a built model in {method}(). Received: model "
                f"'{self.name}', which has no variables yet. {self._cure_unbuilt}"
            )

    def _build_training(self):
        """Creates the variables of the rule and of the optimizer, once."""
        with self._strategy_scope():
            if not self.rule.built:
                self.rule.build(self)
            if not self.optimizer.built:
                if awaits_rate(self):
                    rate = default_rate(self._visible_width)
                    self.optimizer.learning_rate = rate * self.rule.relative_rate
                self.optimizer.build(self.trainable_variables)
            if self._fault is None:
                self._fault = faults.StepFault()

    def _strategy_scope(self):
        """Returns the scope of the model's strategy, to create variables in."""
        strategy = self.distribute_strategy
        if tf.distribute.get_strategy() is strategy:
            return tf.name_scope("")
        return strategy.scope()

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # All is built; on several devices Keras' step may fail (keras issue 20585).
        if is_single(self.distribute_strategy):
            super()._maybe_symbolic_build(iterator, data_batch)

    def train_step(self, data):
        x, y, sample_weight = unpack(data)
        features, visible, weights = self._step_inputs(x, y, sample_weight)
        # A pipeline may read `optimizer.iterations`, which must not change before the
        # batch is there.
        with tf.control_dependencies([visible]):
            self._fault.begin(self._state_of_a_step(), self._reports_faults)
            sound = self._data_soundness(features, visible, weights)
            self._fault.look_at(*sound, first_bit=faults.DATA_BIT)
            seed = self.next_seed()
            loss_seed = random.fold_in(seed, 0)
            shares = normalized(weights)
            step = self._step(features, visible, shares, seed, loss_seed)
            phases = self.rule.phases(step)
            self._fault.look_at(
                faults.lies_in(phases.losses), first_bit=faults.LOSS_BIT
            )
            prediction = self._predicted(features, visible, phases.prediction)
            logs = self.rule.update(self, step, phases)
        self._record(*self._fault.unless_bad(visible, weights))
        with tf.control_dependencies(self._fault.end()):
            self._loss_tracker.update_state(phases.losses, sample_weight=weights)
            results = self._results(features, visible, prediction, sample_weight)
        return as_logs(results | logs)

    def _state_of_a_step(self):
        """Returns the variables that a step changes before it is known to be sound."""
        variables = [self.seed_generator.state, *self.rule.variables]
        if num_replicas() == 1 and not self.rule.descends_once:
            variables += [*self.weights, *self.optimizer.variables]
        return variables

    def test_step(self, data):
        x, y, sample_weight = unpack(data)
        features, visible, weights = self._step_inputs(x, y, sample_weight)
        seed = self._test_seed()
        step = self._step(features, visible, weights, seed, seed)
        losses, prediction = self.rule.test_losses(step)
        prediction = self._predicted(features, visible, prediction)
        self._loss_tracker.update_state(losses, sample_weight=weights)
        return as_logs(self._results(features, visible, prediction, sample_weight))

    def _step(self, features, visible, weights, root_seed, loss_seed):
        """Returns the `rules.Step` of a batch."""
        potentials = self.potentials(features)
        states = self._complete(visible, random.fold_in(root_seed, _COMPLETION))
        natural = potentials.hidden_natural(states)
        return Step(
            potentials,
            states,
            weights,
            natural,
            self._positive(potentials, states, weights, natural),
            root_seed,
            loss_seed,
            features,
            self.inference,
            self.base_natural(potentials),
            self._scored(potentials, states),
            self._visible_width,
        )

    def _predicted(self, features, visible, given):
        """Returns the prediction for metrics: the rule's, or else the model's."""
        if self._reports_predictions and given is None:
            return self._prediction(features, visible)
        return given

    def _step_inputs(self, x, y, sample_weight):
        features, visible = self._split_batch(x, y)
        with tf.init_scope():
            if not self.built:
                self._build_from_batch(x, y)
            self._build_training()
        visible = tf.cast(visible, self.variable_dtype)
        visible = tf.ensure_shape(visible, (None, self._visible_width))
        if features is not None:
            features = tf.cast(features, self.variable_dtype)
            features = tf.ensure_shape(features, (None, self.num_features))
        if sample_weight is None:
            weights = tf.ones(tf.shape(visible)[0], self.variable_dtype)
        else:
            weights = tf.reshape(tf.cast(sample_weight, self.variable_dtype), [-1])
        return features, visible, weights

    def _test_seed(self):
        """Returns a new seed for each batch, without changing the generator."""
        count = tf.cast(tf.convert_to_tensor(self._loss_tracker.count), tf.float32)
        seed = random.fold_in(0, tf.bitcast(count, tf.int32))
        context = tf.distribute.get_replica_context()
        return random.fold_in(seed, context.replica_id_in_sync_group)

    def _results(self, features, visible, prediction, sample_weight):
        if not self._reports_predictions:
            return self.get_metrics_result()
        x = visible if features is None else features
        return self.compute_metrics(x, visible, prediction, sample_weight)

    def descend(self, gradients):
        """Descends along gradients given by variable name, plus regularizers."""
        variables = self.trainable_variables
        gradients = [gradients[variable.name] for variable in variables]
        gradients = regularized(gradients, variables)
        self._fault.look_at(
            *map(faults.lies_in, gradients), first_bit=faults.GRADIENT_BIT
        )
        scale = self.optimizer.scale_loss(1.0)
        if tf.is_tensor(scale) or scale != 1.0:
            gradients = [gradient * scale for gradient in gradients]
        self._fault.unless_found(lambda: self.optimizer.apply(gradients, variables))

    def make_train_function(self, force=False):
        if force or self.train_function is None:
            super().make_train_function(force)
            self.train_function = faults.reporting(self, self.train_function)

    def next_seed(self):
        """Draws a seed (2,) from the model's generator, different per replica."""
        seed = random.as_seed(self.seed_generator.next())
        if num_replicas() > 1:
            context = tf.distribute.get_replica_context()
            seed = random.fold_in(seed, context.replica_id_in_sync_group)
        return seed

    def state(self):
        """Returns two dicts of the variables to save: required and optional."""
        required = {variable.name: variable for variable in self.weights}
        required["seed_generator"] = self.seed_generator.state
        optional = {}
        if self.rule is not None:
            optional = {f"rule.{v.name}": v for v in self.rule.variables}
        return required, optional

    def _parts(self):
        return [self]

    def save_own_variables(self, store):
        """Saves weights, random state and the rule's state under their names."""
        required, optional = self.state()
        fit_start = {"fit_start": np.array(tuple(self._fit_start))}
        save_named(store, required | optional | fit_start, kind_of(self))

    def load_own_variables(self, store):
        """Restores what `save_own_variables` saved; all shapes are checked first."""
        load_named(store, *self.state(), kind_of(self))
        if "fit_start" in store.keys():
            self._fit_start = FitStart.of(store["fit_start"])
