"""Native LiteRT (XNNPACK) in this process: the reference for answers, and the physical reference for times."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter

Array = np.ndarray[Any, np.dtype[Any]]


class NativeModel:
    """One model with a number of threads."""

    def __init__(self, path: Path, threads: int) -> None:
        self._interpreter = Interpreter(model_path=str(path), num_threads=threads)
        self._interpreter.allocate_tensors()
        self.inputs = self._interpreter.get_input_details()
        self.outputs = self._interpreter.get_output_details()

    def run(self, inputs: list[Array]) -> list[Array]:
        """Copies of the outputs, in the model's order."""
        for detail, array in zip(self.inputs, inputs, strict=True):
            self._interpreter.set_tensor(detail["index"], array)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(detail["index"]) for detail in self.outputs]


class NativeSystem:
    """Answers the page's calls as the workers of the other systems do (page/runner.js)."""

    def __init__(self, models: dict[str, Path], inputs: dict[str, list[Array]]) -> None:
        self._models, self._inputs = models, inputs
        self._live: dict[tuple[str, int], NativeModel] = {}
        self._loading: dict[int, str] = {}
        self._lock = threading.Lock()

    def answer(self, call: dict[str, Any]) -> dict[str, Any]:
        """{"value": ...} or {"error": text}."""
        with self._lock:
            try:
                return {"value": self._call(call["method"], call)}
            except Exception as error:
                return {"error": f"{type(error).__name__}: {error}"}

    def _call(self, method: str, call: dict[str, Any]) -> Any:
        threads = int(call["threads"])
        if method == "start":
            return {"version": _version()}
        if method == "load":
            return self._load(str(call["model"]), threads)
        name = self._loading[threads]
        if method == "state":
            return {"memory_bytes": None, "downloads": {}}
        if method == "close":
            self._live.pop((name, threads), None)
            return None
        model, inputs = self._live[name, threads], self._inputs[name]
        if method == "warm":
            return _warm(model, inputs, float(call["ms"]), int(call["runs"]))
        return {"times": [_timed(model, inputs) for _ in range(int(call["runs"]))]}

    def _load(self, name: str, threads: int) -> dict[str, Any]:
        begin = time.perf_counter()
        model = NativeModel(self._models[name], threads)
        loaded = time.perf_counter()
        model.run(self._inputs[name])
        first = time.perf_counter()
        self._live[name, threads], self._loading[threads] = model, name
        times = {"load_ms": 1000 * (loaded - begin), "first_run_ms": 1000 * (first - loaded)}
        return {**times, "max_abs_diff": 0.0, "max_rel_diff": 0.0, "note": ""}


def _timed(model: NativeModel, inputs: list[Array]) -> float:
    begin = time.perf_counter()
    model.run(inputs)
    return 1000 * (time.perf_counter() - begin)


def _warm(model: NativeModel, inputs: list[Array], ms: float, runs: int) -> dict[str, float]:
    begin = time.perf_counter()
    times: list[float] = []
    while True:
        times.append(_timed(model, inputs))
        spent = 1000 * (time.perf_counter() - begin)
        if (len(times) >= runs and spent >= ms) or spent >= 3 * ms:
            return {"runs": len(times), "run_ms": min(times[len(times) // 2 :])}


def _version() -> str:
    from importlib.metadata import version

    return f"ai-edge-litert {version('ai-edge-litert')}"
