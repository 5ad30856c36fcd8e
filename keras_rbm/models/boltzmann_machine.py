"""The base class of all models: compiling, fitting and evaluating."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import rules
from keras_rbm.checks import check_counts, check_flags
from keras_rbm.models.rule_model import RuleModel
from keras_rbm.models.workflow.defaults import (
    awaits_rate,
    check_compile_options,
    optimizer_for,
)
from keras_rbm.models.workflow.divergence import Divergence
from keras_rbm.models.workflow.faults import explained
from keras_rbm.models.workflow.first_fit import FirstFit
from keras_rbm.models.workflow.inputs import (
    as_arrays,
    is_array,
    unpack,
    with_weights,
)
from keras_rbm.models.workflow.resume import (
    EpochKey,
    FitStart,
    ResumeCheck,
    extended,
    steps_taken,
)
from keras_rbm.models.workflow.takes_data import TakesData
from keras_rbm.models.workflow.training_data import check_alone, training_data

_KERAS_LOSS_ARGUMENTS = ("loss", "loss_weights", "auto_scale_loss")


class BoltzmannMachine(TakesData, RuleModel):
    """Base class of the models: a `RuleModel` with the Keras workflow around its step.

    Attributes:
        conditional: bool, whether the model has an input x.
        inference: `keras_rbm.inference.Inference` that it predicts with, or `None`.
        kernel_mask: tensor (V, H), 1 where units are connected, or `None` if all are.
    """

    conditional = False
    inference = None
    kernel_mask = None

    def compile(
        self,
        optimizer=None,
        *,
        rule="cd",
        loss=None,
        metrics=None,
        weighted_metrics=None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: bool | str = "auto",
    ) -> None:
        """Configures the model for training.

        Args:
            optimizer: str or `keras.optimizers.Optimizer`; by default Adam
                with a learning rate of 0.03 for 64 visible units, less for more units,
                and a third of that for rules, such as PCD, whose samples must keep up
                with the weights.
            rule: str or `keras_rbm.rules.Rule`. A rule object belongs to one model.
            loss: not supported; the rule takes its place.
            metrics, weighted_metrics: lists of Keras metrics, called with the
                visible states and the model's prediction of them.
            run_eagerly, steps_per_execution: as in Keras.
            jit_compile: bool or `"auto"`, whether XLA compiles the steps: a third
                faster, also on a CPU, after a second or two at the start. `"auto"`
                does so unless the model runs eagerly, under a distribution strategy,
                or with belief propagation, which compiles itself.

        Raises:
            ValueError: if the rule is unknown, does not fit the model, or belongs to
                another model.
        """
        if loss is not None:
            raise ValueError(
                "Expected no loss: a learning rule takes its place. Received: "
                f"loss={loss!r}. Pass rule=, for example rule='cd'."
            )
        modes = run_eagerly, steps_per_execution, jit_compile
        check_compile_options([metrics, weighted_metrics], *modes)
        rule = rules.get(rule)
        self._chooses_rate = optimizer is None
        optimizer = optimizer_for(optimizer)
        self._check_rule(rule, optimizer)
        distributed = self.distribute_strategy.num_replicas_in_sync > 1
        if distributed and (jit_compile is True or steps_per_execution != 1):
            raise ValueError(
                "Expected jit_compile=False (or 'auto') and steps_per_execution=1 "
                "under a distribution strategy: Keras fails with others. Received: "
                f"jit_compile={jit_compile}, steps_per_execution={steps_per_execution}."
            )
        super().compile(
            optimizer=optimizer,
            metrics=metrics,
            weighted_metrics=weighted_metrics,
            run_eagerly=run_eagerly,
            steps_per_execution=steps_per_execution,
            jit_compile=self._wants_jit(jit_compile, rule, run_eagerly),
        )
        self._requested_jit = jit_compile
        self._reports_predictions = bool(metrics or weighted_metrics)
        observers = [
            metric
            for metric in tf.nest.flatten([metrics, weighted_metrics])
            if hasattr(metric, "observe")
        ]
        self._observers = lambda: observers  # Keras would track a list again
        self.rule = rule
        rule.owner = self
        if self.built:
            self._build_training()

    def _check_rule(self, rule, optimizer=None):
        rule.check(self, optimizer)

    def _wants_jit(self, requested, rule, run_eagerly):
        """Returns whether XLA compiles the steps, see `compile`."""
        if requested != "auto":
            return requested
        distributed = self.distribute_strategy.num_replicas_in_sync > 1
        infers = rule.inference_for(self.inference)
        compiles_itself = infers is not None and infers.is_compiled
        eager = run_eagerly or distributed or not self.supports_jit
        return not eager and not compiles_itself

    def get_compile_config(self):
        config = super().get_compile_config()
        if not config:
            return config
        for name in _KERAS_LOSS_ARGUMENTS:
            config.pop(name, None)
        own = {"rule": rules.serialize(self.rule), "jit_compile": self._requested_jit}
        if awaits_rate(self):
            own["optimizer"] = None
        return config | own

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))

    def fit(
        self,
        x=None,
        y=None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose="auto",
        callbacks=None,
        validation_split: float = 0.0,
        validation_data=None,
        shuffle: bool = True,
        class_weight=None,
        sample_weight=None,
        initial_epoch: int = 0,
        **kwargs,
    ) -> keras.callbacks.History:
        """Trains the model, as `keras.Model.fit` does.

        Arrays are shuffled by a permutation that depends only on the model's seed
        and `optimizer.iterations`, so a run resumed at an epoch's end
        (`keras.callbacks.BackupAndRestore`) continues as if never stopped. For
        a `tf.data.Dataset` see `keras_rbm.datasets.shuffled_batches`.

        Args:
            x: array (N, V), `tf.data.Dataset`, `keras.utils.PyDataset` or
                generator; for a conditional model the input (N, X), or pairs.
            y: array (N, V), the visible states of a conditional model.
            validation_data: like x and y, without shuffling.
            **kwargs: the other arguments are those of `keras.Model.fit`.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: if the first batch (for arrays: any row) cannot be states of the
                model's units, before anything is changed; if a later batch cannot, or
                a step has an infinite or NaN loss or gradient: the error names the
                step, which has changed nothing.
        """
        self._assert_compile_called("fit")
        if class_weight is not None:
            raise ValueError(
                "Expected no class_weight: a Boltzmann machine has no classes. "
                "Received: class_weight. Pass sample_weight instead."
            )
        if batch_size is not None:
            check_counts(batch_size=batch_size)
            batch_size = int(batch_size)
        check_counts(0, epochs=epochs, initial_epoch=initial_epoch)
        check_flags(shuffle=shuffle)
        epoch_key = EpochKey()
        data = training_data(
            self, x, y, sample_weight, batch_size, validation_split, validation_data
        )
        self._prepare(*data.start[0][:2])
        data = data.with_checked_validation(self._batch_form())
        if is_array(data.x):
            batch_size = self._batch_size_for(len(data.x), batch_size)
        if shuffle:
            data = data.shuffled(batch_size, epoch_key.read)
        self._initial_epoch = None  # from an earlier backup
        self._fit_start = FitStart(steps_taken(self.optimizer))
        own = [*self._fit_callbacks(data.start), ResumeCheck(initial_epoch), epoch_key]
        x, y, sample_weight = data.for_keras(batch_size)
        with explained(self):
            return super().fit(
                x,
                y,
                batch_size=batch_size,
                epochs=epochs,
                verbose=verbose,
                callbacks=extended(callbacks, *own),
                validation_data=data.validation,
                shuffle=shuffle and isinstance(x, keras.utils.PyDataset),
                sample_weight=sample_weight,
                initial_epoch=initial_epoch,
                **kwargs,
            )

    def _batch_size_for(self, count, wanted):
        return wanted

    def _fit_callbacks(self, batches):
        """Returns the model's own callbacks, given its first batches of data."""
        _, visible = self._split_batch(*batches[0][:2])
        return [FirstFit(batches), Divergence(visible)]

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size: int | None = None,
        verbose="auto",
        sample_weight=None,
        **kwargs,
    ):
        """Returns the loss and metrics on data, as `keras.Model.evaluate` does."""
        self._assert_built("evaluate")
        if batch_size is not None:
            check_counts(batch_size=batch_size)
            batch_size = int(batch_size)
        if kwargs.get("_use_cached_eval_dataset"):
            pass  # in `fit`, which has checked it
        elif is_array(x):
            x, y, sample_weight = as_arrays(x, y, sample_weight)
            self._check_batch(x, y)
            x, y, sample_weight = with_weights(x, y, sample_weight, batch_size)
        else:
            check_alone(x, y)
            if isinstance(x, tf.data.Dataset):
                self._check_batch(*unpack(x.element_spec)[:2])
            x = self._batch_form().checked(x)
        with explained():
            return super().evaluate(x, y, batch_size, verbose, sample_weight, **kwargs)

    def predict(self, x, batch_size: int | None = None, *args, **kwargs) -> np.ndarray:
        """Returns the output for data, as `keras.Model.predict` does."""
        x = self._checked_features(x, "predict", batch_size)
        batch_size = None if batch_size is None else int(batch_size)
        with explained():
            return super().predict(x, batch_size, *args, **kwargs)

    def train_on_batch(self, x, y=None, sample_weight=None, **kwargs):
        """Takes one step, as `keras.Model.train_on_batch` does."""
        self._assert_compile_called("train_on_batch")
        x, y, sample_weight = self._checked_batch(x, y, sample_weight)
        with explained(self):
            return super().train_on_batch(x, y, sample_weight, **kwargs)

    def test_on_batch(self, x, y=None, sample_weight=None, **kwargs):
        """Returns the loss of a batch, as `keras.Model.test_on_batch` does."""
        self._assert_compile_called("test_on_batch")
        x, y, sample_weight = self._checked_batch(x, y, sample_weight)
        return super().test_on_batch(x, y, sample_weight, **kwargs)

    def predict_on_batch(self, x):
        """Returns the output for a batch, as `keras.Model.predict_on_batch` does."""
        return super().predict_on_batch(self._checked_feature_batch(x))

    def _prepare(self, x, y):
        """Builds everything that training needs, for batches like this one."""
        if not self.built:
            self._build_from_batch(x, y)
        self._build_training()

    def _build_from_batch(self, x, y):
        self.build(tuple(x.shape))
