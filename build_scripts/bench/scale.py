"""`measure scale`: threads in one run, sessions side by side, processes; a million rows; a worker's start.

Speed-ups are of the best of several interleaved rounds, as others may load the machine: what one thread does and what
many do take turns. A million rows go from a table to a table; rows a second and the memory of the process are noted at
each quarter, which shows whether time is linear and memory flat. A worker's start is a whole Python process which
unpickles a predictor and runs one row, beside processes that only import what it needs.
"""

import argparse
import json
import multiprocessing
import os
import pickle
import platform
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from build_scripts.bench.open_sizes import resident_mib
from build_scripts.judge.backends import use_engine
from build_scripts.paths import ENGINE, IMAGES, MODELS

ROUNDS, TURN_S, STARTS = 5, 1.0, 12
ROWS, WIDTH = 1_000_000, 8
START = """
import pickle, sys
predict = pickle.loads(bytes.fromhex(sys.stdin.read()))
import numpy
found = predict({"x": numpy.zeros([1, *%s], numpy.float32)})
assert not found["error"][0], found["error"][0]
"""
FLOORS = {  # what every process pays that computes with wasmtime
    "nothing": "pass",
    "NumPy imported": "import numpy",
    "NumPy and wasmtime imported": "import numpy, wasmtime",
}


def counts_up_to(most: int) -> list[int]:
    """1, 2, 4, … and the most."""
    return sorted({1 << bit for bit in range(most.bit_length()) if 1 << bit <= most} | {most})


def in_one_run(model: Path, counts: Sequence[int]) -> list[float]:
    """Milliseconds of a run with so many threads, the best of interleaved rounds."""
    import webinfer

    sessions = [webinfer.load_sync(model, backend="wasm", threads=count) for count in counts]
    inputs = sessions[0].noise()
    best = [float("inf")] * len(counts)
    for _ in range(ROUNDS):
        for i, session in enumerate(sessions):
            end = time.perf_counter() + TURN_S / 2
            while time.perf_counter() < end:
                start = time.perf_counter()
                session.run(inputs)
                best[i] = min(best[i], (time.perf_counter() - start) * 1e3)
    for session in sessions:
        session.close()
    return best


def side_by_side(model: Path, counts: Sequence[int]) -> list[float]:
    """Runs a second of so many sessions of one thread, each on a thread of Python; the best of interleaved rounds."""
    import webinfer

    sessions = [webinfer.load_sync(model, backend="wasm", threads=1) for _ in range(max(counts))]
    inputs = sessions[0].noise()
    for session in sessions:
        session.run(inputs)

    def turn(count: int) -> float:
        done, end = [0] * count, time.perf_counter() + TURN_S

        def work(number: int) -> None:
            while time.perf_counter() < end:
                sessions[number].run(inputs)
                done[number] += 1

        threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(done) / (time.perf_counter() - start)

    best = _best_of_rounds(counts, turn)
    for session in sessions:
        session.close()
    return best


def in_processes(model: Path, counts: Sequence[int]) -> list[float]:
    """Runs a second of so many processes with a session of one thread each; the best of interleaved rounds."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(max(counts))]
    workers = [context.Process(target=_worker, args=(str(model), pipe[1]), daemon=True) for pipe in pipes]
    for worker in workers:
        worker.start()
    for pipe in pipes:
        pipe[0].recv()

    def turn(count: int) -> float:
        start = time.perf_counter()
        for pipe in pipes[:count]:
            pipe[0].send(TURN_S)
        done = sum(pipe[0].recv() for pipe in pipes[:count])
        return float(done) / (time.perf_counter() - start)

    best = _best_of_rounds(counts, turn)
    for pipe in pipes:
        pipe[0].send(0)
    return best


def _worker(model: str, pipe: Any) -> None:
    use_engine()
    import webinfer

    with webinfer.load_sync(model, backend="wasm", threads=1) as session:
        inputs = session.noise()
        session.run(inputs)
        pipe.send(0)
        while seconds := pipe.recv():
            end, done = time.perf_counter() + seconds, 0
            while time.perf_counter() < end:
                session.run(inputs)
                done += 1
            pipe.send(done)


def _best_of_rounds(counts: Sequence[int], turn: Callable[[int], float]) -> list[float]:
    best = [0.0] * len(counts)
    for _ in range(ROUNDS):
        for i, count in enumerate(counts):
            best[i] = max(best[i], turn(count))
    return best


def of_pictures(picture: Path, counts: Sequence[int], pictures: int) -> list[float]:
    """Pictures a second of a predictor that finds faces, decoding included, with so many sessions side by side."""
    from webinfer.scale import Predictor

    predictors = [Predictor("face-detection", backend="wasm", parallel=count, decoders=count) for count in counts]
    paths = [str(picture)] * pictures
    os.environ["OMP_NUM_THREADS"] = "1"
    for predictor in predictors:
        predictor(paths[:2])

    def turn(count: int) -> float:
        start = time.perf_counter()
        found = predictors[list(counts).index(count)](paths)
        assert not any(row["error"] for row in found)
        return pictures / (time.perf_counter() - start)

    return _best_of_rounds(counts, turn)


def small_model(folder: Path) -> Path:
    """A model of 8 numbers to 8, compiled."""
    import webinfer
    from webinfer.package import compile_model

    draw, builder = random.Random(0), webinfer.GraphBuilder("small")
    x = builder.input("x", (1, WIDTH))
    for _ in range(3):
        weight = builder.constant([draw.uniform(-1, 1) for _ in range(WIDTH * WIDTH)], (WIDTH, WIDTH))
        x = builder.node("tanh", builder.node("matmul", x, weight))
    builder.output(x, "y")
    path = folder / "small.webinfer"
    path.write_bytes(bytes(webinfer.run_sync(compile_model(builder, backend="wasm", threads=False))))
    return path


def many_rows(folder: Path, model: Path, rows: int) -> list[list[str]]:
    """Rows from a table to a table: at each quarter, rows a second since the last, and the memory of this process."""
    from webinfer.scale import Predictor, run_batch

    suffix = _write_rows(folder, rows)
    found: list[list[str]] = []
    last = [time.perf_counter(), 0.0]

    def note(event: Any) -> None:
        if event.done * 4 >= event.total * (len(found) + 1):
            now = time.perf_counter()
            rate = (event.done - last[1]) / (now - last[0])
            found.append([f"{event.done:,}", f"{rate:,.0f}", f"{resident_mib():.0f}"])
            last[:] = now, event.done

    predictor = Predictor(model, backend="wasm", threads=1, columns="x", batch_size=1)
    output = folder / f"out{suffix}"
    run_batch(predictor, str(folder / f"rows{suffix}"), str(output), processes=1, part_rows=8192, progress=note)
    found.append(["joined", "", f"{resident_mib():.0f}"])
    return found


def _write_rows(folder: Path, rows: int) -> str:
    """Writes the input table, Parquet where pyarrow is there; its suffix."""
    try:
        import numpy as np
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
            for number in range(rows):
                file.write(json.dumps({"id": number, "x": [number % 97 / 97 + i for i in range(WIDTH)]}) + "\n")
        return ".jsonl"
    kind = arrow.list_(arrow.float32(), WIDTH)
    with parquet.ParquetWriter(folder / "rows.parquet", arrow.schema([("id", arrow.int64()), ("x", kind)])) as writer:
        for begin in range(0, rows, 1 << 16):
            ids = np.arange(begin, min(begin + (1 << 16), rows))
            x = (ids[:, None] % 97 / 97 + np.arange(WIDTH)).astype(np.float32)
            column = arrow.FixedSizeListArray.from_arrays(arrow.array(x.reshape(-1)), WIDTH)
            writer.write_table(arrow.table({"id": arrow.array(ids), "x": column}))
    return ".parquet"


def worker_starts(models: Sequence[Path]) -> list[list[str]]:
    """New Python processes, from their start to their end: seconds, and seconds of processor; the least of each.

    Those of workers unpickle a predictor of a model's compiled plan, and run one row. Before them stands the floor.
    """
    import webinfer
    from webinfer.scale import Predictor

    works = {name: (code, "") for name, code in FLOORS.items()}
    for model in models:
        with webinfer.load_sync(model, backend="wasm", threads=1) as session:
            info = session.inputs[0]
        predictor = Predictor(model, backend="wasm", threads=1, columns={info.name: "x"})
        shipped = predictor if model.suffix == ".webinfer" else predictor.compiled()
        works[f"a first row of {model.stem}"] = START % (list(info.shape[1:]),), pickle.dumps(shipped).hex()
    least = {name: (float("inf"), float("inf")) for name in works}
    with tempfile.TemporaryDirectory() as compiled:  # of Python, which an installation has
        environment = {**os.environ, "PYTHONPATH": str(ENGINE.parent), "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(STARTS):
            for name, (code, data) in works.items():
                before, begin = os.times(), time.perf_counter()
                subprocess.run([sys.executable, "-c", code], input=data, env=environment, text=True, check=True)
                wall, after = time.perf_counter() - begin, os.times()
                cpu = after.children_user + after.children_system - before.children_user - before.children_system
                least[name] = min(least[name][0], wall), min(least[name][1], cpu)
    return [[name, f"{wall:.3f}", f"{cpu:.2f}"] for name, (wall, cpu) in least.items()]


def run(argv: list[str]) -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(prog="build_scripts measure scale", description=__doc__)
    parser.add_argument("--models", nargs="*", type=Path, help="models that are run (default: two face detectors)")
    parser.add_argument("--most", type=int, default=os.cpu_count() or 1, help="threads and processes at most")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--pictures", type=int, default=100, help="of a turn")
    options = parser.parse_args(argv)
    use_engine()
    counts = counts_up_to(options.most)
    faces = [MODELS / f"face_detection_{name}_range.tflite" for name in ("short", "full")]
    processor = _processor()
    print(f"# Scale on wasm in CPython\n\n- {processor}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"- the best of {ROUNDS} interleaved rounds; load when it began: {os.getloadavg()[0]:.1f}\n")
    for title, unit, work in (
        ("Threads in one run", "ms", in_one_run),
        ("Sessions side by side, one thread each", "runs/s", side_by_side),
        ("Processes, one thread each", "runs/s", in_processes),
    ):
        rows = [_row(model.stem, counts, work(model, counts), unit) for model in options.models or faces]
        _table(f"{title} ({unit}, and times one)", ["model", *map(str, counts)], rows)
    picture = IMAGES / "astronaut.png"
    if picture.is_file():
        found = of_pictures(picture, counts, options.pictures)
        title = "Pictures/s of a predictor (face detection, 512 x 512 PNG, decoding included)"
        _table(title, ["task", *map(str, counts)], [_row("face-detection", counts, found, "pictures/s")])
    with tempfile.TemporaryDirectory() as place:
        model = small_model(Path(place))
        starts = worker_starts([model, *(options.models or faces)[:1]])
        _table("A worker's start", ["a process with", "s", "s of processor"], starts)
        if options.rows:
            rows = many_rows(Path(place), model, options.rows)
            _table(f"{options.rows:,} rows through one process", ["rows", "rows/s", "MiB"], rows)
    return 0


def _row(name: str, counts: Sequence[int], found: Sequence[float], unit: str) -> list[str]:
    times = [found[0] / value if unit == "ms" else value / found[0] for value in found]
    return [name, *(f"{value:.4g} ({time:.2f})" for value, time in zip(found, times, strict=True))]


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"## {title}\n")
    for row in (columns, ["---"] * len(columns), *rows):
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
