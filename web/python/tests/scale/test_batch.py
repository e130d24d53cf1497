"""Batch runs: every kind of input and output, every engine, and kill -9 in the middle: no row lost, none twice."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webinfer
from webinfer.cli import main
from webinfer.scale import Predictor, run_batch
from webinfer.scale.sources import JsonRows, rows_of

ROOT = Path(__file__).resolve().parents[2]
ROWS, PART = 4000, 50


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """Two files of JSON lines, of 4000 rows together; two of them cannot be read as the model's input."""
    folder = tmp_path / "lines"
    folder.mkdir()
    rows = [{"id": i, "x": [i + j / 8 for j in range(6)]} for i in range(ROWS)]
    rows[7]["x"], rows[3333]["x"] = [1.0], None
    for name, part in (("a", rows[:1234]), ("b", rows[1234:])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    return folder


def checked(output: Path) -> bytes:
    """The output's bytes, once its rows are the right ones in the right order."""
    data = output.read_bytes()
    rows = [json.loads(line) for line in data.splitlines()]
    assert [row["id"] for row in rows] == list(range(ROWS))
    assert [row["id"] for row in rows if row["error"]] == [7, 3333]
    assert all(row["y"] == [2 * (row["id"] + j / 8) for j in range(6)] for row in rows if not row["error"])
    assert rows[7]["y"] is None
    assert not list(output.parent.glob(f"*{output.name}.*"))
    return data


def predictor(model: Path) -> Predictor:
    return Predictor(model, backend="wasm", threads=1)


def test_lines_of_json_become_lines_of_json(doubling: Path, lines: Path, tmp_path: Path) -> None:
    events: list[webinfer.ProgressEvent] = []
    report = run_batch(
        predictor(doubling), str(lines), str(tmp_path / "out.jsonl"), processes=1, part_rows=999, progress=events.append
    )
    checked(tmp_path / "out.jsonl")
    assert (report.rows, report.errors, report.resumed_parts) == (ROWS, 2, 0)
    assert [event.done for event in events] == [999, 1998, 2997, 3996, 4000]
    with pytest.raises(webinfer.InputError, match=r"out\.jsonl' already exists"):
        run_batch(predictor(doubling), str(lines), str(tmp_path / "out.jsonl"), processes=1)


def command(doubling: Path, lines: Path, output: Path, processes: int, engine: str = "local") -> list[str]:
    options = ["--backend", "wasm", "--column", "x", "--processes", str(processes), "--part-rows", str(PART)]
    options += ["--engine", engine]
    return [sys.executable, "-m", "webinfer", "batch", str(doubling), str(lines), "-o", str(output), *options]


def started(arguments: list[str]) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    return subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until_parts(output: Path, count: int, process: subprocess.Popen[str]) -> int:
    """How many parts there are, once there are so many, or the process has ended."""
    end = time.monotonic() + 600  # Spark begins its session within minutes on a busy machine
    while time.monotonic() < end:
        found = len(list(output.with_name(f"{output.name}.parts").glob("part-*")))
        if found >= count or process.poll() is not None:
            return found
        time.sleep(0.002)
    process.kill()
    pytest.fail(f"{count} parts did not come within ten minutes")


def children(pid: int) -> list[int]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")  # of whatever thread started them
    return [int(child) for found in lists for child in found.read_text().split()]


@pytest.fixture
def undisturbed(doubling: Path, lines: Path, tmp_path: Path) -> bytes:
    """The output of a run that nothing happened to."""
    run_batch(predictor(doubling), str(lines), str(tmp_path / "quiet.jsonl"), processes=1, part_rows=PART)
    return checked(tmp_path / "quiet.jsonl")


def test_a_driver_that_is_killed_goes_on_and_ends_with_the_same_bytes(
    doubling: Path, lines: Path, tmp_path: Path, undisturbed: bytes
) -> None:
    output = tmp_path / "out.jsonl"
    seen = 0
    for wanted in (5, 30):
        process = started(command(doubling, lines, output, 1))
        seen = until_parts(output, wanted, process)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "it was over too soon"
        assert not output.exists()
    (tmp_path / "out.jsonl.parts" / ".1-2.new").write_bytes(b"half of a part")
    process = started(command(doubling, lines, output, 1))
    said, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert f"{ROWS:,} rows" in said
    assert int(said.split(" parts were done before")[0].split()[-1]) >= seen
    assert checked(output) == undisturbed


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_that_is_killed_is_replaced(doubling: Path, lines: Path, tmp_path: Path, undisturbed: bytes) -> None:
    output = tmp_path / "out.jsonl"
    process = started(command(doubling, lines, output, 2))
    assert until_parts(output, 5, process) < ROWS // PART
    workers = [child for child in children(process.pid) if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    assert workers
    os.kill(workers[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert checked(output) == undisturbed


DEADLY = """
import os, sys
from webinfer.scale import Predictor, run_batch

class Deadly(Predictor):
    def results(self, given):
        if 65 in given.column("id"):
            os._exit(9)
        return super().results(given)

if __name__ == "__main__":
    model, rows, output = sys.argv[1:]
    print(run_batch(Deadly(model, backend="wasm", columns="x"), rows, output, processes=2, part_rows=50).errors)
"""


def test_rows_that_end_their_process_have_an_error_and_the_others_their_results(doubling: Path, tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(DEADLY)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"id": i, "x": [float(i)] * 6}) + "\n" for i in range(300)))
    output = tmp_path / "out.jsonl"
    process = started([sys.executable, str(tmp_path / "deadly.py"), str(doubling), str(rows), str(output)])
    said, errors = process.communicate(timeout=300)
    assert (process.returncode, said.split()) == (0, ["50"]), errors
    found = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in found] == list(range(300))
    assert {row["id"] for row in found if "processes died" in row["error"]} == set(range(50, 100))
    assert all(row["y"] == [2.0 * row["id"]] * 6 for row in found if not row["error"])


def test_parts_of_another_run_are_not_gone_on_with(doubling: Path, lines: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    process = started(command(doubling, lines, output, 1))
    until_parts(output, 3, process)
    process.kill()
    process.communicate()
    predict = Predictor(doubling, backend="wasm", columns="x")
    with pytest.raises(webinfer.InputError, match=r"parts of another run: part_rows changed; remove it"):
        run_batch(predict, str(lines), str(output), processes=1, part_rows=51)
    with (lines / "a.jsonl").open("a") as file:
        file.write('{"id": 1}\n')
    with pytest.raises(webinfer.InputError, match=r"inputs, rows changed"):
        run_batch(
            Predictor(doubling, backend="wasm", columns="x"), str(lines), str(output), processes=1, part_rows=PART
        )


def test_folders_of_pictures_become_rows_with_their_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = ROOT.parents[1] / "build" / "images" / "astronaut.png"
    if not picture.is_file():
        pytest.skip("build/images is not there")
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    for name in ("a.png", "more/b.png", "no.txt.log"):
        shutil.copy(picture, folder / name)
    (folder / "c.jpg").write_bytes(b"no picture")
    output = tmp_path / "faces.jsonl"
    options = ["--processes", "1", "--backend", "wasm", "--set", "min_score=0.6"]
    assert main(["batch", "face-detection", str(folder), "-o", str(output), *options]) == 0
    assert "3 rows, 1 with an error" in capsys.readouterr().out
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [Path(row["path"]).name for row in rows] == ["a.png", "c.jpg", "b.png"]
    assert [row["error"].split(":")[0] for row in rows] == ["", "input", ""]
    assert json.loads(rows[0]["results"])[0]["score"] > 0.6
    assert rows[0]["results"] == rows[2]["results"]
    assert main(["batch", "face-detection", str(tmp_path / "none*.png"), "-o", str(output)]) == 2
    assert "no file in" in capsys.readouterr().err


def test_rows_are_read_from_any_number_on(lines: Path) -> None:
    rows = rows_of([str(lines / "*.jsonl")])
    assert isinstance(rows, JsonRows)
    rng = np.random.default_rng(0)
    for first in [0, 50, 100, 1230, 20, 3990, *map(int, rng.integers(0, ROWS, 20))]:
        assert rows.read(first, 50)["id"] == list(range(first, min(first + 50, ROWS)))
    with pytest.raises(webinfer.InputError, match="with other files"):
        rows_of([str(lines / "a.jsonl"), __file__])
    with pytest.raises(webinfer.InputError, match="there is no file, folder or pattern"):
        rows_of([str(lines / "c.jsonl")])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A Parquet file of 1000 rows in row groups of 300; two of them have no input, one of them all of a part's."""
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    x: list[Any] = [[float(i)] * 6 for i in range(1000)]
    x[400:500] = [None] * 100
    columns = {"id": arrow.array(range(1000), arrow.int16()), "x": arrow.array(x, arrow.list_(arrow.float32()))}
    parquet.write_table(arrow.table(columns), tmp_path / "rows.parquet", row_group_size=300)
    return tmp_path / "rows.parquet"


def test_parquet_in_and_out(doubling: Path, table: Path, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    outputs = [tmp_path / "one.parquet", tmp_path / "two.parquet", tmp_path / "folder"]
    for output, processes in zip(outputs, (1, 2, 1), strict=True):
        report = run_batch(predictor(doubling), str(table), str(output), processes=processes, part_rows=100)
        assert (report.rows, report.errors) == (1000, 100)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    assert len(list(outputs[2].glob("part-*.parquet"))) == 10
    found = parquet.read_table(outputs[0])
    assert found.schema.field("id").type == arrow.int16()
    assert found.schema.field("y").type == arrow.list_(arrow.float32(), 6)
    assert found["id"].to_pylist() == list(range(1000))
    assert found["y"].to_pylist() == [None if 400 <= i < 500 else [2.0 * i] * 6 for i in range(1000)]
    assert [i for i, error in enumerate(found["error"].to_pylist()) if error] == list(range(400, 500))


def test_urls_of_fsspec(doubling: Path, table: Path, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    with fsspec.open("memory://bucket/rows.parquet", "wb") as file:
        file.write(table.read_bytes())
    for inputs in ("memory://bucket/rows.parquet", "memory://bucket/*.parquet", "memory://bucket"):
        output = tmp_path / f"{len(inputs)}.parquet"
        assert run_batch(predictor(doubling), inputs, str(output), processes=1).rows == 1000


@pytest.fixture(params=["ray", "dask", "spark"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An engine that is installed here."""
    name = str(request.param)
    module = {"ray": "ray", "dask": "distributed", "spark": "pyspark.sql"}[name]
    pytest.importorskip(module, reason=f"{module} is not installed")
    if name == "spark" and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    return name


def test_engines_give_the_same_bytes(
    engine: str, doubling: Path, lines: Path, tmp_path: Path, undisturbed: bytes
) -> None:
    output = tmp_path / "out.jsonl"
    run_batch(predictor(doubling), str(lines), str(output), engine=engine, processes=2, part_rows=PART)
    assert checked(output) == undisturbed


def predicting(pid: int) -> list[int]:
    """The processes below one that have a model open: wasmtime's library is in their memory."""
    found = []
    for child in children(pid):
        with contextlib.suppress(OSError):
            found += [child] if "wasmtime" in Path(f"/proc/{child}/maps").read_text() else []
            found += predicting(child)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_engine_replaces_a_worker_that_is_killed(
    engine: str, doubling: Path, lines: Path, tmp_path: Path, undisturbed: bytes
) -> None:
    output = tmp_path / "out.jsonl"
    process = started(command(doubling, lines, output, 2, engine))
    assert until_parts(output, 3, process) < ROWS // PART, "it was over too soon"
    while not (workers := predicting(process.pid)) and process.poll() is None:
        time.sleep(0.01)  # between two of an engine's tasks nobody predicts
    assert workers, "it was over too soon"
    os.kill(workers[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors[-3000:]
    assert checked(output) == undisturbed


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_driver_of_an_engine_that_is_killed_goes_on(
    engine: str, doubling: Path, lines: Path, tmp_path: Path, undisturbed: bytes
) -> None:
    output = tmp_path / "out.jsonl"
    process = started(command(doubling, lines, output, 2, engine))
    assert until_parts(output, 3, process) < ROWS // PART, "it was over too soon"
    process.kill()
    process.communicate()
    process = started(command(doubling, lines, output, 2, engine))
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors[-3000:]
    assert int(said.split(" parts were done before")[0].split()[-1]) >= 3
    assert checked(output) == undisturbed


def test_an_unknown_engine_is_named(doubling: Path, lines: Path, tmp_path: Path) -> None:
    with pytest.raises(webinfer.InputError, match="engine='flink' is unknown; choose local or ray or dask or spark"):
        run_batch(predictor(doubling), str(lines), str(tmp_path / "out.jsonl"), engine="flink")
    with pytest.raises(webinfer.InputError, match=r"ends in \.csv"):
        run_batch(predictor(doubling), str(lines), str(tmp_path / "out.csv"))
