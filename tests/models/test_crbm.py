"""The conditional RBM against enumeration, and where its inference comes from."""

import numpy as np
import pytest
from brute_force import Enumerated
from same import refused
from small_models import binary, compiled, fitted, randomized

from keras_rbm import CRBM, inference

X, Y = binary(34, 5), binary(34, 6, seed=1)


def make(infer="sum_product", scale=1.0, hidden_units=4):
    sizes = {"num_visible": 6, "num_features": 5, "seed": 0}
    return randomized(CRBM(hidden_units, inference=infer, **sizes), scale)


def by_likelihood(crbm):
    return compiled(crbm, "sgd", rule="maximum_likelihood")


def models_of(crbm, x):
    """Returns each example's RBM, enumerated."""
    potentials = crbm.potentials(x)
    rows = zip(potentials.visible_bias, potentials.hidden_bias, strict=True)
    return [Enumerated(inference.Potentials(potentials.kernel, b, c)) for b, c in rows]


def test_potentials_are_the_definition():
    crbm = make()
    kernel, up, down = crbm.kernel.numpy(), crbm.hidden_kernel, crbm.visible_kernel
    energy = -np.sum(Y * (X @ down + crbm.visible_bias), 1)
    energy -= np.logaddexp(0, Y @ kernel + X @ up + crbm.hidden_bias).sum(1)
    np.testing.assert_allclose(crbm.free_energy(X[:3], Y[:3]), energy[:3], rtol=1e-5)


def test_exact_prediction_and_likelihood():
    crbm = make("exact")
    truth = models_of(crbm, X)
    marginals = [model.moments()[1] for model in truth]
    np.testing.assert_allclose(crbm.predict(X, verbose=0), marginals, atol=1e-5)
    log_p = [
        np.log(model.p_visible[(model.v == v).all(1)][0])
        for model, v in zip(truth, Y, strict=True)
    ]
    exact = crbm.log_likelihood(X, Y, "exact")
    np.testing.assert_allclose(exact, log_p, rtol=1e-5)


def test_log_partition_methods():
    crbm, x = make(scale=0.5), X[:8]
    truth = np.array([model.log_partition for model in models_of(crbm, x)])
    ais = crbm.log_partition(x, "ais")
    assert ais.value.shape == (8,)
    assert (abs(ais.value - truth) < 5 * ais.stderr).numpy().all()
    reverse = crbm.log_partition(x, "reverse_ais")
    assert (abs(reverse.value - truth) < 5 * reverse.stderr + 0.02).numpy().all()
    bethe = crbm.log_partition(x)
    np.testing.assert_allclose(bethe.value, truth, rtol=0.02)
    assert np.isnan(bethe.stderr).all()
    bound = crbm.log_partition(x, "mean_field")
    assert (bound.value < truth).numpy().all()
    np.testing.assert_array_equal(bound.lower, bound.value)


@pytest.mark.slow
def test_an_open_interval_of_one_row():
    """The warning's text took the end of a single row for a number."""
    crbm = make()
    for count in (2, 1):
        with pytest.warns(UserWarning, match="error of log Z"):
            z = crbm.log_partition(X[:count], "ais", num_chains=5)
        assert np.isinf(z.upper).all()


def test_likelihoods_above_0_are_flagged():
    """Mean field bounds log Z from below, Bethe's estimate does not."""
    crbm = CRBM(2, num_visible=2, num_features=1, seed=0)
    kernel = np.array([[6.0, -6.0], [-6.0, -6.0]], np.float32)
    crbm.kernel.assign(kernel)
    crbm.visible_bias.assign(-kernel.sum(1) / 2)
    crbm.hidden_bias.assign(-kernel.sum(0) / 2)
    x, v = np.zeros((4, 1)), np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    exact = crbm.log_likelihood(x, v, "exact").numpy()
    bound = crbm.log_likelihood(x, v, "mean_field").numpy()
    assert (bound <= 0).all() and (bound >= exact - 1e-5).all()
    z = crbm.log_partition(x, "bethe")
    low = z._replace(value=z.value - 50.0)
    assert (crbm.log_likelihood(x, v, low).numpy() > 0).any()  # its maker's business
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(crbm), "log_partition", lambda *_, **__: low)
        with pytest.warns(UserWarning, match="4 of 4 examples .* above 0, up to 4"):
            crbm.log_likelihood(x, v, "bethe")


def test_sample_follows_the_conditional_distribution():
    crbm, count = make(scale=0.7), 20_000
    model = models_of(crbm, X[:1])[0]
    states = crbm.sample(np.repeat(X[:1], count, 0), steps=60, seed=0)
    error = abs(model.frequencies(states) - model.p_visible)
    assert (error < 5 * np.sqrt(model.p_visible / count) + 1e-4).all()
    gaps = np.where(np.arange(6) < 2, Y, np.nan)
    states = crbm.sample(X, steps=5, initial_visible=gaps).numpy()
    np.testing.assert_array_equal(states[:, :2], Y[:, :2])
    assert (states[:, 2:] != Y[:, 2:]).any()


BEST = {
    "max_product": lambda m: m.v[m.log_joint.max(1).argmax()],
    "mixed_product": lambda m: m.v[m.p_visible.argmax()],
    "sum_product": lambda m: m.moments()[1] > 0.5,
}


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("name", [*BEST, "mean_field", "exact"])
def test_each_inference_as_users_run_it(name):
    """On a model of a single hidden unit, a tree, all but mean field are exact."""
    crbm = make(name, 0.3 if name == "mean_field" else 0.5, hidden_units=1)
    models = models_of(crbm, X)
    if name in BEST:
        states = crbm.predict_map(X, batch_size=10)
        np.testing.assert_array_equal(states, [BEST[name](model) for model in models])
    if name not in ("max_product", "mixed_product"):
        means = [model.moments()[1] for model in models]
        tolerance = 0.02 if name == "mean_field" else 1e-4
        np.testing.assert_allclose(crbm.predict(X, verbose=0), means, atol=tolerance)


def test_kernels_start_from_numbers_of_their_own():
    crbm = CRBM(6, num_visible=6, num_features=6, seed=0)
    kernels = [crbm.kernel, crbm.visible_kernel, crbm.hidden_kernel]
    flat = np.stack([kernel.numpy().ravel() for kernel in kernels])
    assert (np.abs(np.corrcoef(flat) - np.eye(3)) < 0.5).all()
    assert len(np.unique(flat)) == flat.size


def test_inference_can_be_exchanged_after_training():
    crbm = fitted(by_likelihood(make("sum_product")), X, Y)
    crbm.predict(X, verbose=0)
    crbm.inference = "exact"
    want = crbm.inference(crbm.potentials(X)).visible
    np.testing.assert_allclose(crbm.predict(X, verbose=0), want, 1e-5)
    fitted(crbm, X, Y)
    with refused("marginals", crbm):
        crbm.inference = "max_product"
    assert isinstance(crbm.inference, inference.Exact)


@pytest.mark.parametrize(
    ("hidden_units", "width", "name"),
    [(4, 12, "Exact"), (20, 6, "Exact"), (9, 9, "BeliefPropagation")],
)
def test_small_layers_are_enumerated_by_default(hidden_units, width, name):
    crbm = CRBM(hidden_units, seed=0)
    for model in (crbm, CRBM.from_config(crbm.get_config())):
        fitted(compiled(model), X, np.tile(Y, (1, 2))[:, :width])
        again = CRBM.from_config(model.get_config())
        assert type(model.inference).__name__ == type(again.inference).__name__ == name


def test_chosen_inference_stays():
    crbm, later = CRBM(4, inference="belief_propagation", seed=0), CRBM(4, seed=0)
    later.inference = "sum_product"
    for model in (crbm, later):
        fitted(compiled(model), X, Y)
        assert type(model.inference).__name__ == "BeliefPropagation"


def test_a_rounding_error_above_one_is_one():
    """In float64 it is no state; float32, in which models compute, cannot tell."""
    crbm = CRBM(2)
    crbm.compile("sgd")
    crbm.fit(np.ones((2, 2)), [[0.0], [np.nextafter(1, 2)]], verbose=0)
    with pytest.raises(ValueError, match="labels"):
        CRBM(2).fit(np.ones((3, 2)), [[0], [1], [2]], verbose=0)
