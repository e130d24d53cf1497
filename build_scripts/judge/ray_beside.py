"""One Ray pipeline twice: with webinfer's predictor and with an ONNX Runtime session an actor, each in turn.

Runs in the environment of `judge engines`. Prints rows a second of each round, and the ratio of the medians.
"""

import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import ray

from webinfer.scale import Predictor, ray_data

ROUNDS, BATCH, WORKERS = 5, 16, 2
TOLERANCE = 1e-3  # of the largest output


class Native:
    """A session of ONNX Runtime with one thread, opened once an actor."""

    def __init__(self, model: str) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._input, self._output = self._session.get_inputs()[0].name, self._session.get_outputs()[0].name

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        rows = [self._session.run([self._output], {self._input: row[None]})[0][0] for row in batch["x"]]
        return {"id": batch["id"], "y": np.stack(rows)}


def main(model: str, count: int) -> int:
    """0 if both give the same numbers for so many rows."""
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    (given,), output = session.get_inputs(), session.get_outputs()[0].name
    shape = [size if isinstance(size, int) else 1 for size in given.shape][1:]
    rng = np.random.default_rng(0)
    items = [{"id": i, "x": rng.random(shape, np.float32)} for i in range(count)]
    os.environ["OMP_NUM_THREADS"] = "1"
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    rows = ray.data.from_items(items, override_num_blocks=2 * WORKERS).materialize()
    predict = Predictor(model, backend="wasm", columns="x", outputs={output: "y"}, batch_size=BATCH)
    pipelines = {
        "webinfer": lambda: ray_data.predict(rows, predict, concurrency=WORKERS),
        "onnxruntime": lambda: rows.map_batches(
            Native, fn_constructor_args=(model,), batch_size=BATCH, concurrency=WORKERS, num_cpus=1
        ),
    }
    speeds: dict[str, list[float]] = {name: [] for name in pipelines}
    found: dict[str, np.ndarray] = {}
    for _ in range(ROUNDS):
        for name, pipeline in pipelines.items():
            begin = time.perf_counter()
            result: Any = pipeline().materialize()  # type: ignore[no-untyped-call]
            speeds[name].append(count / (time.perf_counter() - begin))
            if name not in found:
                ordered = sorted(result.take_all(), key=lambda row: row["id"])
                found[name] = np.stack([np.asarray(row["y"], np.float32).reshape(-1) for row in ordered])
    ray.shutdown()
    apart = float(np.abs(found["webinfer"] - found["onnxruntime"]).max() / np.abs(found["onnxruntime"]).max())
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    for name, values in speeds.items():
        print(f"{name:12} {medians[name]:8.1f} rows/s  ({', '.join(f'{value:.1f}' for value in values)})")
    print(f"ours / native {medians['webinfer'] / medians['onnxruntime']:.2f}, {apart:.1e} of the largest apart")
    return 0 if apart < TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve()), int(sys.argv[2])))
