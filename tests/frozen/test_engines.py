"""Recipes for engines, as the guide has them, each with two local workers."""

import sys

import numpy as np
import pytest

from keras_rbm_frozen import Scorer

RNG = np.random.default_rng(0)
NAMES = [f"v{number}" for number in range(6)]


@pytest.fixture
def scorer():
    arrays = {
        "kernel": RNG.normal(size=(6, 3)).astype(np.float32),
        "visible_bias": RNG.normal(size=6).astype(np.float32),
        "hidden_bias": RNG.normal(size=3).astype(np.float32),
    }
    layers = {"visible": [("Bernoulli", 6)], "hidden": [("Bernoulli", 3)]}
    return Scorer(arrays, layers, [3.0, 2.9, 3.1])


@pytest.fixture
def frame():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(RNG.integers(0, 2, (1000, 6)), columns=NAMES)


@pytest.mark.multiprocess
def test_dask(scorer, frame):
    dask = pytest.importorskip("dask.dataframe")
    table = dask.from_pandas(frame, npartitions=4)
    scored = table.map_partitions(lambda part: part.assign(nats=scorer.score(part)))
    found = scored.compute(scheduler="processes", num_workers=2)
    np.testing.assert_allclose(found["nats"], scorer.score(frame))


@pytest.mark.multiprocess
def test_ray(scorer, frame):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        table = ray.data.from_pandas(frame)

        def scored(part):
            rows = np.stack([part[name] for name in NAMES], 1)
            return part | {"nats": scorer.score(rows)}

        found = table.map_batches(scored, concurrency=2, batch_size=300).to_pandas()
        expected = scorer.score(found[NAMES])
        np.testing.assert_allclose(found["nats"], expected)
        assert len(found) == 1000
    finally:
        ray.shutdown()


@pytest.mark.multiprocess
def test_spark(scorer, frame, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    sql = pytest.importorskip("pyspark.sql")
    spark = sql.SparkSession.builder.master("local[2]").getOrCreate()
    try:
        table = spark.createDataFrame(frame).repartition(4)
        everywhere = spark.sparkContext.broadcast(scorer)

        def scored(parts):
            for part in parts:
                yield part.assign(nats=everywhere.value.score(part[NAMES]))

        columns = ", ".join([*(f"{name} long" for name in NAMES), "nats double"])
        found = table.mapInPandas(scored, columns).toPandas()
        np.testing.assert_allclose(found["nats"], scorer.score(found[NAMES]))
        assert len(found) == 1000
    finally:
        spark.stop()
