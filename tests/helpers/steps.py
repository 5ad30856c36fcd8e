"""Learning rules: a short fit, and steps without one."""

import keras

from keras_rbm import RBM, random
from keras_rbm.rules import Step
from keras_rbm.rules.forward_pass import ForwardPass


def fitted_by(rule, data, epochs=3):
    """Returns an RBM that has learned by a rule, with a momentum."""
    rbm = RBM(4, num_visible=data.shape[1], seed=1)
    rbm.adapt(data)
    rbm.compile(keras.optimizers.SGD(0.1, momentum=0.5), rule=rule)
    rbm.fit(data, batch_size=10, epochs=epochs, verbose=0)
    return rbm


def step_of(potentials, visible, weights=None, seed=0, model=None, features=None):
    """Returns the `Step` of a batch, as a model would hand it to its rule."""
    fields = {"features": features}
    if model is not None:
        fields |= {"inference": model.inference, "learner": model.learner}
    return Step.of(potentials, visible, weights, seed, **fields)


def evaluated_losses(model, potentials, visible, seed=0):
    """Returns losses and prediction of a batch that is evaluated."""
    step = step_of(potentials, visible, seed=seed, model=model)
    return model.rule.losses(step._replace(loss_seed=step.root_seed))


def gradients_of(model, positive, negative, features=None):
    """Returns the gradients of a model's variables, by name, given two phases."""
    forward_pass = ForwardPass(model, features)
    of_potentials = forward_pass.potentials.gradients(positive, negative)
    gradients = forward_pass.gradients(of_potentials)
    names = [variable.name for variable in model.trainable_variables]
    return dict(zip(names, gradients, strict=True))


def take_step(model, visible, weights, features=None):
    """Lets a compiled model take one step, and returns the `Phases`."""
    seed = model._next_seed()
    loss_seed = random.fold_in(seed, 0)
    step = model._step(
        features,
        visible,
        None,
        weights,
        seed,
        ForwardPass(model, features),
        loss_seed=loss_seed,
    )
    phases = model.rule.phases(step)
    model.rule.update(step, phases)
    return phases
