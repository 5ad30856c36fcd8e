"""Topics of newsgroup posts, learned from sparse rows of words.

    python examples/words.py
    python examples/words.py --files FOLDER

Each row says which words are in a post: few are, so that the rows are a SciPy sparse
matrix, which becomes dense one batch at a time. By default scikit-learn downloads the
20 newsgroups (14 MB), and `CountVectorizer(binary=True)` makes such rows of their most
frequent words. FOLDER holds 20news_w100.mat (https://cs.nyu.edu/~roweis/data) instead:
100 words in 16,242 posts.

The rule has a sparsity penalty: each hidden unit is on in few posts, and is a topic.

Prints the log-likelihood of a held-out post, with the interval that follows from that
of log Z, compared with that of independent words; and for the hidden units that vary
most from post to post the words that they are for and against.
"""

import argparse
import pathlib

import numpy as np
import scipy.io
import scipy.sparse
from sklearn.datasets import fetch_20newsgroups
from sklearn.feature_extraction.text import CountVectorizer

import keras_rbm as kr


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=pathlib.Path, help="folder of 20news_w100.mat")
    parser.add_argument("--words", type=int, default=1000, help="of the download")
    parser.add_argument("--hidden", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--topics", type=int, default=12, help="hidden units to print")
    args = parser.parse_args()
    posts, words = download(args.words) if args.files is None else load(args.files)
    order = np.random.default_rng(0).permutation(posts.shape[0])
    cut = len(order) * 4 // 5
    train, test = posts[order[:cut]], posts[order[cut:]]
    each = posts.nnz / posts.shape[0]
    print(f"{posts.shape[0]:,} posts, {each:.1f} of {len(words):,} words in each")

    rbm = kr.RBM(args.hidden, seed=0)
    rule = kr.rules.PersistentContrastiveDivergence(
        sparsity_target=0.05, sparsity_cost=10.0
    )
    rbm.compile(rule=rule)
    rbm.fit(train, batch_size=100, epochs=args.epochs, verbose=0)

    z = rbm.log_partition("bidirectional")
    energy = np.mean(rbm.free_energy(test))
    low, value, high = (-energy - float(end) for end in (z.upper, z.value, z.lower))
    print("nats per held-out post:")
    print(f"independent words {independent(train, test):.2f}")
    print(f"RBM {value:.2f}, interval [{low:.2f}, {high:.2f}]")
    show(rbm, test, words, args.topics)


def download(count):
    """Returns which words are in each post, a sparse matrix, and the words."""
    parts = "headers", "footers", "quotes"
    posts = fetch_20newsgroups(subset="all", remove=parts).data
    vectorizer = CountVectorizer(
        binary=True, stop_words="english", max_features=count, dtype=np.float32
    )
    return vectorizer.fit_transform(posts), vectorizer.get_feature_names_out()


def load(files):
    """Returns the same of 100 words."""
    file = scipy.io.loadmat(files / "20news_w100.mat")
    words = np.array([str(word[0]) for word in file["wordlist"][0]])
    return scipy.sparse.csr_array(file["documents"].T), words


def independent(train, test):
    """Returns the mean log-likelihood of test posts if words were independent."""
    p = (np.ravel(train.sum(0)) + 1) / (train.shape[0] + 2)
    return np.mean(test @ np.log(p / (1 - p))) + np.sum(np.log(1 - p))


def show(rbm, posts, words, count):
    """Prints the words of the hidden units that vary most from post to post."""
    on = rbm.predict(posts, batch_size=1000, verbose=0)
    kernel = np.asarray(rbm.kernel)
    strength = on.std(0) * np.linalg.norm(kernel, axis=0)
    print("\n| for | against |\n| - | - |")
    for unit in np.argsort(-strength)[:count]:
        order = np.argsort(kernel[:, unit])
        print(f"| {', '.join(words[order[:-8:-1]])} | {', '.join(words[order[:3]])} |")


if __name__ == "__main__":
    main()
