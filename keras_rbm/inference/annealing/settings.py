"""The constants of the search for a model's mass, each with its reason."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class SearchSettings:
    """How far the search goes. M is the number of chains of the caller."""

    #: Sweeps of chains that start anywhere, averaged over the second half: most have
    #: forgotten their start after fifty.
    sweeps: int = 100
    #: Sweeps of chains that start at states that may already be samples.
    fewer_sweeps: int = 50
    #: Chains of each kind of start, and of each exploratory run, as a share of M: there
    #: are many, so that each may be smaller than the runs that count.
    few: float = 0.2
    #: Temperatures of an exploratory annealing run, which need not be exact.
    look: int = 100
    #: Most runs of which each begins from what the last one has drawn. Modes of models
    #: stopped at a high rate took four.
    rounds: int = 6
    #: Share of the chains that is effective where a base needs no other.
    near: float = 0.5
    #: Temperatures of the runs from the new base. One follows another until states have
    #: enough independent ancestors: most models need only the first.
    refine: tuple = (250, 500, 1000)
    #: With fewer, the error of what is annealed back is not known well.
    enough_ancestors: int = 25
    #: Share of the first base's means in those of the new base: a base as narrow as the
    #: mode that was found would never reach another.
    broad: float = 0.3
    #: The same in the bases that followed states lead to, which should be narrow.
    narrow: float = 0.1
    #: Peaks, and states of each run from the new base, that are followed: one each of
    #: the heaviest regions.
    followed: int = 3
    #: Jumps between modes that each near-sample tries, for each unit of the smaller
    #: layer, and the fewest and most of all. One takes half the time of a sweep, and
    #: most fail. After 200, models of six parts of ten units had not met all
    #: combinations of modes: log Z was 0.3 too low, three of its errors.
    jumps_per_unit: int = 20
    fewest_jumps: int = 200
    most_jumps: int = 1000
    #: States of each near-sample on its way, over the second half of its jumps, from
    #: which the share of each region is taken.
    snapshots: int = 10
    #: Clusters of the chains of each model: shares of the mass are those of clusters. A
    #: mode that one chain in ten has met must not be lost in a mean.
    clusters: int = 8
    #: Clusters of which one chain each is followed: it may be in a mode of its own.
    #: A trained model of silhouettes lost nine tenths of its mass with 8 means instead.
    fine_clusters: int = 16
    #: States of either layer that go uphill, as a multiple of M: going uphill costs
    #: little.
    uphill: int = 20
    #: Sweeps uphill: most states arrive in ten, the last in narrow modes after twenty.
    uphill_sweeps: int = 20
    #: Visited states are good enough as samples if no estimate of log Z, less two of
    #: its errors, exceeds the log of their mass by this many nats: the error of the
    #: samples is then smaller than that of the estimate.
    nearly_all: float = 0.02
    #: Most and fewest sweeps over single units: fewer than five move too little to be
    #: worth their time.
    single_site_sweeps: int = 20
    fewest_single_site_sweeps: int = 5
    #: Most evaluations of a visible unit's log-partition by these sweeps of some
    #: chains: half a second.
    evaluations: float = 5e7
    #: Rows of one annealing run, or of one walk uphill, beyond which it is made in
    #: parts, for the sake of memory.
    rows_at_once: int = 10_000


SEARCH = SearchSettings()
