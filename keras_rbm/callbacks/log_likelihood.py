"""The log-likelihood during training."""

import keras
import tensorflow as tf

from keras_rbm import inference
from keras_rbm.callbacks.checks import check_model, check_states
from keras_rbm.checks import check_counts
from keras_rbm.models.workflow.rows import as_rows


class LogLikelihood(keras.callbacks.Callback):
    """Writes an estimate of the mean log-likelihood into the logs.

    `log_likelihood = mean_n -F(v_n) - log Z`, in nats per example, with log Z by
    annealing, and `log_likelihood_lower` and `log_likelihood_upper`, the ends of the
    interval that follows from that of log Z. An end at infinity says that the error is
    not known: take more `betas`, or `method="bidirectional"`. Of a deep model the score
    is `log_likelihood_bound`, less than the likelihood by what mean field misses.

    The keys are written in epochs `every`, `2 * every`, … only. `History` keeps the
    values that there are; `keras.callbacks.CSVLogger` settles its columns in the
    first epoch, so there take `every=1`.
    `EarlyStopping(monitor="log_likelihood", mode="max", ...)` also needs `every=1`.

    Args:
        data: array (N, V) or `tf.data.Dataset`, usually validation examples. Read
            once, when the callback is made.
        every: int ≥ 1, epochs from one estimate to the next.
        num_chains: int ≥ 2, chains of the annealing.
        betas: see `keras_rbm.inference.temperatures`.
        seed: int; the same for every estimate, so that their differences are the
            model's rather than the sampler's.
        name: str, first part of the keys, e.g. `"val_log_likelihood"`.
        method: str, of `log_partition`; `"bidirectional"` takes twice the time and sees
            more of the model.

    Raises:
        TypeError: if the data are no array of numbers or dataset.
        ValueError: if a count or `betas` is out of range or `name` empty; as
            training begins, if the data cannot be states of the model's visible
            units.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (60, 9)).astype("float32")
    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.compile(keras.optimizers.SGD(0.1))
    >>> score = keras_rbm.callbacks.LogLikelihood(data[30:], every=2, betas=100)
    >>> history = rbm.fit(data[:30], epochs=4, callbacks=[score], verbose=0)
    >>> len(history.history["log_likelihood"])
    2
    """

    def __init__(
        self,
        data,
        every=1,
        num_chains=100,
        betas=None,
        seed=0,
        name="log_likelihood",
        method="ais",
    ):
        super().__init__()
        check_counts(1, every=every)
        check_counts(2, num_chains=num_chains)
        if betas is not None:
            inference.temperatures(betas)
        if method not in inference.METHODS:
            raise ValueError(
                f"Expected method one of {inference.METHODS}. Received: {method!r}."
            )
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"Expected a str, the first part of the logs' keys. Received: "
                f"name={name!r}."
            )
        self.data = as_rows(data)
        self.every = every
        self.num_chains = num_chains
        self.betas = betas
        self.seed = seed
        self.name = name
        self.method = method

    def on_train_begin(self, logs=None):
        check_model(self, self.model, self._energy(), "log_partition")
        check_states(self.model, self.data, "data")

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every or logs is None:
            return
        log_partition = self.model.log_partition(
            self.method,
            num_chains=self.num_chains,
            betas=self.betas,
            seed=self.seed,
        )
        energy = getattr(self.model, self._energy())
        score = -float(tf.reduce_mean(tf.cast(energy(self.data), tf.float64)))
        logs[self.name] = score - float(log_partition.value)
        logs[f"{self.name}_lower"] = score - float(log_partition.upper)
        logs[f"{self.name}_upper"] = score - float(log_partition.lower)

    def _energy(self):
        bound = "variational_free_energy"  # where there is no exact one
        return bound if hasattr(self.model, bound) else "free_energy"
