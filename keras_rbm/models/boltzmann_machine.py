"""What every model here shares: the Keras side of a Boltzmann machine."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import random, rules
from keras_rbm.checks import check_counts
from keras_rbm.datasets.pipeline import shuffled_batches
from keras_rbm.models.inputs import (
    as_arrays,
    as_rows,
    check_rows,
    first_batch,
    is_array,
    unpack,
    with_weights,
)
from keras_rbm.models.named_state import load_named, save_named
from keras_rbm.models.resume import EpochKey, ResumeCheck

_KERAS_LOSS_ARGUMENTS = ("loss", "loss_weights", "auto_scale_loss")


class BoltzmannMachine(keras.Model):
    """Base of the models: compiling, fitting, saving, with a learning rule.

    A subclass makes its variables in `build` and implements

    * `potentials(features)`: the bipartite model it is, given its input;
    * `gradients(features, positive, negative)`: dict of variable name to gradient;
    * `roles(x, y)`: which part of the data is input and which is visible state.

    Args:
        seed: int or `None`. Seeds everything random in the model.
        **kwargs: as for `keras.Model` (`name`, `dtype`, `trainable`).
    """

    def __init__(self, seed=None, **kwargs):
        super().__init__(**kwargs)
        if self.variable_dtype != "float32":
            raise ValueError(
                "Expected a dtype policy with float32 variables. Received: "
                f"dtype={self.dtype_policy.name!r}. Use 'float32', 'mixed_bfloat16' or "
                "'mixed_float16'."
            )
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.rule = None
        self._fit_start = 0  # the optimizer's iterations when the last fit began

    def potentials(self, features=None):
        """Returns the model's `Potentials`, given its input."""
        raise TypeError(f"{type(self).__name__} must implement potentials.")

    def gradients(self, features, positive, negative):
        """Returns negative minus positive mean statistics, by variable name."""
        raise TypeError(f"{type(self).__name__} must implement gradients.")

    def roles(self, x, y):
        """Returns `(features, visible)` for a batch's `x` and `y`."""
        raise TypeError(f"{type(self).__name__} must implement roles.")

    def compile(
        self,
        optimizer="sgd",
        *,
        rule="cd",
        loss=None,
        metrics=None,
        weighted_metrics=None,
        run_eagerly=False,
        steps_per_execution=1,
        jit_compile="auto",
    ):
        """Configures the model for training.

        Args:
            optimizer: str or `keras.optimizers.Optimizer`.
            rule: str or `keras_rbm.rules.LearningRule`, where the gradient comes
                from. A rule object belongs to one model.
            loss: not taken; the rule stands in its place.
            metrics, weighted_metrics: lists of Keras metrics, called with the
                visible states and the model's prediction of them.
            run_eagerly, steps_per_execution: as in Keras.
            jit_compile: bool or `"auto"`, whether XLA compiles the steps. `"auto"`
                compiles unless the model runs eagerly or under a distribution
                strategy: also on a CPU it makes a step about a third faster, at
                the cost of a second or two at its start.

        Raises:
            ValueError: if the rule is unknown, does not fit the model or belongs
                to another one.
        """
        if loss is not None:
            raise ValueError(
                "Expected no loss: a learning rule takes its place. Received: "
                f"loss={loss!r}. Pass rule=, for example rule='cd'."
            )
        rule = rules.get(rule)
        rule.check(self)
        distributed = self.distribute_strategy.num_replicas_in_sync > 1
        if distributed and (jit_compile is True or steps_per_execution != 1):
            raise ValueError(
                "Expected jit_compile=False (or 'auto') and steps_per_execution=1 "
                "under a distribution strategy: Keras fails with others. Received: "
                f"jit_compile={jit_compile}, steps_per_execution={steps_per_execution}."
            )
        compiled = jit_compile
        if jit_compile == "auto":
            compiled = self.supports_jit and not run_eagerly and not distributed
        super().compile(
            optimizer=optimizer,
            metrics=metrics,
            weighted_metrics=weighted_metrics,
            run_eagerly=run_eagerly,
            steps_per_execution=steps_per_execution,
            jit_compile=compiled,
        )
        self._requested_jit = jit_compile
        self._reports_predictions = bool(metrics or weighted_metrics)
        self.rule = rule
        rule.model = self
        if self.built:
            self._build_training()

    def get_compile_config(self):
        config = super().get_compile_config()
        if not config:
            return config
        for name in _KERAS_LOSS_ARGUMENTS:
            config.pop(name, None)
        own = {"rule": rules.serialize(self.rule), "jit_compile": self._requested_jit}
        return config | own

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))

    def _build_training(self):
        """Makes the variables of the rule and of the optimizer, once."""
        with self.strategy_scope():
            if not self.rule.built:
                self.rule.build(self)
            if not self.optimizer.built:
                self.optimizer.build(self.trainable_variables)

    def strategy_scope(self):
        """Returns the scope of the model's strategy, to make variables in."""
        strategy = self.distribute_strategy
        if tf.distribute.get_strategy() is strategy:
            return tf.name_scope("")
        return strategy.scope()

    def assert_built(self, method):
        """Raises a ValueError if the model has no variables yet."""
        if not self.built:
            raise ValueError(
                f"Expected a built model in {method}(). Received: model "
                f"'{self.name}', which has no variables yet. Pass num_visible= to "
                "the constructor, or call build(), adapt() or fit() first."
            )

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch=0,
        **kwargs,
    ):
        """Trains the model, as `keras.Model.fit` does.

        Arrays are shuffled by a permutation that is a function of the model's
        seed and of `optimizer.iterations`, so that a run resumed at an epoch's
        end (`keras.callbacks.BackupAndRestore`) goes on as if never stopped. For
        a `tf.data.Dataset` see `keras_rbm.datasets.shuffled_batches`.

        Args:
            x: array (N, V), `tf.data.Dataset`, `keras.utils.PyDataset` or
                generator.
            validation_data: the same, without shuffling.
            **kwargs: the other arguments are those of `keras.Model.fit`.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: if the data cannot be states of the model's units, before
                anything is changed.
        """
        self._assert_compile_called("fit")
        if class_weight is not None:
            raise ValueError(
                "Expected no class_weight: a Boltzmann machine has no classes. "
                "Received: class_weight. Pass sample_weight instead."
            )
        if batch_size is not None:
            check_counts(batch_size=batch_size)
        epoch_key = EpochKey()
        if is_array(x):
            x, y, sample_weight = as_arrays(x, y, sample_weight)
            if validation_split and validation_data is None:
                cut = int(len(x) * (1.0 - validation_split))
                parts = (x, y, sample_weight)
                x, y, sample_weight = (p if p is None else p[:cut] for p in parts)
                validation_data = tuple(p if p is None else p[cut:] for p in parts)
            self._prepare((x, y, sample_weight))
            if shuffle:
                parts = x
                if y is not None or sample_weight is not None:
                    parts = (x, () if y is None else y, sample_weight)
                x = shuffled_batches(
                    parts, batch_size or 32, seed=0, iterations=epoch_key
                )
                y = sample_weight = None
            else:
                x, y, sample_weight = with_weights(x, y, sample_weight, batch_size)
            shuffle = False
        else:
            if validation_split:
                raise ValueError(
                    "Expected an array, to split validation data from. Received: "
                    f"validation_split={validation_split} with {type(x).__name__}. "
                    "Pass validation_data."
                )
            batch, x = first_batch(x)
            self._prepare(batch)
            shuffle = shuffle and isinstance(x, keras.utils.PyDataset)
        if validation_data is not None and is_array(validation_data):
            validation_data = self._checked_validation(validation_data, batch_size)
        self._fit_start = int(self.optimizer.iterations.numpy())
        resume = ResumeCheck(initial_epoch)
        return super().fit(
            x,
            y,
            batch_size=batch_size,
            epochs=epochs,
            verbose=verbose,
            callbacks=_extended(callbacks, resume, epoch_key),
            validation_data=validation_data,
            shuffle=shuffle,
            sample_weight=sample_weight,
            initial_epoch=initial_epoch,
            **kwargs,
        )

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        verbose="auto",
        sample_weight=None,
        **kwargs,
    ):
        """Returns the loss and metrics on data, as `keras.Model.evaluate` does."""
        self.assert_built("evaluate")
        if is_array(x) and not kwargs.get("_use_cached_eval_dataset"):
            x, y, sample_weight = as_arrays(x, y, sample_weight)
            self.check_batch(x, y)
            x, y, sample_weight = with_weights(x, y, sample_weight, batch_size)
        return super().evaluate(x, y, batch_size, verbose, sample_weight, **kwargs)

    def predict(self, x, *args, **kwargs):
        """Returns the output for data, as `keras.Model.predict` does."""
        self.assert_built("predict")
        return super().predict(x, *args, **kwargs)

    def _checked_validation(self, data, batch_size):
        data = data if isinstance(data, tuple) else (data,)
        x, y, weight = unpack(data)
        if is_array(x):
            x, y, weight = as_arrays(x, y, weight)
            self.check_batch(x, y)
            x, y, weight = with_weights(x, y, weight, batch_size)
        return (x, y, weight) if is_array(x) else x

    def _prepare(self, batch):
        """Checks a first batch and builds everything that training needs."""
        x, y, _ = unpack(batch)
        self.check_batch(x, y)
        if not self.built:
            self.build_from_batch(x, y)
        self._build_training()

    def build_from_batch(self, x, y):
        """Builds the model for a batch of data."""
        self.build(tuple(x.shape))

    def check_batch(self, x, y):
        """Raises a ValueError unless a batch fits the model; changes nothing."""
        _, visible = self.roles(x, y)
        self.check_visible(visible, "x")

    def check_visible(self, visible, name="x"):
        """Raises a ValueError unless `visible` can be visible states."""
        width = self.kernel.shape[0] if self.built else None
        check_rows(visible, name, width, self.visible.support)

    def visible_rows(self, data, method):
        """Returns data as checked visible states, a float32 tensor (N, V)."""
        self.assert_built(method)
        rows = as_rows(data)
        self.check_visible(rows)
        return rows

    def train_step(self, data):
        x, y, sample_weight = unpack(data)
        features, visible, weights = self._step_inputs(x, y, sample_weight)
        # A pipeline may read `optimizer.iterations`: not before its batch is there.
        with tf.control_dependencies([visible]):
            losses = self.rule.step(self, features, visible, normalized(weights))
        self._loss_tracker.update_state(losses, sample_weight=weights)
        return self._results(features, visible, sample_weight)

    def test_step(self, data):
        x, y, sample_weight = unpack(data)
        features, visible, weights = self._step_inputs(x, y, sample_weight)
        potentials = self.potentials(features)
        losses = self.rule.losses(potentials, visible, self._test_seed())
        self._loss_tracker.update_state(losses, sample_weight=weights)
        return self._results(features, visible, sample_weight)

    def _step_inputs(self, x, y, sample_weight):
        features, visible = self.roles(x, y)
        with tf.init_scope():
            if not self.built:
                self.build_from_batch(x, y)
            self._build_training()
        visible = tf.cast(visible, self.variable_dtype)
        if features is not None:
            features = tf.cast(features, self.variable_dtype)
        if sample_weight is None:
            weights = tf.ones(tf.shape(visible)[0], self.variable_dtype)
        else:
            weights = tf.reshape(tf.cast(sample_weight, self.variable_dtype), [-1])
        return features, visible, weights

    def _test_seed(self):
        """Returns a seed that is new each batch, yet leaves the generator alone."""
        count = tf.cast(tf.convert_to_tensor(self._loss_tracker.count), tf.float32)
        seed = random.fold_in(0, tf.bitcast(count, tf.int32))
        context = tf.distribute.get_replica_context()
        return random.fold_in(seed, context.replica_id_in_sync_group)

    def _results(self, features, visible, sample_weight):
        if not self._reports_predictions:
            return self.get_metrics_result()
        return self.compute_metrics(features, visible, None, sample_weight)

    def update(self, gradients):
        """Descends along gradients given by variable name, plus regularisers."""
        variables = self.trainable_variables
        gradients = [gradients[variable.name] for variable in variables]
        gradients = self._regularized(gradients, variables)
        scale = self.optimizer.scale_loss(1.0)
        if tf.is_tensor(scale) or scale != 1.0:
            gradients = [gradient * scale for gradient in gradients]
        self.optimizer.apply(gradients, variables)

    def _regularized(self, gradients, variables):
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        result = []
        for gradient, variable in zip(gradients, variables, strict=True):
            if variable.regularizer is not None:
                value = tf.convert_to_tensor(variable)
                with tf.GradientTape() as tape:
                    tape.watch(value)
                    penalty = variable.regularizer(value)
                gradient += tape.gradient(penalty, value) / replicas
            result.append(gradient)
        return result

    def next_seed(self):
        """Draws a seed (2,) from the model's generator, different per replica."""
        seed = random.as_seed(self.seed_generator.next())
        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            seed = random.fold_in(seed, context.replica_id_in_sync_group)
        return seed

    def state(self):
        """Returns two dicts of what is saved by name: required and optional."""
        required = {variable.name: variable for variable in self.weights}
        required["seed_generator"] = self.seed_generator.state
        optional = {}
        if self.rule is not None:
            optional = {f"rule.{v.name}": v for v in self.rule.variables}
        return required, optional

    def save_own_variables(self, store):
        """Saves weights, random state and the rule's state under their names."""
        required, optional = self.state()
        save_named(store, required | optional)
        store["fit_start"] = np.array(self._fit_start)

    def load_own_variables(self, store):
        """Restores what `save_own_variables` saved; all shapes are checked first."""
        load_named(store, *self.state())
        if "fit_start" in store.keys():
            self._fit_start = int(np.asarray(store["fit_start"]))


def normalized(weights):
    """Returns weights divided by their total over all replicas."""
    total = tf.reduce_sum(weights)
    context = tf.distribute.get_replica_context()
    if context is not None and context.num_replicas_in_sync > 1:
        total = context.all_reduce("sum", total)
    return tf.math.divide_no_nan(weights, total)


def _extended(callbacks, *own):
    if isinstance(callbacks, keras.callbacks.CallbackList):
        raise TypeError(
            "Expected callbacks as a list. Received: a CallbackList. Pass its "
            "callbacks attribute."
        )
    if isinstance(callbacks, keras.callbacks.Callback):
        callbacks = [callbacks]
    return [*(callbacks or []), *own]
