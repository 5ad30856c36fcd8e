"""Models of other libraries have the same energies here, and there again."""

import itertools

import numpy as np
import pytest

import keras_rbm as kr
from keras_rbm import interop

PAIRS = list(itertools.product(("bernoulli", "spin"), repeat=2))


def made(visible="bernoulli", hidden="bernoulli", units=5):
    rbm = kr.RBM(4, num_visible=units, visible=visible, hidden=hidden, seed=0)
    rbm.build((None, units))
    rng = np.random.default_rng(0)
    for variable in rbm.trainable_variables:
        variable.assign(0.7 * rng.normal(size=variable.shape))
    return rbm


def states_of(rbm):
    values = rbm.potentials().visible.states
    return np.array(list(itertools.product(values, repeat=rbm.num_visible)), float)


def energies(rbm, visible, hidden):
    b, c, kernel = (
        np.asarray(each, float)
        for each in (rbm.visible_bias, rbm.hidden_bias, rbm.kernel)
    )
    return -visible @ b - hidden @ c - ((visible @ kernel) * hidden).sum(1)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_spins_have_the_energies_of_the_model(visible, hidden):
    rbm = made(visible, hidden)
    h, couplings, offset = interop.to_ising(rbm)
    spins = np.random.default_rng(0).choice([-1.0, 1.0], (1000, 9))
    states = [
        side if unit == "spin" else 0.5 * (side + 1.0)
        for side, unit in zip(np.split(spins, [5], 1), (visible, hidden), strict=True)
    ]
    found = offset + spins @ h + ((spins[:, :5] @ couplings) * spins[:, 5:]).sum(1)
    np.testing.assert_allclose(found, energies(rbm, *states), 1e-5, 1e-5)
    again = interop.from_ising(h, couplings, seed=0)
    free = again.free_energy(2.0 * np.eye(5) - 1.0) + offset
    rows = 2.0 * np.eye(5) - 1.0 if visible == "spin" else np.eye(5)
    np.testing.assert_allclose(free, rbm.free_energy(rows), 1e-5, 1e-5)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_dimod_holds_the_same_model(visible, hidden):
    dimod = pytest.importorskip("dimod")
    rbm = made(visible, hidden)
    bqm = interop.to_bqm(rbm)
    spins = np.random.default_rng(0).choice([-1, 1], (1000, 9))
    h, couplings, offset = interop.to_ising(rbm)
    found = offset + spins @ h + ((spins[:, :5] @ couplings) * spins[:, 5:]).sum(1)
    np.testing.assert_allclose(bqm.energies((spins, range(9))), found, 1e-5, 1e-5)
    again, offset = interop.from_bqm(bqm.change_vartype("BINARY"), range(5))
    rows = 2.0 * np.eye(5) - 1.0 if visible == "spin" else np.eye(5)
    free = again.free_energy(2.0 * np.eye(5) - 1.0) + offset
    np.testing.assert_allclose(free, rbm.free_energy(rows), 1e-5, 1e-5)
    wrong = dimod.BinaryQuadraticModel({}, {("a", "b"): 1.0, ("b", "c"): 1.0}, "SPIN")
    with pytest.raises(ValueError, match="'b' and 'c'|'c' and 'b'"):
        interop.from_bqm(wrong, ["a"])
    with pytest.raises(ValueError, match="some of the variables"):
        interop.from_bqm(wrong, ["z"])


@pytest.mark.parametrize("visible", ["bernoulli", kr.units.Categorical(3)], ids=repr)
def test_files_of_rbms(visible, tmp_path):
    """The layout is that of rbms 0.5; `test_rbms_reads_our_files` asks it itself."""
    h5py = pytest.importorskip("h5py")
    rbm, path = made(visible), tmp_path / "rbm.h5"
    interop.write_rbms(rbm, path, update=7)
    again = interop.read_rbms(path)
    rows = states_of(rbm)
    np.testing.assert_array_equal(again.free_energy(rows), rbm.free_energy(rows))
    with h5py.File(path) as file:
        kernel = file["update_7/params/weight_matrix"]
        categories = (3,) if isinstance(visible, kr.units.Categorical) else ()
        assert kernel.shape == (5, *categories, 4)
    with pytest.raises(ValueError, match="update 3. Received: type .BRBM, updates .7"):
        interop.read_rbms(path, update=3)
    with pytest.raises(ValueError, match="exists"):
        interop.write_rbms(rbm, path)
    with pytest.raises(ValueError, match="categorical visible"):
        interop.write_rbms(made("spin"), tmp_path / "spin.h5")


def test_rbms_reads_our_files(tmp_path):
    torch, library = pytest.importorskip("torch"), pytest.importorskip("rbms.io")
    for number, visible in enumerate(("bernoulli", kr.units.Categorical(3))):
        rbm, path = made(visible), tmp_path / f"{number}.h5"
        interop.write_rbms(rbm, path)
        theirs = library.load_params(path, 1, torch.device("cpu"), torch.float32)
        rows = states_of(rbm)
        found = theirs.compute_energy_visibles(torch.tensor(rows, dtype=torch.float32))
        np.testing.assert_allclose(found, rbm.free_energy(rows), 1e-5, 1e-5)
        chains = theirs.init_chains(num_samples=3)
        saved = tmp_path / f"theirs{number}.h5"
        library.save_model(saved, theirs, chains, 4, 0.0)
        again = interop.read_rbms(saved, update=4)
        np.testing.assert_array_equal(again.kernel, rbm.kernel)


def test_potts_models_of_adabmdca(tmp_path):
    """Written, read, and read from couplings that no RBM was behind."""
    rbm, path = made(kr.units.Categorical(3), "gaussian"), tmp_path / "potts.dat"
    interop.write_adabmdca(rbm, path, "-AC")
    again, rows = interop.read_adabmdca(path, "-AC"), states_of(rbm)
    gaps = np.asarray(again.free_energy(rows) - rbm.free_energy(rows))
    np.testing.assert_allclose(gaps, gaps.mean(), atol=1e-5)

    lines = ["# frustrated", "J 0 1 A A 1.5", "J 2 1 C A -0.5", "J 0 2 A C 0.7"]
    lines += ["h 0 A 0.3", "h 2 C -0.2", "h 1 - 0.1"]
    path.write_text("\n".join(lines))
    potts = interop.read_adabmdca(path, "-AC")
    rows = states_of(potts)
    is_a, is_c = rows == 1.0, rows == 2.0
    expected = 1.5 * (is_a[:, 0] & is_a[:, 1]) - 0.5 * (is_c[:, 2] & is_a[:, 1])
    expected += 0.7 * (is_a[:, 0] & is_c[:, 2]) + 0.3 * is_a[:, 0] - 0.2 * is_c[:, 2]
    expected += 0.1 * (rows[:, 1] == 0.0)
    gaps = np.asarray(potts.free_energy(rows)) + expected
    np.testing.assert_allclose(gaps, gaps.mean(), atol=1e-5)


@pytest.mark.parametrize("line", ["J 0 1 A Z 1.0", "J 0 1 A A", "h 0 A x", "k 1"])
def test_a_wrong_line_is_named(line, tmp_path):
    path = tmp_path / "potts.dat"
    path.write_text(f"h 0 A 1.0\n{line}\n")
    with pytest.raises(ValueError, match=f"line 2, '{line}'"):
        interop.read_adabmdca(path, "-AC")
    path.write_text("J 0 1 A A 1.0\n")
    with pytest.raises(ValueError, match="lines of biases"):
        interop.read_adabmdca(path, "-AC")


@pytest.mark.parametrize(
    "lines",
    [
        ["J 0 -1 A A 1.5"],
        ["J 0 0 A C 1.5"],
        ["J 0 1 A C 1.5", "J 1 0 C A 0.5"],
        ["h 0 A 2.0"],
        ["h 3 A 1.0"],
        ["J 0 5 A A 1.5"],
        ["J 0 1 A A nan"],
    ],
    ids=" ".join,
)
def test_files_that_contradict_themselves(lines, tmp_path):
    path = tmp_path / "potts.dat"
    path.write_text("\n".join(["h 0 A 1.0", "h 1 C 0.5", *lines]))
    with pytest.raises(ValueError, match="Expected lines.*Received"):
        interop.read_adabmdca(path, "-AC")


def test_models_that_are_none_of_theirs(tmp_path):
    with pytest.raises(ValueError, match="binary units or spins"):
        interop.to_ising(made("gaussian"))
    with pytest.raises(ValueError, match="Gaussian hidden units"):
        interop.write_adabmdca(made(kr.units.Categorical(3)), tmp_path / "a", "-AC")
    with pytest.raises(ValueError, match=r"h of shape \(V \+ H,\)"):
        interop.from_ising(np.zeros(3), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="finite: False"):
        interop.from_ising([np.nan, 0.0], np.zeros((1, 1)))
    for alphabet in ("AAC", "A C", "AC"):
        with pytest.raises(ValueError, match="alphabet"):
            interop.write_adabmdca(
                made(kr.units.Categorical(3), "gaussian"), tmp_path / "a", alphabet
            )
    for other in (kr.CRBM(2), np.eye(3), kr.RBM(2, num_visible=3, missing="absent")):
        for write in (interop.to_ising, lambda rbm: interop.write_rbms(rbm, "no")):
            with pytest.raises(TypeError, match="one energy for all rows"):
                write(other)


def test_of_a_growing_model_units_in_use_are_written():
    growing = kr.InfiniteRBM(max_hidden_units=5, seed=0)
    growing.compile()
    rows = np.random.default_rng(0).integers(0, 2, (200, 1)) * np.ones((1, 4))
    growing.fit(rows, epochs=2, batch_size=200, verbose=0)
    h, couplings, _ = interop.to_ising(growing)
    assert couplings.shape == (4, growing.to_rbm().hidden_units) < (4, 5)
