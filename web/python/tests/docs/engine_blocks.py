"""What the blocks about Ray, Dask, Spark and other schedulers find; skipped by name where one is not installed."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.docs.given import ELSEWHERE, Given, Names, doubled, onnx_file
from tests.docs.pages import ROOT

from webinfer.scale import Predictor

ROWS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def pictures(folder: Path) -> list[str]:
    """Two pictures in a folder."""
    folder.mkdir(parents=True)
    paths = [folder / name for name in ("a.png", "b.png")]
    for path in paths:
        Image.fromarray(np.full((8, 8, 3), 100, np.uint8)).save(path)
    return list(map(str, paths))


def negative() -> bytes:
    """An ONNX model of pictures: their negative."""
    return onnx_file([["Neg", ["image"], ["y"]]], {"image": ("FLOAT", ["n", 3, 8, 8])})


@contextmanager
def workers() -> Iterator[None]:
    """Processes that are started now find the engine."""
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(ROOT / "web/python"), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        yield


@asynccontextmanager
async def ray_data(text: str) -> AsyncIterator[Names]:
    """A bucket with two pictures, and model.onnx."""
    ray = pytest.importorskip("ray", reason="ray is not installed")
    data = pytest.importorskip("ray.data", reason="ray[data] is not installed")
    Path("model.onnx").write_bytes(negative())
    pictures(Path("bucket/photos"))
    with workers():
        ray.init(num_cpus=4, include_dashboard=False, configure_logging=False, log_to_driver=False)
        try:
            data.DataContext.get_current().enable_progress_bars = False
            bucket, model = Path("bucket").absolute(), Path("model.onnx").absolute()
            elsewhere = {"s3://bucket": str(bucket), '"model.onnx"': repr(str(model))}
            yield {ELSEWHERE: elsewhere, "ray": ray, "Predictor": Predictor}
            assert data.read_parquet(f"{bucket}/found").count() == 2
        finally:
            ray.shutdown()


@asynccontextmanager
async def dask_frame(text: str) -> AsyncIterator[Names]:
    """A frame of features, paths of pictures, and model.onnx."""
    dask = pytest.importorskip("dask", reason="dask is not installed")
    frames = pytest.importorskip("dask.dataframe", reason="dask[dataframe] is not installed")
    pytest.importorskip("dask.bag", reason="dask is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    Path("model.onnx").write_bytes(doubled())
    with dask.config.set({"dataframe.convert-string": False}):
        frame = frames.from_pandas(pandas.DataFrame({"features": [np.float32(row) for row in ROWS]}), npartitions=2)
    names: Names = {"dask": dask, "frame": frame, "paths": pictures(Path("photos")), "Predictor": Predictor}
    with dask.config.set(scheduler="threads"):
        yield names
        assert np.stack(names["found"].compute()["y"]).tolist() == [[2, 4, 6], [8, 10, 12]]
        assert [row["error"] for row in names["faces"].compute()] == ["", ""]


@asynccontextmanager
async def spark(text: str) -> AsyncIterator[Names]:
    """A frame with a column of arrays, and model.onnx."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed")
    Path("model.onnx").write_bytes(doubled(6))
    with workers():
        session = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        try:
            frame = session.createDataFrame([([float(i)] * 6,) for i in range(4)], "x array<float>")
            names: Names = {"frame": frame, "Predictor": Predictor}
            names[ELSEWHERE] = {'"found"': repr(str(Path("found").absolute()))}
            yield names
            rows = session.read.parquet(str(Path("found").absolute())).collect()
            assert sorted(row["y"][0] for row in rows) == [0, 2, 4, 6]
            found = frame.select(names["both"]("x").alias("made")).select("made.*").collect()
            assert {row["error"] for row in found} == {""}
        finally:
            session.stop()


@asynccontextmanager
async def pools(text: str) -> AsyncIterator[Names]:
    """A dataset of pictures, joblib, and a predictor with rows in parts."""
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    Path("model.onnx").write_bytes(negative())
    Path("rows.onnx").write_bytes(doubled())
    given: dict[str, Any] = {"image": pictures(Path("photos"))}
    with workers(), closing(Predictor(str(Path("rows.onnx").absolute()), columns="x")) as predict:
        names: Names = {
            "dataset": datasets.Dataset.from_dict(given).cast_column("image", datasets.Image()), "joblib": joblib,
            "concurrent": concurrent, "multiprocessing": multiprocessing, "Predictor": Predictor, "predict": predict,
            "parts": [{"x": np.float32(ROWS)}] * 2,
        }  # fmt: skip
        yield names
    assert [table["y"].tolist() for table in names["tables"]] == [[[2, 4, 6], [8, 10, 12]]] * 2
    assert names["scored"]["error"] == ["", ""]


ENGINES: dict[str, Given] = {"ray": ray_data, "dask": dask_frame, "spark": spark, "pools": pools}
