"""Sum-product and max-product: the equations, trees, and large weights."""

import message_passing as reference
import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated
from message_passing import random_batch, random_trees, rows

from keras_rbm.inference import Potentials, max_product, sum_product

#: A model, and the marginals that PGMax 0.6.1 (jax 0.4.38, float32) has after 400
#: iterations of sum-product: 12 rows of the kernel, then visible biases (2 rows),
#: hidden ones, visible marginals (2) and hidden ones.
PGMAX = [
    [0.15653385, 0.07747371, -0.85313510, -0.01409111, -0.81509917, -0.15577627],
    [-0.42704787, 0.18908126, 0.97538770, 0.21416594, 0.23139113, 0.02808267],
    [-1.27649491, -0.44389287, -0.25482609, 0.03325861, -0.45364918, -0.58257492],
    [0.32680930, -0.99039823, -0.21903715, 0.15123595, 0.02597270, 0.45041324],
    [0.43221810, -0.17395607, -0.62639768, -0.31716105, 0.36454528, 0.23283122],
    [-0.37108251, 0.07817448, 0.38874518, -0.18137058, 0.06449146, -0.76812184],
    [1.13487731, 0.61514534, -0.80694892, -0.33623022, 0.56970034, 0.74412610],
    [-0.72718284, 0.60118992, -0.10637014, -0.17977658, -0.61741291, 0.94794459],
    [0.02287926, -0.19366341, -0.44773328, -0.40657314, 0.20117082, 0.58938979],
    [-0.09359193, -0.15115138, 0.19345125, -0.86314130, -0.34240505, -0.08996242],
    [0.76638961, -0.52427648, -0.25540257, 0.08871307, -0.43539857, -0.53537631],
    [0.73467938, -0.71000897, -0.59031609, -0.20089047, -0.28942483, 0.52722586],
    [0.28502653, -0.04540716, -0.03096566, 0.12317955, 0.04321307, 0.43628205],
    [0.22831132, 0.03650250, 0.13315897, 0.10010230, 0.44822372, -0.06154748],
    [0.52921570, 0.12004716, 0.29362140, 0.67226796, 0.56026740, -0.29318336],
    [0.42048925, 0.53510273, 0.13767131, 0.58123398, 0.60014915, 0.42145142],
    [0.84679961, 0.47423133, 0.57871830, 0.36046240, 0.55342501, 0.55858105],
    [0.83237541, 0.39269173, 0.24813460, 0.41460744, 0.57192838, 0.70739114],
]


def assert_fields(got, want, rtol=1e-5, atol=1e-5):
    """Compares all that a reference knows; log Z relative to its size."""
    for name, value in want._asdict().items():
        if value is not None:
            relative = rtol if name == "log_partition" else 0.0
            np.testing.assert_allclose(
                getattr(got, name), value, rtol=relative, atol=atol, err_msg=name
            )


def swept(method, potentials, count, **options):
    options |= {"max_iterations": count, "tolerance": 0.0, "pairwise": "each"}
    return method(potentials, **options)


#: Categories, and visible and hidden units.
SIZES = [(1, (5, 4)), (1, (1, 1)), (1, (1, 7)), (1, (8, 1)), (2, (4, 3))]
SIZES += [(3, (4, 1)), (3, (1, 5)), (4, (4, 3))]
#: Beyond weights of 10, of 40 and of 88 messages have other forms.
STRONG = [(q, (4, 3), scale) for q in (1, 3) for scale in (8.0, 30.0, 100.0, 1e3, 1e4)]


@pytest.mark.parametrize(
    ("q", "sizes", "scale"), [*((*size, 1.5) for size in SIZES), *STRONG]
)
def test_exact_on_trees(q, sizes, scale):
    """Marginals, log Z, pairs that are joined by an edge, and the best state."""
    potentials, edges = random_trees(*sizes, batch_size=3, seed=q, scale=scale, q=q)
    # Biases against the weights: beliefs are not 0 or 1.
    kernel, b, c = reference.arrays(potentials)
    against = b - 0.5 * kernel.sum(1), c - 0.5 * kernel.sum(0)
    potentials = reference.potentials_of(kernel, *against, q)
    total, best = (
        swept(method, potentials, sum(sizes)) for method in (sum_product, max_product)
    )
    for n, model in enumerate(rows(potentials)):
        truth = Enumerated(model)
        pairs, visible, hidden = truth.moments()
        np.testing.assert_allclose(total.visible[n], visible, atol=1e-5)
        np.testing.assert_allclose(total.hidden[n], hidden, atol=1e-5)
        pairs = np.where(edges, pairs, total.pairwise[n])
        np.testing.assert_allclose(total.pairwise[n], pairs, atol=1e-5)
        np.testing.assert_allclose(
            total.log_partition[n], truth.log_partition, rtol=1e-6, atol=1e-5
        )
        i, j = np.unravel_index(truth.log_joint.argmax(), truth.log_joint.shape)
        np.testing.assert_array_equal(best.visible[n] > 0.5, truth.v[i])
        np.testing.assert_array_equal(best.hidden[n] > 0.5, truth.h[j])
        pairs = np.outer(truth.v[i], truth.h[j])
        np.testing.assert_array_equal(best.pairwise[n], pairs)
        highest = truth.log_joint.max()
        np.testing.assert_allclose(best.log_partition[n], highest, rtol=1e-6, atol=1e-5)


def test_beliefs_are_max_marginals_on_trees():
    potentials, _ = random_trees(5, 4, batch_size=5)
    beliefs = swept(max_product, potentials, 8)
    truth = Enumerated(rows(potentials)[0])
    for belief, states, log_weight in (
        (beliefs.visible[0], truth.v, truth.log_joint.max(1)),
        (beliefs.hidden[0], truth.h, truth.log_joint.max(0)),
    ):
        best = [
            [log_weight[states[:, i] == value].max() for value in (0, 1)]
            for i in range(states.shape[1])
        ]
        log_odds = np.subtract(*np.transpose(best)[::-1])
        np.testing.assert_allclose(belief, 1 / (1 + np.exp(-log_odds)), atol=1e-5)


def test_one_strong_edge():
    """The belief was 0, and the Bethe likelihood of a CRBM of it +5 nats."""
    potentials = Potentials([[200.0]], [-100.0], [-95.0])
    beliefs = sum_product(potentials)
    np.testing.assert_allclose(beliefs.visible, [0.99331], atol=1e-5)
    truth = Enumerated(potentials).log_partition
    np.testing.assert_allclose(beliefs.log_partition, truth, rtol=1e-6)
    assert beliefs.converged


def test_equals_the_published_equations_sweep_by_sweep():
    """Ping and Ihler (2017), equations 13, 14 and 16 to 18, as printed."""
    potentials = random_batch(12, 8, batch_size=5)
    published = [reference.published_sum_product(row, 10) for row in rows(potentials)]
    for sweep in range(10):
        beliefs = swept(sum_product, potentials, sweep + 1)
        for n, want in enumerate(published):
            row = tf.nest.map_structure(lambda leaf, n=n: leaf[n], beliefs)
            assert_fields(row, want[sweep])


#: Categories, units, the largest weight if it is given, tolerance and damping.
MODELS = [
    *[(1, (12, 8), None, 1e-5, d) for d in (0.0, 0.5)],
    *[(3, (5, 4), None, 1e-5, d) for d in (0.0, 0.4)],
    *[(1, (12, 8), largest, 1e-4, 0.0) for largest in (5.0, 10.0, 11.0, 50.0)],
    *[(3, (3, 2), largest, 1e-4, 0.0) for largest in (20.0, 60.0)],
    *[(1, (3, 7), None, 1e-5, 0.0), (1, (17, 9), 60.0, 2e-4, 0.4)],
    (3, (3, 2), 60.0, 1e-4, 0.3),
]


def model_of(q, sizes, largest):
    if largest is None:
        return random_batch(*sizes, batch_size=5, q=q)
    rng = np.random.default_rng(1)
    kernel = rng.uniform(-1.0, 1.0, (q * sizes[0], sizes[1]))
    kernel *= largest / np.abs(kernel).max()
    return reference.with_random_biases(kernel, 5, rng, q)


@pytest.mark.parametrize(("q", "sizes", "largest", "atol", "damping"), MODELS)
def test_equals_the_equations_sweep_by_sweep(q, sizes, largest, atol, damping):
    """As weights grow: products of eight ratios, single ratios, logarithms."""
    potentials = model_of(q, sizes, largest)
    sums, maxima = (
        reference.message_passing(potentials, 5, maximum, damping)
        for maximum in (False, True)
    )
    for count in (1, 5):
        beliefs = swept(sum_product, potentials, count, damping=damping)
        assert_fields(beliefs, sums[count - 1], atol=atol)
        beliefs = swept(max_product, potentials, count, damping=damping)
        want = maxima[count - 1]
        v, h, pairs, energy, clear = reference.decoded(potentials, want)
        assert clear.any()  # ties are decoded as it rounds
        visible = want.visible if q == 1 else v
        np.testing.assert_allclose(beliefs.visible[clear], visible[clear], atol=atol)
        np.testing.assert_allclose(beliefs.hidden, want.hidden, atol=atol)
        np.testing.assert_allclose(beliefs.residual, want.residual, atol=atol)
        np.testing.assert_array_equal(beliefs.pairwise[clear], pairs[clear])
        found = beliefs.log_partition[clear]
        np.testing.assert_allclose(found, energy[clear], rtol=1e-5, atol=1e-5)


def test_damping_leads_to_the_same_fixed_point():
    potentials = random_batch(12, 8, batch_size=5)
    damped = sum_product(potentials, tolerance=1e-6, damping=0.5, pairwise="each")
    plain = sum_product(potentials, tolerance=1e-6, pairwise="each")
    assert np.all(damped.converged)
    assert np.all(damped.num_iterations > plain.num_iterations)
    np.testing.assert_allclose(damped.pairwise, plain.pairwise, atol=1e-5)


def test_equals_another_library():
    *kernel, b, more_b, c, visible, more_visible, hidden = PGMAX
    beliefs = sum_product(Potentials(kernel, b + more_b, c), tolerance=1e-6)
    assert beliefs.converged
    np.testing.assert_allclose(beliefs.visible, visible + more_visible, atol=1e-5)
    np.testing.assert_allclose(beliefs.hidden, hidden, atol=1e-5)


def test_stops_by_itself():
    potentials = random_batch(12, 8, batch_size=5)
    sweeps = reference.message_passing(potentials, 30)
    residuals = np.stack([sweep.residual for sweep in sweeps])
    for tolerance in (1e-2, 1e-3):
        beliefs = sum_product(potentials, tolerance=tolerance, pairwise="each")
        num_iterations = np.argmax(residuals < tolerance, axis=0) + 1
        np.testing.assert_array_equal(beliefs.num_iterations, num_iterations)
        assert np.all(beliefs.converged)
        assert np.all(beliefs.residual < tolerance)
    beliefs = sum_product(potentials, max_iterations=2, pairwise="each")
    np.testing.assert_array_equal(beliefs.num_iterations, [2] * 5)
    assert not np.any(beliefs.converged)


@pytest.mark.parametrize("q", [1, 4])
@pytest.mark.parametrize("largest", [10.0, 50.0, 500.0])
@pytest.mark.parametrize("method", [sum_product, max_product])
def test_extreme_models_are_finite(method, largest, q):
    rng = np.random.default_rng(0)
    kernel = largest * np.sign(rng.normal(size=(12 * q, 8)))
    b, c = (100.0 * rng.integers(-1, 2, (5, size)) for size in kernel.shape)
    for sign in (kernel, abs(kernel)):
        potentials = reference.potentials_of(sign, b, c, q)
        beliefs = method(potentials, pairwise="each", max_iterations=12)
        for belief in beliefs[:3]:
            assert np.all((belief.numpy() >= 0) & (belief.numpy() <= 1 + 1e-6))
        assert np.all(np.isfinite(beliefs.log_partition))
        assert np.all(np.isfinite(beliefs.residual))
        totals = np.reshape(beliefs.visible, (5, 12, q)).sum(-1)
        np.testing.assert_allclose(totals, 1 if q > 1 else totals, atol=1e-5)


def test_a_broken_model_has_not_converged():
    """The largest of changes with a NaN once was -inf, less than any tolerance."""
    kernel, visible, hidden = random_batch(12, 8, batch_size=5)
    broken = np.where(np.arange(5)[:, None] == 1, np.nan, visible.bias)
    broken = Potentials(kernel, tf.constant(broken, tf.float32), hidden.bias)
    beliefs = sum_product(broken, pairwise="each")
    np.testing.assert_array_equal(beliefs.converged, [True, False, True, True, True])
    want = sum_product(Potentials(kernel, visible, hidden), pairwise="each")
    np.testing.assert_array_equal(beliefs.visible[2:], want.visible[2:])


def test_large_batches_go_through_in_parts():
    """A batch whose messages are too many for one chunk."""
    potentials = random_batch(600, 400, 6, scale=0.02)
    weights = tf.constant([0.1, 0.4, 0.0, 0.3, 0.2, 1.0])
    alone = [sum_product(row) for row in rows(potentials)]
    mean = np.einsum("n,nij->ij", weights, [each.pairwise for each in alone])
    whole = sum_product(potentials, weights=weights)
    np.testing.assert_allclose(whole.pairwise, mean, atol=1e-4)
    for name in ("visible", "hidden", "log_partition", "num_iterations"):
        want = [getattr(each, name) for each in alone]
        np.testing.assert_allclose(getattr(whole, name), want, rtol=1e-5, atol=1e-4)
