"""The deep belief network."""

import inspect
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random, units
from keras_rbm._checks import check_counts, seed_number
from keras_rbm.datasets.in_memory import as_dense
from keras_rbm.inference import LogPartition, gibbs
from keras_rbm.inference.potentials import log_conditional
from keras_rbm.inference.traces import full_precision
from keras_rbm.models.boltzmann_machine import BoltzmannMachine
from keras_rbm.models.data.batches import as_keras_takes
from keras_rbm.models.data.rows import Data, as_values, map_rows, row_chunks, unpack
from keras_rbm.models.deep.fine_tuning import classifier
from keras_rbm.models.deep.greedy_training import compile_each, evaluate_each, fit_each
from keras_rbm.models.files import endpoints_of_features
from keras_rbm.models.infinite_rbm import InfiniteRBM
from keras_rbm.models.layer_variables import check_no_input_shape
from keras_rbm.models.rbm import RBM
from keras_rbm.rules.learning_rule import Rule


@keras.saving.register_keras_serializable("keras_rbm")
class DBN(keras.Model):
    """Deep belief network: stacked RBMs, each trained on the features of the last [1].

    The top RBM is a prior of its visible layer's states, and the RBMs below it lead
    down: for three RBMs, `p(v, h_1, h_2) = p(v | h_1) p(h_1 | h_2) p_top(h_2)`. The way
    up, `q(h_1 | v) q(h_2 | h_1)`, approximates the posterior. `fit` trains
    greedily from below. An upper RBM learns from states of the layer below, which are
    drawn again in every epoch: this raises the bound `log_likelihood_bound`.

    Called on data, the model returns the features of the top, `E[h | v]` layer by
    layer, (B, hidden units of the top).

    Args:
        rbms: list of `RBM`, from the data upwards, or of ints ≥ 1, for RBMs with that
            many binary hidden units. Those above the first are built for the width
            below them. They stay usable on their own, `dbn.rbms[0]`.
        seed: int or `None`, the seed of the first RBM that is created here; the second
            gets `seed + 1`, and so on.
        **kwargs: `name`, `dtype`, `trainable`, as for `keras.Model`. RBMs that are
            created here have the `dtype`, too.

    Raises:
        ValueError: if the list is empty, or a visible layer differs from the hidden
            layer below it in width or unit type.
        TypeError: if an element is not an `RBM`.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (200, 6)).astype("float32")
    >>> dbn = keras_rbm.DBN([keras_rbm.RBM(5, seed=0), keras_rbm.RBM(4, seed=1)])
    >>> dbn.compile(keras.optimizers.SGD(0.05), rule="cd")
    >>> history = dbn.fit(data, epochs=[3, 2], batch_size=50, verbose=0)
    >>> history.history["rbm"]
    [0, 0, 0, 1, 1]
    >>> dbn.predict(data, verbose=0).shape
    (200, 4)
    >>> classifier = dbn.to_classifier(num_classes=10)

    References:
        1. Hinton, Osindero, Teh. A fast learning algorithm for deep belief nets.
           Neural Computation, 2006.
    """

    def __init__(
        self, rbms: Sequence[RBM | int], *, seed: int | None = None, **kwargs: Any
    ) -> None:
        check_no_input_shape(kwargs)
        rbms = _checked(_made(rbms, seed, kwargs.get("dtype")))
        super().__init__(**kwargs)
        self.autocast = False  # as in its RBMs: bfloat16 has no 257
        self.rbms: list[RBM] = rbms
        for below, rbm in zip(rbms, rbms[1:], strict=False):
            rbm.build((None, below.hidden_units))
        if rbms[0].built:
            self.build((None, rbms[0].num_visible))

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.rbms[0].build(input_shape)
        self.input_spec = self.rbms[0].input_spec
        self.built = True

    def compile(
        self,
        optimizer: str
        | keras.optimizers.Optimizer
        | Sequence[str | keras.optimizers.Optimizer]
        | None = None,
        *,
        rule: str | Rule | Sequence[str | Rule] | None = None,
        **kwargs: Any,
    ) -> None:
        """Configures every RBM for training, as `RBM.compile` does.

        RBMs that were compiled on their own need not be compiled here. `fit` compiles
        those that have not been with the defaults.

        Args:
            optimizer: as for `RBM.compile`; each RBM gets a copy. Or a list, one for
                each. A pipeline that reads an optimizer's iterations must read those
                of a copy: `dbn.rbms[0].optimizer.iterations`.
            rule: str or learning rule, likewise; by default that of `RBM.compile`.
            **kwargs: other arguments of `RBM.compile`.

        Raises:
            ValueError: if a list is not as long as the stack.
        """
        compile_each(self.rbms, optimizer, rule, kwargs)

    def adapt(self, data: Data, sample_weight: ArrayLike | None = None) -> None:
        """Fits the first RBM's visible units to data, as `RBM.adapt` does."""
        self.rbms[0].adapt(data, sample_weight)
        self.build((None, self.rbms[0].num_visible))

    def fit(
        self, x: ArrayLike | tf.data.Dataset, **kwargs: Any
    ) -> keras.callbacks.History:
        """Trains all RBMs, from below: greedy training is how a DBN learns.

        Args:
            x: array (N, V), or batches as `RBM.fit` takes them.
            **kwargs: `epochs`, `batch_size`, `validation_data`, `callbacks`,
                `sample_weight`, `verbose`, …: see `pretrain`.

        Returns:
            `keras.callbacks.History` of the epochs of all RBMs in a row; its log `rbm`
            says which one was trained. A log that an epoch does not have is NaN there.

        Raises:
            ValueError, TypeError: as `pretrain`.
        """
        others = kwargs.keys() - inspect.signature(self.pretrain).parameters.keys()
        if others:
            raise TypeError(
                f"Expected arguments of pretrain. Received: {', '.join(sorted(others))}"
                ". Each RBM counts its own epochs: skip those that are done, such as "
                "by epochs=[0, 20], or call fit of one of dbn.rbms."
            )
        record = _Record(self.rbms)
        self._train(x, [record], **kwargs)
        return record.history_of(self)

    def pretrain(
        self,
        x: ArrayLike | tf.data.Dataset,
        *,
        epochs: int | Sequence[int] = 1,
        batch_size: int | None = None,
        validation_data: ArrayLike | tf.data.Dataset | None = None,
        validation_split: float = 0.0,
        callbacks: Sequence[keras.callbacks.Callback]
        | Callable[[int], Sequence[keras.callbacks.Callback]]
        | None = None,
        sample_weight: ArrayLike | None = None,
        verbose: int | str = "auto",
    ) -> list[keras.callbacks.History | None]:
        """Trains the RBMs one after the other, from below, as `fit` does.

        An RBM above the first whose visible biases are still all 0 starts at the base
        rate of its features (`RBM.adapt`). For a stack that was loaded from a file,
        skip the RBMs that are done: `epochs=[0, 20]`. In a script that may be
        interrupted and run again, give each RBM a backup that is kept when it is done:

        ```python
        def backup(index):
            folder = f"out/backup_{index}"
            return [keras.callbacks.BackupAndRestore(folder, delete_checkpoint=False)]

        dbn.pretrain(images, epochs=[50, 20], callbacks=backup)
        ```

        Args:
            x: array (N, V), or a `tf.data.Dataset` of batches as `RBM.fit` takes them.
            epochs: int, or a list with one for each RBM; 0 leaves an RBM unchanged.
            batch_size: int, for arrays.
            validation_data: array or batches, like x.
            validation_split: as for `RBM.fit`.
            callbacks: list of callbacks for the training of every RBM, or a function
                of the RBM's index that returns such a list, which callbacks need that
                write files, or hold data of one RBM as `LogLikelihood` does.
            sample_weight: array (N,), for arrays.
            verbose: as in Keras; the layer is named before it is trained.

        Returns:
            list of `keras.callbacks.History`, `None` for an RBM that was skipped.

        Raises:
            ValueError, TypeError: as in `RBM.fit`; nothing is trained then, unless a
                callback refuses an upper RBM.
        """
        return self._train(
            x,
            epochs=epochs,
            batch_size=batch_size,
            validation_data=validation_data,
            validation_split=validation_split,
            callbacks=callbacks,
            sample_weight=sample_weight,
            verbose=verbose,
        )

    def _train(self, x, last=(), **kwargs):
        histories = fit_each(self.rbms, x, last=last, **kwargs)
        self.build((None, self.rbms[0].num_visible))
        return histories

    def evaluate(
        self, x: ArrayLike | tf.data.Dataset, *, verbose: int | str = "auto"
    ) -> list[float]:
        """Returns a list of each RBM's loss on the features that it learns from.

        Args:
            x: array (N, V), or a `tf.data.Dataset` of batches.
            verbose: as in Keras.
        """
        return evaluate_each(self.rbms, x, verbose)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        top = self.rbms[-1]
        return tf.cast(self._way_up_in_means(inputs), top.compute_dtype)

    def _way_up_in_means(self, inputs):
        below = self.rbms[0]
        means = below.visible.encode(tf.cast(inputs, below.variable_dtype))
        for rbm in self.rbms:
            means = rbm._features(rbm._natural_of_mean(means))
        return means

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return self.rbms[-1].compute_output_shape(input_shape)

    def predict(
        self, x: Data, batch_size: int | None = None, *args: Any, **kwargs: Any
    ) -> np.ndarray:
        """Returns the features of the top for data, as `keras.Model.predict` does."""
        self._assert_built("predict")
        if batch_size is not None:
            check_counts(batch_size=batch_size)
            batch_size = int(batch_size)
        x = self.rbms[0].form.checked_calls(x)
        x, _, _ = as_keras_takes(x, None, None, batch_size)
        return super().predict(x, batch_size, *args, **kwargs)

    def predict_step(self, data: Any) -> tf.Tensor:
        x, _, _ = unpack(data)
        below = self.rbms[0]
        rows = tf.cast(x, below.variable_dtype)
        below.guard.accept([below.form.called.is_sound(rows)], rows)
        return self(x)

    def make_predict_function(self, force: bool = False) -> None:
        if force or self.predict_function is None:
            super().make_predict_function(force)
            below = self.rbms[0]
            self.predict_function = below.guard.read(self.predict_function, below)

    def predict_on_batch(self, x: ArrayLike) -> np.ndarray:
        """Returns the features of the top, as `keras.Model.predict_on_batch` does."""
        self._assert_built("predict_on_batch")
        x = as_values(x)
        self.rbms[0].form.called.check(x)
        return super().predict_on_batch(as_dense(x))

    def __call__(self, inputs, *args, **kwargs):
        """Returns the features of the top for a batch, which may be sparse."""
        return super().__call__(as_dense(inputs), *args, **kwargs)

    def _assert_built(self, method):
        """Raises a ValueError if the model has no variables yet."""
        self.rbms[0]._assert_built(method)
        if not self.built:  # the first RBM was built on its own
            self.build((None, self.rbms[0].num_visible))

    def _endpoints(self):
        """Returns the exported model's functions: a dict of name to `Endpoint`."""
        width = self.rbms[0].num_visible
        return endpoints_of_features(self.call, self._reconstruct, self.sample, width)

    def reconstruct(self, x: ArrayLike) -> tf.Tensor:
        """Returns the expected visible state after one way up and down, in means.

        Args:
            x: array (B, V).

        Returns:
            tensor (B, V); for categorical units the probabilities, q columns per unit.
        """
        self._assert_built("reconstruct")
        return map_rows(self._reconstruct, self.rbms[0].form.states(x))

    def _reconstruct(self, visible):
        states = self._way_up_in_means(visible)
        for rbm in reversed(self.rbms):
            potentials = rbm.potentials()
            natural = potentials.visible_natural_of_mean(states)
            states = potentials.visible.mean(natural)
        return states

    def sample(
        self,
        num_samples: int = 1,
        *,
        steps: int = 1000,
        seed: int | None = None,
        **kwargs: Any,
    ) -> tf.Tensor:
        """Draws visible states: a chain in the top RBM, then one way down.

        Args:
            num_samples: int ≥ 1, number of independent chains.
            steps: int ≥ 0, sweeps of each chain.
            seed: int; by default drawn from the top RBM's generator.
            **kwargs: `method`, `betas`, `initial_visible` of the chains, as in
                `RBM.sample` of the top RBM.

        Returns:
            tensor (num_samples, V).
        """
        self._assert_built("sample")
        top = self.rbms[-1]
        before = tf.identity(top.seed_generator.state)
        seed = top._next_seed() if seed is None else random.as_seed(seed)
        try:
            states = top.sample(num_samples, steps=steps, seed=seed, **kwargs)
        except (TypeError, ValueError):
            top.seed_generator.state.assign(before)
            raise
        down = random.fold_in(seed, -2)
        for level, rbm in reversed(list(enumerate(self.rbms[:-1]))):
            fresh = random.fold_in(down, level)
            states = gibbs.sample_visible_given_hidden(rbm.potentials(), states, fresh)
        return states

    def log_likelihood_bound(
        self,
        x: ArrayLike,
        log_partition: ArrayLike | LogPartition | str | None = None,
        *,
        num_samples: int = 10,
        seed: int = 0,
    ) -> tf.Tensor:
        """Estimates the variational lower bound of `log p(v)`.

        `E_q[log p(v | h_1) - log q(h_1 | v) + log p_top(h_1)]` for two RBMs, the mean
        over samples of the way up. It is tight if q is the posterior.

        Args:
            x: array (B, V).
            log_partition: of the top RBM, as in `RBM.log_likelihood` (by annealed
                importance sampling the bound is optimistic).
            num_samples: int ≥ 1, samples of the way up for each example.
            seed: int.

        Returns:
            tensor (B,), nats, float64: unbiased up to the error of log Z.

        References:
            1. Salakhutdinov, Murray. On the quantitative analysis of deep belief
               networks. ICML 2008.
        """
        check_counts(num_samples=num_samples)
        values = self.rbms[0]._visible_states(x, "log_likelihood_bound")
        top = self.rbms[-1]
        log_partition = top._log_partition_value(log_partition)
        bounds = []
        for part, visible in enumerate(row_chunks(values)):
            fresh = random.fold_in(seed, -part) if part else seed
            bound = tf.zeros(tf.shape(visible)[0], tf.float64)
            for index in range(num_samples):
                states, gain = self._way_up(visible, random.fold_in(fresh, index))
                bound += gain + top.log_likelihood(states, log_partition)
            bounds.append(bound / num_samples)
        return tf.concat(bounds, 0)

    @full_precision()
    def _way_up(self, states, seed):
        """Returns the top RBM's visible states, and log p - log q of layers below."""
        gain = tf.zeros(tf.shape(states)[0], tf.float64)
        for level, rbm in enumerate(self.rbms[:-1]):
            potentials = rbm.potentials(dtype=rbm.variable_dtype)
            hidden = gibbs.sample_hidden_given_visible(
                potentials, states, random.fold_in(seed, level)
            )
            down = potentials.visible_natural(hidden)
            up = potentials.hidden_natural(states)
            difference = log_conditional(potentials.visible, states, down)
            difference -= log_conditional(potentials.hidden, hidden, up)
            gain += tf.cast(difference, tf.float64)
            states = hidden
        return states, gain

    def to_classifier(
        self, num_classes: int, *, dropout: float = 0.0
    ) -> keras.Sequential:
        """Returns a feed-forward network that starts with the stack's weights.

        Args:
            num_classes: int ≥ 2.
            dropout: float in [0, 1), share of units dropped before each layer.

        Returns:
            `keras.Sequential` of `Dense` layers, a copy: sigmoid layers for the RBMs'
            hidden units, and a softmax. Compile and fit it like any classifier.

        Raises:
            ValueError: if a hidden layer is not binary, or the model is not built.
        """
        self._assert_built("to_classifier")
        return classifier(self.rbms, num_classes, dropout)

    save = BoltzmannMachine.save
    save_weights = BoltzmannMachine.save_weights
    load_weights = BoltzmannMachine.load_weights
    export = BoltzmannMachine.export
    summary = BoltzmannMachine.summary

    def get_config(self) -> dict[str, Any]:
        rbms = [keras.saving.serialize_keras_object(rbm) for rbm in self.rbms]
        for rbm in rbms:  # so that `load_model(compile=False)` is obeyed
            rbm.pop("compile_config", None)
        return super().get_config() | {"rbms": rbms}

    def get_compile_config(self) -> dict[str, Any]:
        return {"rbms": [rbm.get_compile_config() for rbm in self.rbms]}

    def compile_from_config(self, config: dict[str, Any]) -> None:
        for rbm, own in zip(self.rbms, config["rbms"], strict=True):
            if own:
                rbm.compile_from_config(own)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "DBN":
        rbms = [keras.saving.deserialize_keras_object(rbm) for rbm in config["rbms"]]
        return cls(rbms, **{k: v for k, v in config.items() if k != "rbms"})


class _Record(keras.callbacks.Callback):
    """Keeps the logs of each epoch of the RBMs, in a row."""

    def __init__(self, rbms):
        super().__init__()
        self._rbms, self._epochs = rbms, []

    def on_epoch_end(self, epoch, logs=None):
        number = next(i for i, rbm in enumerate(self._rbms) if rbm is self.model)
        self._epochs.append({"rbm": number} | (logs or {}))

    def history_of(self, model):
        """Returns the `History` of all epochs."""
        history = keras.callbacks.History()
        history.set_model(model)
        history.epoch = list(range(len(self._epochs)))
        names = dict.fromkeys(name for logs in self._epochs for name in logs)
        history.history = {
            name: [logs.get(name, math.nan) for logs in self._epochs] for name in names
        }
        return history


def _made(rbms, seed, dtype):
    """Returns the list with numbers of hidden units replaced by RBMs."""
    if not isinstance(rbms, (list, tuple)):
        return rbms
    seed = seed_number(seed)
    seeds = [None if seed is None else seed + level for level in range(len(rbms))]
    return [
        RBM(rbm, seed=own, dtype=dtype) if isinstance(rbm, numbers.Integral) else rbm  # type: ignore[arg-type]
        for rbm, own in zip(rbms, seeds, strict=True)
    ]


def _checked(rbms):
    """Returns the list of RBMs; raises an error unless they can be stacked."""
    if not isinstance(rbms, (list, tuple)) or not all(
        isinstance(rbm, RBM) for rbm in rbms
    ):
        raise TypeError(
            "Expected a list of RBM, or of numbers of hidden units. Received: "
            f"{rbms!r}."
        )
    if not rbms or len({id(rbm) for rbm in rbms}) < len(rbms):
        raise ValueError(
            f"Expected at least one RBM, each only once. Received: {len(rbms)} RBMs."
        )
    for rbm in rbms:
        if isinstance(rbm, InfiniteRBM):
            raise TypeError(
                "Expected RBMs of a fixed size. Received: InfiniteRBM "
                f"'{rbm.name}'. Pass its to_rbm()."
            )
    for below, rbm in zip(rbms, rbms[1:], strict=False):
        width = rbm.num_visible
        if width not in (None, below.hidden_units):
            raise ValueError(
                f"Expected an RBM with {below.hidden_units} visible units on one with "
                f"{below.hidden_units} hidden units. Received: '{rbm.name}' with "
                f"{width}."
            )
        if below.hidden.hidden_only:
            raise ValueError(
                "Expected hidden units that can be visible, too, below another RBM. "
                f"Received: '{below.name}' with hidden={below.hidden!r}. Use "
                "hidden='gaussian', or such units at the top only."
            )
        if units.serialize(rbm.visible) != units.serialize(below.hidden):
            raise ValueError(
                f"Expected visible units like the hidden units below, {below.hidden!r}."
                f" Received: '{rbm.name}' with visible={rbm.visible!r}. Set its "
                "visible=."
            )
    return list(rbms)
