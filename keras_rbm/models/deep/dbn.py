"""The deep belief network."""

import numbers

import keras

from keras_rbm import units
from keras_rbm.checks import seed_number
from keras_rbm.models.deep.fine_tuning import classifier
from keras_rbm.models.deep.greedy_training import compile_each, evaluate_each, fit_each
from keras_rbm.models.deep.stacked_model import StackedModel
from keras_rbm.models.rbm import RBM


@keras.saving.register_keras_serializable("keras_rbm")
class DBN(StackedModel):
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
    >>> histories = dbn.fit(data, epochs=[3, 2], batch_size=50, verbose=0)
    >>> [len(history.epoch) for history in histories]
    [3, 2]
    >>> dbn.predict(data, verbose=0).shape
    (200, 4)
    >>> classifier = dbn.to_classifier(num_classes=10)

    References:
        1. Hinton, Osindero, Teh. A fast learning algorithm for deep belief nets.
           Neural Computation, 2006.
    """

    def __init__(self, rbms: list[RBM | int], *, seed: int | None = None, **kwargs):
        rbms = _checked(_made(rbms, seed, kwargs.get("dtype")))
        super().__init__(**kwargs)
        self.rbms = rbms
        for below, rbm in zip(rbms, rbms[1:], strict=False):
            rbm.build((None, below.hidden_units))
        if rbms[0].built:
            self.build((None, rbms[0]._visible_width))

    def build(self, input_shape):
        self.rbms[0].build(input_shape)
        self.input_spec = self.rbms[0].input_spec
        self.built = True

    def compile(self, optimizer=None, *, rule="cd", **kwargs) -> None:
        """Configures every RBM for training, as `RBM.compile` does.

        RBMs that were compiled on their own need not be compiled here. `fit` compiles
        those that have not been with the defaults.

        Args:
            optimizer: as for `RBM.compile`; each RBM gets a copy. Or a list, one for
                each. A pipeline that reads an optimizer's iterations must read those
                of a copy: `dbn.rbms[0].optimizer.iterations`.
            rule: str or learning rule, likewise.
            **kwargs: other arguments of `RBM.compile`.

        Raises:
            ValueError: if a list is not as long as the stack.
        """
        compile_each(self.rbms, optimizer, rule, kwargs)

    def adapt(self, data) -> None:
        """Fits the first RBM's visible units to data, as `RBM.adapt` does."""
        self.rbms[0].adapt(data)
        self.build((None, self.rbms[0]._visible_width))

    def fit(
        self,
        x,
        *,
        epochs: int | list[int] = 1,
        batch_size: int | None = None,
        validation_data=None,
        callbacks=None,
        sample_weight=None,
        verbose="auto",
    ) -> list[keras.callbacks.History | None]:
        """Trains the RBMs one after the other, from below.

        An RBM above the first whose visible biases are still all 0 starts at the base
        rate of its features (`RBM.adapt`). For a stack that was loaded from a file,
        skip the RBMs that are done: `epochs=[0, 20]`. In a script that may be
        interrupted and run again, give each RBM a backup that is kept when it is done:

        ```python
        def backup(index):
            folder = f"out/backup_{index}"
            return [keras.callbacks.BackupAndRestore(folder, delete_checkpoint=False)]

        dbn.fit(images, epochs=[50, 20], callbacks=backup)
        ```

        Args:
            x: array (N, V), or a `tf.data.Dataset` of batches.
            epochs: int, or a list with one for each RBM; 0 leaves an RBM unchanged.
            batch_size: int, for arrays.
            validation_data: array or dataset, like x.
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
        for rbm in self.rbms:
            if not rbm.compiled:
                rbm.compile()
        histories = fit_each(
            self.rbms,
            x,
            epochs=epochs,
            batch_size=batch_size,
            validation_data=validation_data,
            callbacks=callbacks,
            sample_weight=sample_weight,
            verbose=verbose,
        )
        self.build((None, self.rbms[0]._visible_width))
        return histories

    def evaluate(self, x, *, verbose="auto"):
        """Returns a list of each RBM's loss on the features that it learns from.

        Args:
            x: array (N, V), or a `tf.data.Dataset` of batches.
            verbose: as in Keras.
        """
        return evaluate_each(self.rbms, x, verbose)

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

    def get_config(self):
        rbms = [keras.saving.serialize_keras_object(rbm) for rbm in self.rbms]
        for rbm in rbms:  # so that `load_model(compile=False)` is obeyed
            rbm.pop("compile_config", None)
        return super().get_config() | {"rbms": rbms}

    def get_compile_config(self):
        return {"rbms": [rbm.get_compile_config() for rbm in self.rbms]}

    def compile_from_config(self, config):
        for rbm, own in zip(self.rbms, config["rbms"], strict=True):
            if own:
                rbm.compile_from_config(own)

    @classmethod
    def from_config(cls, config):
        rbms = [keras.saving.deserialize_keras_object(rbm) for rbm in config["rbms"]]
        return cls(rbms, **{k: v for k, v in config.items() if k != "rbms"})


def _made(rbms, seed, dtype):
    """Returns the list with numbers of hidden units replaced by RBMs."""
    if not isinstance(rbms, (list, tuple)):
        return rbms
    seed = seed_number(seed)
    seeds = [None if seed is None else seed + level for level in range(len(rbms))]
    return [
        RBM(rbm, seed=own, dtype=dtype) if isinstance(rbm, numbers.Integral) else rbm
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
    for below, rbm in zip(rbms, rbms[1:], strict=False):
        width = rbm.num_visible or rbm._visible_width
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
