"""A model of a protein family: likelihood, motifs, contacts, new sequences.

    python examples/protein_family.py
    python examples/protein_family.py family.fasta --contacts contacts.txt --epochs 150

Trains an RBM of categorical sites and double rectified hidden units on aligned
sequences; by default 1,000 of a family of 112 sites. Prints the log-likelihood per site
of training and held-out sequences and new sequences, and draws what the strongest
hidden units respond to and which sites are coupled. The settings are those of Tubiana,
Cocco and Monasson (eLife 8, 2019).
"""

import argparse
import pathlib

import keras
import numpy as np

import keras_rbm as kr

_HERE = pathlib.Path(__file__).parent
_LETTERS = np.array(list(kr.datasets.PROTEINS))
_STATES = len(_LETTERS)


def main():
    args = parse_arguments()
    sequences, _ = kr.datasets.fasta(args.fasta)
    weights = kr.datasets.sequence_weights(sequences)
    print(
        f"{len(sequences)} sequences of {sequences.shape[1]} sites, as good as "
        f"{weights.sum():.0f} that differ"
    )
    order = np.random.default_rng(args.seed).permutation(len(sequences))
    held_out, train = np.split(order, [len(sequences) // 5])
    rbm = trained(sequences[train], weights[train], args)

    print("\nlog-likelihood per site, nats, weighted [interval of log Z]")
    z = rbm.log_partition("bidirectional")
    print(f"  sites alone {independent(sequences, weights, train, held_out):.3f}")
    for name, rows in (("training", train), ("held out", held_out)):
        scores = rbm.log_likelihood(sequences[rows], z).numpy()
        mean = np.average(scores, weights=weights[rows])
        ends = [(mean + float(z.value - end)) for end in (z.upper, z.lower)]
        mean, low, high = (value / sequences.shape[1] for value in (mean, *ends))
        print(f"  {name:11} {mean:.3f} [{low:.3f}, {high:.3f}]")

    start = sequences[np.random.default_rng(args.seed).choice(train, 200)]
    new = rbm.sample(200, steps=500, initial_visible=start, seed=args.seed).numpy()
    differ = distances(new, sequences)
    print("\nnew sequences, and in how many sites the nearest natural one differs")
    for row, sites in list(zip(new.astype(int), differ, strict=True))[:5]:
        print(f"  {''.join(_LETTERS[row])}  {sites}")
    print(f"  median of 200: {np.median(differ):.0f} sites")

    args.out.mkdir(parents=True, exist_ok=True)
    draw_motifs(rbm, args.out / "motifs.png")
    draw_contacts(rbm, sequences, weights, args)


def trained(sequences, weights, args):
    """Returns an RBM trained by PCD, its sparse weights by the L1b penalty."""
    rbm = kr.RBM(
        args.hidden,
        visible=kr.units.Categorical(_STATES),
        hidden="double_rectified",
        kernel_regularizer=kr.regularizers.L1Block(args.penalty),
        seed=args.seed,
    )
    steps = args.epochs * -(-len(sequences) // 100)
    falling = keras.optimizers.schedules.CosineDecay(0.01, steps)
    rule = kr.rules.PersistentContrastiveDivergence(
        gibbs_steps=10, num_chains=200, centered=False
    )
    rbm.compile(keras.optimizers.Adam(falling, beta_2=0.99), rule=rule)
    rbm.fit(
        sequences,
        sample_weight=weights,
        batch_size=100,
        epochs=args.epochs,
        verbose=0,
    )
    return rbm


def independent(sequences, weights, train, held_out):
    """Returns the held-out log-likelihood per site of letters drawn site by site."""
    letters = np.eye(_STATES)[sequences]
    counts = np.einsum("n,nsa->sa", weights[train], letters[train]) + 1.0 / _STATES
    log_p = np.log(counts / counts.sum(-1, keepdims=True))
    scores = np.einsum("nsa,sa->n", letters[held_out], log_p)
    return np.average(scores, weights=weights[held_out]) / sequences.shape[1]


def distances(rows, sequences):
    """Returns in how many sites each row differs from the nearest sequence."""
    return np.array([(row != sequences).sum(1).min() for row in rows])


def draw_motifs(rbm, path, count=4):
    """Draws the weights of the hidden units with the largest norms."""
    kernel = kr.inference.zero_sum_gauge(rbm.potentials()).kernel.numpy()
    strongest = np.argsort(-np.square(kernel).sum(0))[:count]
    weights = [kernel[:, unit].reshape(-1, _STATES) for unit in strongest]
    titles = [f"hidden unit {unit}" for unit in strongest]
    try:
        kr.plots.logos(weights, titles=titles).savefig(path)
        print(f"\nwhat the strongest hidden units respond to: {path}")
    except ImportError as error:
        print(f"\n{error}")


def draw_contacts(rbm, sequences, weights, args):
    """Draws the pairs of sites that are coupled most, and says how many touch."""
    potentials = rbm.potentials()
    couplings = kr.inference.effective_couplings(potentials, sequences, weights)
    scores = kr.inference.contact_scores(couplings, sequences.shape[1])
    known = None if args.contacts is None else np.loadtxt(args.contacts)
    path = args.out / "contacts.png"
    kr.plots.contact_map(scores, known, num_pairs=args.pairs).savefig(path)
    print(f"the {args.pairs} pairs of sites that are coupled most: {path}")
    i, j = np.triu_indices(len(scores), 5)
    best = np.argsort(-scores[i, j])[: args.pairs]
    pairs = [f"{a + 1}-{b + 1}" for a, b in zip(i[best], j[best], strict=True)]
    print("  " + " ".join(pairs[:10]))
    if known is not None:
        touch = np.maximum(known, known.T)[i[best], j[best]] > 0
        print(f"  in contact: {np.mean(touch):.0%}")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("fasta", nargs="?", default=_HERE / "data" / "PF00072.fasta", type=pathlib.Path)
    add("--contacts", type=pathlib.Path, help="matrix of 0 and 1, as text")
    add("--hidden", type=int, default=50)
    add("--epochs", type=int, default=60)
    add("--penalty", type=float, default=0.25, help="of the weights, L1b")
    add("--pairs", type=int, default=20, help="coupled pairs to show")
    add("--seed", type=int, default=0)
    add("--out", type=pathlib.Path, default=pathlib.Path("out"), help="for pictures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
