"""The same rows from every engine that schedules predictors; each is skipped by name where it is not installed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from webinfer.scale import Predictor

ROOT = Path(__file__).resolve().parents[2]  # of the engine's sources, for workers


@pytest.fixture
def predict(summing: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Predictor]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    made = Predictor(summing, backend="wasm", batch_size=8)
    yield made
    made.close()


def wanted(numbers: np.ndarray) -> dict[int, list[float]]:
    return {i: (2 * row).tolist() for i, row in enumerate(numbers)}


def found(rows: Any) -> dict[int, list[float]]:
    assert {row.get("error", "") for row in rows} == {""}
    return {int(row["id"]): np.asarray(row["z"]).tolist() for row in rows}


def columns(numbers: np.ndarray) -> dict[str, Any]:
    return {"x": list(numbers), "y": list(numbers), "id": np.arange(len(numbers))}


def test_ray_data(predict: Predictor, numbers: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed")
    data = pytest.importorskip("ray.data", reason="ray[data] is not installed")
    from webinfer.scale import ray_data

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    try:
        data.DataContext.get_current().enable_progress_bars = False
        made = data.from_numpy(numbers).rename_columns({"data": "x"}).repartition(3)
        made = made.map_batches(lambda batch: {**batch, "y": batch["x"], "id": np.round(batch["x"][:, 0] * 7 / 6)})
        rows = ray_data.predict(made, predict, concurrency=2, num_cpus=0.5).take_all()
        assert found(rows) == wanted(numbers)
    finally:
        ray.shutdown()


def dask_frame(numbers: np.ndarray, parts: int) -> Any:
    """A frame with arrays in its columns, which Dask makes text of unless it is told not to."""
    dask = pytest.importorskip("dask", reason="dask is not installed")
    frames = pytest.importorskip("dask.dataframe", reason="dask[dataframe] is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with dask.config.set({"dataframe.convert-string": False}):
        return frames.from_pandas(pandas.DataFrame(columns(numbers)), npartitions=parts)


def test_dask_frames_and_bags(predict: Predictor, numbers: np.ndarray) -> None:
    bags = pytest.importorskip("dask.bag", reason="dask is not installed")
    from webinfer.scale import dask_frames

    frame = dask_frame(numbers, 3)
    made = dask_frames.predict_frame(frame, predict)
    assert list(made.columns) == ["id", "z", "error"]
    assert found(made.compute(scheduler="threads").to_dict("records")) == wanted(numbers)
    pictures = Predictor("face-detection", backend="wasm")
    bag = bags.from_sequence([str(ROOT / "no.png"), str(ROOT / "none.png")], npartitions=2)
    rows = dask_frames.predict_bag(bag, pictures).compute(scheduler="sync")
    assert [row["error"].split(":")[0] for row in rows] == ["input", "input"]


def test_dask_processes(predict: Predictor, numbers: np.ndarray) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    from webinfer.scale import dask_frames

    frame = dask_frame(numbers, 4)
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster, cluster.get_client():
        assert found(dask_frames.predict_frame(frame, predict).compute().to_dict("records")) == wanted(numbers)


def test_spark(predict: Predictor, numbers: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed")
    from webinfer.scale import spark_frames

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    try:
        rows = [(i, row.tolist(), row.tolist()) for i, row in enumerate(numbers)]
        frame = spark.createDataFrame(rows, "id int, x array<float>, y array<float>").repartition(3)
        one = spark_frames.udf(predict, ["x", "y"], "array<float>", [[6], [6]])
        got = frame.select("id", one("x", "y").alias("z")).collect()
        assert found([row.asDict() for row in got]) == wanted(numbers)
        both = spark_frames.udf(predict, ["x", "y"], "struct<z: array<float>, error: string>", [[6], [6]])
        got = frame.select("id", both("x", "y").alias("made")).select("id", "made.*").collect()
        assert found([row.asDict() for row in got]) == wanted(numbers)
    finally:
        spark.stop()


def test_datasets_map(predict: Predictor, numbers: np.ndarray, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    given = {"x": numbers.tolist(), "y": numbers.tolist(), "id": list(range(37))}
    made = datasets.Dataset.from_dict(given).map(
        predict, batched=True, batch_size=10, remove_columns=["x", "y"], cache_file_name=str(tmp_path / "cache.arrow")
    )
    assert found(list(made)) == wanted(numbers)


def test_joblib(predict: Predictor, numbers: np.ndarray) -> None:
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    parts = [{"x": part, "y": part} for part in np.array_split(numbers, 5)]
    made = joblib.Parallel(n_jobs=2)(joblib.delayed(predict)(part) for part in parts)
    assert np.array_equal(np.concatenate([part["z"] for part in made]), 2 * numbers)
