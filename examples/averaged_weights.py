"""The likelihood of a model in training, and that of the average of its weights.

    python examples/averaged_weights.py
    python examples/averaged_weights.py --dataset mnist --hidden 200 --epochs 20

Steps are noisy, and noise in the weights gives mass to states that are like no data. It
ends where the learning rate does. `keras.callbacks.SwapEMAWeights` shows, at each
moment, the average of the last weights. Prints the log-likelihood of the validation set
by either, for four epochs.
"""

import argparse

import keras
from keras.callbacks import SwapEMAWeights

import keras_rbm as kr


def main():
    args = parse_arguments()
    train, validation = (
        kr.datasets.load(args.dataset, split, binarize="sample", as_numpy=True)
        for split in ("train", "validation")
    )

    def curve(**options):
        rbm = kr.RBM(args.hidden, seed=0)
        rate = kr.optimizers.FallingRate(args.learning_rate)
        optimizer = keras.optimizers.Adam(rate, beta_1=0.5, **options)
        rbm.compile(optimizer)
        likelihood = kr.callbacks.LogLikelihood(validation, every=args.epochs // 4)
        callbacks = [SwapEMAWeights(swap_on_epoch=True)] if options else []
        callbacks.append(likelihood)
        history = rbm.fit(train, epochs=args.epochs, verbose=0, callbacks=callbacks)
        return history.history["log_likelihood"]

    weights = curve()
    averages = curve(use_ema=True, ema_momentum=args.momentum)
    print("epoch   weights   their average")
    for number, values in enumerate(zip(weights, averages, strict=True), 1):
        epoch = number * (args.epochs // 4)
        print("{:5}  {:8.2f}  {:14.2f}".format(epoch, *values))


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--learning-rate", type=float, default=0.03)
    parser.add_argument("--momentum", type=float, default=0.99)
    return parser.parse_args()


if __name__ == "__main__":
    main()
