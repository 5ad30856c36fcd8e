import itertools

import message_passing as reference
import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_gaussian_potentials, random_potentials
from message_passing import random_batch, random_trees, rows

from keras_rbm import inference
from keras_rbm.inference import BeliefPropagation, Potentials, sum_product

#: Kernel, visible and hidden bias, and the marginals that PGMax 0.6.1 (jax 0.4.38,
#: float32) has after 400 iterations of sum-product.
PGMAX_MODEL = (
    [
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
    ],
    [
        0.28502653,
        -0.04540716,
        -0.03096566,
        0.12317955,
        0.04321307,
        0.43628205,
        0.22831132,
        0.03650250,
        0.13315897,
        0.10010230,
        0.44822372,
        -0.06154748,
    ],
    [0.52921570, 0.12004716, 0.29362140, 0.67226796, 0.56026740, -0.29318336],
)
PGMAX_VISIBLE = [
    0.42048925,
    0.53510273,
    0.13767131,
    0.58123398,
    0.60014915,
    0.42145142,
    0.84679961,
    0.47423133,
    0.57871830,
    0.36046240,
    0.55342501,
    0.55858105,
]
PGMAX_HIDDEN = [0.83237541, 0.39269173, 0.24813460, 0.41460744, 0.57192838, 0.70739114]


def assert_beliefs(got, want, atol=1e-5):
    np.testing.assert_allclose(got.visible, want.visible, atol=atol, rtol=0)
    np.testing.assert_allclose(got.hidden, want.hidden, atol=atol, rtol=0)
    np.testing.assert_allclose(got.pairwise, want.pairwise, atol=atol, rtol=0)


@pytest.mark.parametrize("sizes", [(5, 4), (1, 1), (1, 7), (8, 1)], ids=str)
def test_exact_on_trees(sizes):
    """Unit marginals, log Z, and pairs that are joined by an edge."""
    for seed in range(4 if min(sizes) > 1 else 1):
        potentials = random_trees(*sizes, batch_size=3, seed=seed)
        kernel = potentials.kernel.numpy()
        beliefs = sum_product(
            potentials,
            max_iterations=reference.diameter(kernel),
            tolerance=0.0,
            pairwise="each",
        )
        for n, model in enumerate(rows(potentials)):
            truth = Enumerated(model)
            pairs, visible, hidden = truth.moments()
            pairs = np.where(kernel == 0, np.outer(visible, hidden), pairs)
            np.testing.assert_allclose(beliefs.visible[n], visible, atol=1e-5)
            np.testing.assert_allclose(beliefs.hidden[n], hidden, atol=1e-5)
            np.testing.assert_allclose(beliefs.pairwise[n], pairs, atol=1e-5)
            np.testing.assert_allclose(
                beliefs.log_partition[n], truth.log_partition, rtol=1e-5, atol=1e-5
            )


def test_not_exact_with_fewer_sweeps_than_the_tree_is_wide():
    potentials = random_trees(5, 4, batch_size=3)
    assert reference.diameter(potentials.kernel.numpy()) > 2
    beliefs = sum_product(potentials, max_iterations=1, tolerance=0.0, pairwise="each")
    for n, model in enumerate(rows(potentials)):
        truth = Enumerated(model).moments()[1]
        assert np.abs(beliefs.visible[n] - truth).max() > 1e-3


def test_equals_the_published_equations_sweep_by_sweep():
    """Ping and Ihler (2017), equations 13, 14 and 16 to 18, as printed."""
    potentials = random_batch(12, 8, batch_size=5)
    published = [reference.published_sum_product(row, 10) for row in rows(potentials)]
    for sweep in range(10):
        beliefs = sum_product(
            potentials, max_iterations=sweep + 1, tolerance=0.0, pairwise="each"
        )
        for n, want in enumerate(published):
            row = tf.nest.map_structure(lambda leaf, n=n: leaf[n], beliefs)
            assert_beliefs(row, want[sweep])
            np.testing.assert_allclose(row.residual, want[sweep].residual, atol=1e-5)


def test_equals_another_library():
    potentials = Potentials(*PGMAX_MODEL)
    beliefs = sum_product(potentials, tolerance=1e-6, pairwise="each")
    assert beliefs.converged
    np.testing.assert_allclose(beliefs.visible, PGMAX_VISIBLE, atol=1e-5)
    np.testing.assert_allclose(beliefs.hidden, PGMAX_HIDDEN, atol=1e-5)


def test_bethe_estimate_is_near_log_partition():
    for seed in range(8):
        potentials = random_potentials(12, 8, seed=seed, scale=0.5)
        beliefs = sum_product(potentials, tolerance=1e-5, pairwise="each")
        estimate = beliefs.log_partition.numpy()
        truth = Enumerated(potentials).log_partition
        np.testing.assert_allclose(estimate, truth, rtol=0.01)
        assert estimate != pytest.approx(truth, rel=1e-6)  # no tree, so not exact


def test_bethe_estimate_equals_energy_plus_entropies_at_a_fixed_point():
    potentials = random_batch(12, 8, batch_size=5)
    beliefs = sum_product(potentials, tolerance=1e-6, pairwise="each")
    assert np.all(beliefs.converged)
    want = reference.bethe_of_beliefs(potentials, *beliefs[:3])
    np.testing.assert_allclose(beliefs.log_partition, want, atol=1e-3)


def test_bethe_estimate_before_convergence():
    potentials = random_batch(12, 8, batch_size=5)
    for sweep, want in enumerate(reference.message_passing(potentials, 3)):
        beliefs = sum_product(
            potentials, max_iterations=sweep + 1, tolerance=0.0, pairwise="each"
        )
        np.testing.assert_allclose(beliefs.log_partition, want.log_partition, atol=1e-4)


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
    np.testing.assert_allclose(beliefs.residual, residuals[1], atol=1e-5)


def test_without_coupling_one_sweep_is_enough():
    b, c = np.linspace(-2, 2, 12), np.linspace(-1, 3, 8)
    potentials = Potentials(
        tf.zeros((12, 8)), tf.constant(b, tf.float32), tf.constant(c, tf.float32)
    )
    beliefs = sum_product(potentials, pairwise="each")
    assert beliefs.num_iterations == 1
    assert beliefs.converged
    assert beliefs.residual < 1e-6
    np.testing.assert_allclose(beliefs.visible, 1 / (1 + np.exp(-b)), rtol=1e-5)
    np.testing.assert_allclose(beliefs.hidden, 1 / (1 + np.exp(-c)), rtol=1e-5)
    log_partition = np.logaddexp(0, b).sum() + np.logaddexp(0, c).sum()
    np.testing.assert_allclose(beliefs.log_partition, log_partition, rtol=1e-5)


@pytest.mark.parametrize("sizes", [(3, 7), (17, 9)], ids=str)
@pytest.mark.parametrize("scale", [1, 20])
def test_any_number_of_units(sizes, scale):
    """Layers that are no multiple of 8, in the usual and in the careful branch."""
    potentials = random_batch(*sizes, batch_size=3, scale=scale)
    beliefs = sum_product(potentials, max_iterations=3, tolerance=0.0, pairwise="each")
    want = reference.message_passing(potentials, 3)[-1]
    assert_beliefs(beliefs, want, atol=1e-5 * scale)
    np.testing.assert_allclose(beliefs.log_partition, want.log_partition, rtol=1e-4)


@pytest.mark.parametrize("largest", [5, 10, 11, 50])
def test_large_weights(largest):
    rng = np.random.default_rng(largest)
    kernel = rng.uniform(-largest, largest, (12, 8))
    kernel[0, :2] = largest, -largest
    potentials = reference.with_random_biases(kernel, 5, rng)
    sweeps = reference.message_passing(potentials, 5)
    for sweep in (1, 5):
        beliefs = sum_product(
            potentials, max_iterations=sweep, tolerance=0.0, pairwise="each"
        )
        assert_beliefs(beliefs, sweeps[sweep - 1], atol=1e-4)
        np.testing.assert_allclose(
            beliefs.log_partition, sweeps[sweep - 1].log_partition, rtol=1e-4
        )


@pytest.mark.parametrize("sign", ["positive", "negative", "mixed"])
def test_extreme_models_are_finite(sign):
    signs = {"positive": 1.0, "negative": -1.0}
    kernel = 50 * np.full((12, 8), signs.get(sign, 1.0))
    if sign == "mixed":
        kernel *= np.sign(np.random.default_rng(0).normal(size=kernel.shape))
    for bias in (-100.0, 0.0, 100.0):
        potentials = Potentials(
            tf.constant(kernel, tf.float32), tf.fill([5, 12], bias), tf.zeros(8)
        )
        beliefs = sum_product(potentials, pairwise="each")
        for belief in (beliefs.visible, beliefs.hidden, beliefs.pairwise):
            assert np.all((belief >= 0) & (belief <= 1))
        assert np.all(np.isfinite(beliefs.log_partition))
        assert np.all(np.isfinite(beliefs.residual))


def test_extreme_biases():
    """Units that their biases decide leave the others a smaller model."""
    potentials = random_batch(12, 8, batch_size=5)
    push = 100 * np.sign(np.random.default_rng(1).normal(size=(5, 12)))
    push[:, 6:] = 0
    potentials = Potentials(
        potentials.kernel,
        potentials.visible_bias + tf.constant(push, tf.float32),
        potentials.hidden_bias,
    )
    beliefs = sum_product(potentials, max_iterations=8, tolerance=0.0, pairwise="each")
    want = reference.message_passing(potentials, 8)[-1]
    assert_beliefs(beliefs, want)
    np.testing.assert_allclose(beliefs.log_partition, want.log_partition, rtol=1e-5)
    np.testing.assert_allclose(beliefs.visible[:, :6], push[:, :6] > 0, atol=1e-6)


def test_a_broken_model_has_not_converged():
    """The largest of changes with a NaN once was -inf, less than any tolerance."""
    kernel, visible, hidden = random_batch(12, 8, batch_size=5)
    broken = np.where(np.arange(5)[:, None] == 1, np.nan, visible.bias)
    broken = Potentials(kernel, tf.constant(broken, tf.float32), hidden.bias)
    beliefs = sum_product(broken, pairwise="each")
    np.testing.assert_array_equal(beliefs.converged, [True, False, True, True, True])
    want = sum_product(Potentials(kernel, visible, hidden), pairwise="each")
    np.testing.assert_array_equal(beliefs.visible[2:], want.visible[2:])


def test_damping():
    """Messages to visible units move half way in log-odds, to the same fixed point."""
    potentials = random_batch(12, 8, batch_size=5)
    sweeps = reference.message_passing(potentials, 4, damping=0.5)
    for sweep, want in enumerate(sweeps):
        beliefs = sum_product(
            potentials,
            max_iterations=sweep + 1,
            tolerance=0.0,
            damping=0.5,
            pairwise="each",
        )
        assert_beliefs(beliefs, want)
    damped = sum_product(potentials, tolerance=1e-6, damping=0.5, pairwise="each")
    plain = sum_product(potentials, tolerance=1e-6, pairwise="each")
    assert np.all(damped.converged)
    assert np.all(damped.num_iterations > plain.num_iterations)
    assert_beliefs(damped, plain)


def test_rows_do_not_depend_on_the_batch():
    reference.assert_rows_do_not_depend_on_the_batch(sum_product)


def test_either_bias_may_have_the_batch():
    reference.assert_either_bias_may_have_the_batch(sum_product)


def test_shapes():
    reference.assert_shapes(sum_product)


def test_pairwise_is_weighted():
    reference.assert_pairwise_is_weighted(BeliefPropagation())


@pytest.mark.slow
def test_compiles_for_any_batch_size():
    reference.assert_compiles_for_any_batch_size(sum_product)


def test_large_batches_go_through_in_parts():
    reference.assert_large_batches_go_through_in_parts(sum_product)


def test_max_iterations_may_be_a_tensor():
    reference.assert_max_iterations_may_be_a_tensor(sum_product)


def test_max_iterations_of_the_object_is_no_constant():
    reference.assert_max_iterations_is_no_constant(BeliefPropagation(tolerance=0.0))


def test_objects_share_nothing():
    reference.assert_objects_share_nothing(BeliefPropagation)


def test_object_is_the_function():
    potentials = random_batch(12, 8, batch_size=5)
    options = {"max_iterations": 9, "tolerance": 1e-4, "damping": 0.5}
    infer = BeliefPropagation(**options)
    want = sum_product(potentials, pairwise="each", **options)
    reference.assert_same(infer(potentials, pairwise="each"), want)
    reference.assert_saved_and_restored(infer)
    config = infer.get_config()
    assert config["method"] == "sum_product"
    for name, value in options.items():
        assert float(config[name]) == float(getattr(infer, name)) == value


@pytest.mark.parametrize(
    "infer", [sum_product, BeliefPropagation], ids=["function", "object"]
)
@pytest.mark.parametrize(
    "option",
    [
        {"max_iterations": 0},
        {"max_iterations": -3},
        {"tolerance": -1e-3},
        {"damping": 1.0},
        {"damping": -0.1},
    ],
    ids=str,
)
def test_options_out_of_range(infer, option):
    (name,) = option
    arguments = (random_potentials(3, 2),) if infer is sum_product else ()
    with pytest.raises(ValueError, match=name):
        infer(*arguments, **option)


def test_unknown_names():
    with pytest.raises(ValueError, match="(?s)method.*'loopy'"):
        BeliefPropagation("loopy")
    for infer in (sum_product, BeliefPropagation()):
        with pytest.raises(ValueError, match="(?s)pairwise.*'all'"):
            infer(random_potentials(3, 2), pairwise="all")


def test_binary_units_only():
    gaussian = random_gaussian_potentials(3, 2)
    for potentials, infer in itertools.product(
        (gaussian, gaussian.transpose()), (sum_product, BeliefPropagation())
    ):
        with pytest.raises(ValueError, match="binary units"):
            infer(potentials)


def test_arrays_are_taken_as_they_are():
    arrays = np.ones((3, 2)), np.zeros((4, 3)), np.zeros((4, 2))
    for infer in ("sum_product", "max_product", "mean_field", "exact"):
        assert inference.get(infer)(Potentials(*arrays)).visible.shape == (4, 3)


def test_each_model_needs_a_weight():
    potentials = random_batch(3, 2, 4)
    with pytest.raises(ValueError, match=r"weights of shape \(4,\)"):
        sum_product(potentials, weights=tf.ones(3))
