"""A predictor over every kind of batch: the same rows whatever the kind, the grouping, or the process."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webinfer
from webinfer.package import compile_model
from webinfer.scale import Predictor
from webinfer.scale.columns import stacked
from webinfer.scale.pool import powers_of_two

PICTURE = Path(__file__).parents[4] / "build" / "images" / "astronaut.png"
needs_pictures = pytest.mark.skipif(not PICTURE.is_file(), reason="build/images is not there")


def test_a_mapping_of_arrays_keeps_what_is_not_read(doubling: Path, numbers: np.ndarray) -> None:
    predict = Predictor(doubling, backend="wasm", columns="features")
    found = predict({"features": numbers, "id": np.arange(37)})
    assert list(found) == ["id", "y", "error"]
    assert np.array_equal(found["y"], 2 * numbers)
    assert found["id"].tolist() == list(range(37))
    assert set(found["error"]) == {""}
    predict.close()


@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 8, 64])
def test_rows_run_together_where_the_first_axis_is_open(
    summing: Path, numbers: np.ndarray, batch_size: int, parallel: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from webinfer.scale import pool

    sizes: list[int] = []
    run = pool.ModelRunner.run

    def counted(self: Any, rows: Any) -> Any:
        sizes.append(len(rows))
        return run(self, rows)

    monkeypatch.setattr(pool.ModelRunner, "run", counted)
    predict = Predictor(summing, backend="wasm", batch_size=batch_size, parallel=parallel)
    found = predict({"x": numbers, "y": numbers[::-1].copy()})
    assert np.array_equal(found["z"], numbers + numbers[::-1])
    assert sorted(sizes) == sorted({1: [1] * 37, 8: [8, 8, 8, 8, 4, 1], 64: [32, 4, 1]}[batch_size])
    predict.close()


def test_rows_of_several_shapes_are_grouped_and_come_back_in_order(summing: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [rng.standard_normal(rng.choice([3, 5, 9])).astype(np.float32) for _ in range(50)]
    predict = Predictor(summing, backend="wasm", batch_size=4)
    found = predict({"x": rows, "y": rows})
    assert all(np.array_equal(z, 2 * row) for z, row in zip(found["z"], rows, strict=True))
    predict.close()


def test_what_is_wrong_with_a_row_is_in_its_column_and_nowhere_else(doubling: Path, numbers: np.ndarray) -> None:
    rows: list[Any] = list(numbers)
    rows[3], rows[7], rows[11] = rows[3][:4], None, ["a"] * 6
    found = Predictor(doubling, backend="wasm")({"x": rows})
    wrong = [i for i, error in enumerate(found["error"]) if error]
    assert wrong == [3, 7, 11]
    assert [found["error"][i].split(":")[0] for i in wrong] == ["input", "input", "input"]
    assert "no value in this row" in found["error"][7]
    good = [i for i in range(37) if i not in wrong]
    assert np.array_equal(found["y"][good], 2 * numbers[good])
    assert np.isnan(found["y"][wrong]).all()


def test_one_row_does_not_spoil_those_that_run_with_it(summing: Path, numbers: np.ndarray) -> None:
    """Rows of x and y that fit each other alone, but not in this model: the run of 4 fails, three of them go well."""
    y: list[Any] = list(numbers[:4])
    y[2] = np.zeros(5, np.float32)
    found = Predictor(summing, backend="wasm", batch_size=4)({"x": list(numbers[:4]), "y": y})
    assert [bool(error) for error in found["error"]] == [False, False, True, False]
    assert np.array_equal(found["z"][3], 2 * numbers[3])


def test_a_batch_that_lacks_a_column_is_an_error(summing: Path, numbers: np.ndarray) -> None:
    predict = Predictor(summing, backend="wasm")
    with pytest.raises(webinfer.InputError, match=r"inputs x, y, the batch has the columns x, q; say which"):
        predict({"x": numbers, "q": numbers})
    with pytest.raises(webinfer.InputError, match="different numbers of rows"):
        predict({"x": numbers, "y": numbers[:3]})
    with pytest.raises(webinfer.InputError, match="a float is not a batch of rows"):
        predict(1.5)
    with pytest.raises(webinfer.InputError, match="there is no output 'q'; there are z"):
        Predictor(summing, outputs=["q"])({"x": numbers, "y": numbers})
    with pytest.raises(webinfer.InputError, match=r"already has a column .id.; rename the output"):
        Predictor(summing, outputs={"z": "id"})({"x": numbers, "y": numbers, "id": numbers})
    with pytest.raises(webinfer.InputError, match="batch_size is 0"):
        Predictor(summing, batch_size=0)
    with pytest.raises(webinfer.ModelFormatError, match=r"no_such\.onnx"):
        Predictor("no_such.onnx")({"x": numbers})


def test_arrow_tables_and_data_frames_have_the_same_rows(summing: Path, numbers: np.ndarray) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    predict = Predictor(summing, backend="wasm", outputs={"z": "total"})
    nested = [row.tolist() for row in numbers]
    table = arrow.table({"x": nested, "y": arrow.array(nested, arrow.list_(arrow.float32(), 6)), "id": range(37)})
    found = predict(table)
    assert found.column_names == ["id", "total", "error"]
    assert found.schema.field("total").type == arrow.list_(arrow.float32(), 6)
    assert np.array_equal(np.array(found["total"].to_pylist(), np.float32), 2 * numbers)
    assert predict(table.slice(0, 0)).num_rows == 0
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = predict(pandas.DataFrame({"x": list(numbers), "y": list(numbers)}))
    assert list(frame.columns) == ["total", "error"]
    assert np.array_equal(np.stack(frame["total"]), 2 * numbers)
    predict.close()


@needs_pictures
def test_a_task_over_paths_gives_what_it_finds_and_names_what_cannot_be_read(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{i}.png") for i in range(4)]
    for path in paths[:3]:
        shutil.copy(PICTURE, path)
    Path(paths[1]).write_bytes(b"no picture")
    predict = Predictor("face-detection", backend="wasm", parallel=2)
    found = predict(paths)
    assert [row["error"].split(":")[0] for row in found] == ["", "input", "", "input"]
    (face,) = json.loads(found[0]["results"])
    assert face == json.loads(found[2]["results"])[0]
    assert face["score"] > 0.5
    (same,) = webinfer.pipeline("face-detection", backend="wasm")(paths[0]).to_dict()["results"]
    assert face == json.loads(json.dumps(same))
    photos = Predictor("face-detection", backend="wasm", columns="photo")
    again = photos({"photo": [{"bytes": Path(paths[0]).read_bytes(), "path": None}], "id": [5]})
    assert json.loads(again["results"][0]) == [face]
    with pytest.raises(webinfer.InputError, match=r"takes a picture, the batch has the columns photo, id; say which"):
        predict({"photo": [], "id": []})
    photos.close()
    predict.close()


@needs_pictures
def test_pictures_become_a_models_input(tmp_path: Path) -> None:
    from webinfer.pipelines.model_input import picture_input

    model = webinfer.GraphBuilder("mean")
    x = model.input("x", (1, 8, 12, 3))
    model.output(model.node("reduce_mean", x, axes=(1, 2), keep_dims=False), "y")
    session = webinfer.load_sync(model, backend="wasm")
    predict = Predictor(session, pixels=(-1.0, 1.0))
    found = predict([str(PICTURE), PICTURE.read_bytes()])
    wanted = session.run(picture_input(str(PICTURE), session.inputs[0], -1.0, 1.0))["y"].numpy()[0]
    assert all(np.array_equal(row["y"], wanted) for row in found)
    session.close()


def _doubled(predict: Predictor, rows: np.ndarray) -> np.ndarray:
    return predict({"x": rows})["y"]


def test_processes_are_sent_a_small_pickle(doubling: Path, numbers: np.ndarray) -> None:
    predict = Predictor(doubling, backend="wasm", threads=1)
    assert len(pickle.dumps(predict)) < 1000
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
        found = list(processes.map(_doubled, [predict] * 4, np.array_split(numbers, 4)))
    assert np.array_equal(np.concatenate(found), 2 * numbers)


def test_a_compiled_predictor_needs_no_file(summing: Path, numbers: np.ndarray, tmp_path: Path) -> None:
    shutil.copy(summing, tmp_path / "model.onnx")
    sizes = {"x": (1, 6), "y": (1, 6)}
    data = pickle.dumps(Predictor(tmp_path / "model.onnx", shapes=sizes).compiled())
    (tmp_path / "model.onnx").unlink()
    assert np.array_equal(pickle.loads(data)({"x": numbers, "y": numbers})["z"], 2 * numbers)
    with pytest.raises(webinfer.InputError, match="compiled plans are for models"):
        Predictor("face-detection").compiled()


def test_equal_predictors_of_a_process_share_a_model(doubling: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from webinfer.scale import predictor

    opened: list[object] = []
    load = predictor.load

    async def counted(*given: Any, **options: Any) -> Any:
        opened.append(given)
        return await load(*given, **options)

    monkeypatch.setattr(predictor, "load", counted)
    predict = Predictor(doubling, backend="wasm", tuning_ms=0)
    for _ in range(3):
        pickle.loads(pickle.dumps(predict))({"x": np.zeros((2, 6), np.float32)})
    assert len(opened) == 1
    predict.close()
    predict({"x": np.zeros((2, 6), np.float32)})
    assert len(opened) == 2
    predict.close()


def test_remainders_are_cut_into_powers_of_two() -> None:
    for length in range(40):
        parts = [len(part) for part in powers_of_two(range(length))]
        assert sum(parts) == length
        assert parts == sorted({1 << bit for bit in range(6) if length >> bit & 1}, reverse=True)


def test_missing_rows_of_whole_numbers_are_zero() -> None:
    found = stacked([np.array([1, 2]), None, np.array([3, 4])])
    assert found.tolist() == [[1, 2], [0, 0], [3, 4]]
    assert stacked(["a", None]).tolist() == ["a", None]


def test_a_worker_with_a_package_imports_little(tmp_path: Path) -> None:
    """Operators and compiler take as long to import as NumPy and wasmtime together; the rest a tenth of a start."""
    builder = webinfer.GraphBuilder("doubling")
    builder.output(builder.node("linear", builder.input("x", (1, 3)), a=2.0, b=0.0), "y")
    (tmp_path / "it.webinfer").write_bytes(asyncio.run(compile_model(builder, backend="wasm", threads=False)))
    predict = Predictor(tmp_path / "it.webinfer", backend="wasm", threads=1, columns="x")
    code = """
import asyncio, concurrent.futures, pathlib, pickle, sys
import numpy, wasmtime
needed = {*sys.modules}
print(*pickle.loads(bytes.fromhex(sys.stdin.read()))({"x": [[1.0, 2.0, 3.0]]})["y"][0])
print(*{*sys.modules} - needed)
"""
    worker = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(predict).hex(), text=True, capture_output=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(webinfer.__file__).parents[1])},
    )  # fmt: skip
    row, modules = worker.stdout.splitlines()
    assert row == "2.0 4.0 6.0"
    rooms = "ops passes rewrite expr codegen authoring backends.wasm.lowerings backends.webgpu"
    unused = [f"webinfer.{room}" for room in rooms.split()]
    unused += ["importlib.metadata", "importlib.resources", "email", "zipfile", "tempfile", "shutil"]
    unused += ["statistics", "fractions", "random", "html"]
    assert not [name for name in modules.split() if name.startswith(tuple(unused))]
