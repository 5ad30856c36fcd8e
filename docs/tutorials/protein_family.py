# %% [markdown]
# # Model a protein family
#
# Sequences of one protein family differ in most letters but fold alike. An RBM with one
# categorical unit per site learns which letters go together. Hidden units become
# motifs, strong couplings point to sites that touch, and samples are new sequences.

# %%
import keras
import numpy as np

import keras_rbm as kr

# In the repository: 1,000 sequences of response regulators, proteins by which bacteria
# answer to signals, 112 sites of 20 amino acids or a gap.
sequences, _ = kr.datasets.fasta("examples/data/PF00072.fasta")
weights = kr.datasets.sequence_weights(sequences)
order = np.random.default_rng(0).permutation(len(sequences))
held_out, train = np.split(order, [200])
letters = np.array(list(kr.datasets.PROTEINS))
for row in sequences[:5]:
    print("".join(letters[row])[:80] + "…")

# %% [markdown]
# Families are sampled unevenly: some branches have hundreds of near copies. The weight
# of a sequence is one over the number of sequences that are similar to it.
#
# ## Train
#
# *Double rectified* hidden units are 0 for most sequences and respond to either of two
# opposite patterns [1]. The `L1Block` penalty keeps the patterns short.

# %%
epochs = 60
falling = keras.optimizers.schedules.CosineDecay(0.01, epochs * 8)
rbm = kr.RBM(
    50,
    visible=kr.units.Categorical(len(letters)),
    hidden="double_rectified",
    kernel_regularizer=kr.regularizers.L1Block(0.25),
    seed=0,
)
rule = kr.rules.PersistentContrastiveDivergence(gibbs_steps=10, num_chains=200)
rbm.compile(keras.optimizers.Adam(falling, beta_2=0.99), rule=rule)
history = rbm.fit(
    sequences[train],
    sample_weight=weights[train],
    batch_size=100,
    epochs=epochs,
    verbose=0,
)

# %% [markdown]
# ## Score
#
# The scores are in nats per site, compared with a model of independent sites.

# %%
sites = sequences.shape[1]
alone = kr.RBM(1, visible=rbm.visible, kernel_initializer="zeros")
alone.adapt(sequences[train], weights[train])
z = rbm.log_partition("bidirectional")
for name, model, log_z in (("sites alone", alone, "exact"), ("RBM", rbm, z)):
    scores = np.array(model.log_likelihood(sequences[held_out], log_z)) / sites
    print(f"{name:11} {np.average(scores, weights=weights[held_out]):.3f}")
print(f"log Z = {z.value:.2f} [{z.lower:.2f}, {z.upper:.2f}]")

# %% [markdown]
# ## Motifs
#
# The logos show what the strongest hidden units respond to, where they respond most.
# Letters above the line raise a unit's input, letters below lower it.

# %%
kernel = kr.inference.zero_sum_gauge(rbm.potentials()).kernel.numpy()
strongest = np.argsort(-np.square(kernel).sum(0))[:3]
blocks = [kernel[:, unit].reshape(sites, -1) for unit in strongest]
ends = [np.abs(block).sum(1).argmax() for block in blocks]
starts = [int(np.clip(end - 15, 0, sites - 30)) for end in ends]
kr.plots.logos(
    [block[start : start + 30] for block, start in zip(blocks, starts, strict=True)],
    titles=[f"sites {start + 1} to {start + 30}" for start in starts],
)

# %% [markdown]
# ## Contacts
#
# Sites that are coupled although they are far apart in the sequence often touch in the
# folded protein. The model has seen sequences only; gray are the pairs that are nearer
# than 6 Å in measured structures.

# %%
couplings = kr.inference.effective_couplings(rbm.potentials(), sequences, weights)
scores = kr.inference.contact_scores(couplings, sites)
contacts = np.loadtxt("examples/data/PF00072_contacts.txt")
pairs = np.triu_indices(sites, 5)
best = np.argsort(-scores[pairs])[:50]
touch = contacts[pairs] > 0
print(f"50 strongest: {touch[best].mean():.0%} touch, of all {touch.mean():.0%}")
kr.plots.contact_map(scores, contacts, num_pairs=50)

# %% [markdown]
# ## New sequences

# %%
new = rbm.sample(200, steps=500, initial_visible=sequences[:200], seed=0).numpy()
nearest = [(row != sequences).sum(1).min() for row in new]
for row, distance in list(zip(new.astype(int), nearest, strict=True))[:5]:
    print("".join(letters[row])[:60] + "…", f"{distance} sites from the nearest")

# %% [markdown]
# At a lower temperature sequences are likelier, and nearer to each other. With two
# copies of each hidden unit and twice the visible biases, an RBM has the density
# p(v)², up to a factor: half the temperature.

# %%
cold = kr.RBM(100, num_visible=sites, visible=rbm.visible, hidden=rbm.hidden)
for twice, once in zip(cold.trainable_variables, rbm.trainable_variables, strict=True):
    is_bias = twice is cold.visible_bias
    twice.assign(2.0 * once if is_bias else np.concatenate([once, once], -1))
colder = cold.sample(200, steps=500, initial_visible=sequences[:200], seed=0).numpy()
for name, rows in (("data", sequences[:200]), ("p(v)", new), ("p(v)²", colder)):
    score = np.mean(rbm.log_likelihood(rows, z)) / sites
    apart = np.mean(rows[:100] != rows[100:])
    print(f"{name:6} {score:.2f} nats a site; two differ at {apart:.0%} of the sites")

# %% [markdown]
# 1. Tubiana, Cocco, Monasson. Learning protein constitutive motifs from sequence data.
#    eLife 8, 2019.
#
# **Next:** larger runs, compared with the published figures, in
# [Results on protein families](../../results/proteins/);
# [which unit for which data](../../guides/which-unit-for-which-data/).
