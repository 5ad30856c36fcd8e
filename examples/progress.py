"""Ten lines of progress for a training, instead of one an epoch."""

import keras


class Progress(keras.callbacks.Callback):
    """Prints a line for every tenth of the training."""

    def on_epoch_end(self, epoch, logs=None):
        done, epochs = epoch + 1, self.params["epochs"]
        if done * 10 // epochs > epoch * 10 // epochs:
            values = "  ".join(f"{k} {v:.4g}" for k, v in logs.items())
            print(f"epoch {done:3}/{epochs}  {values}", flush=True)


if __name__ == "__main__":
    raise SystemExit("A part of the scripts here: see README.md.")
