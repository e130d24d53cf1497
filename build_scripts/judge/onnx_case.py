"""Node cases of the package `onnx`: read, run many in one graph, compared as the package's own runner compares."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from build_scripts.judge.together import Array, Outcome, Problem, outcomes, verdict_of
from webinfer.dtypes import DType
from webinfer.errors import LimitError, UnsupportedOpError, WebinferError
from webinfer.graph.ir import Graph, Value
from webinfer.importers import read_model
from webinfer.session.loading import load

# Cases whose expected numbers are rounding errors of the runner that made them, or that ONNX Runtime does not give.
_NOISE = "expects 1.9e-7 of a float32 transform where the exact result is 0, and allows 1e-7"
_DRAWN = "expects the numbers that another generator drew"
_CORNERS = "expects a result whose size is no whole number; ONNX Runtime, as we do, aligns the last element there is"
DISPUTED = {
    **{f"test_resize_downsample_scales_{mode}_align_corners": _CORNERS for mode in ("linear", "cubic")},
    **dict.fromkeys(("test_dft_inverse", "test_dft_inverse_opset19"), _NOISE),
    **{f"test_bernoulli{kind}{way}": _DRAWN for kind in ("", "_double", "_seed") for way in ("", "_expanded")},
}
_AT_RUN_TIME = "is computed at run time"
_DEPENDS = "depends on data"


@dataclass(frozen=True)
class Case:
    """One case: a model, its inputs and outputs by name, and how near the outputs must be."""

    name: str
    operator: str
    model: Any
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    rtol: float
    atol: float


@dataclass
class Reading:
    """What the importer makes of a case: the file's bytes, or why it is not read."""

    case: Case
    data: bytes = b""
    verdict: str = ""  # unsupported or wrong, where the case is decided already
    why: str = ""
    bound: list[str] = field(default_factory=list)  # inputs whose numbers were bound when the model was read
    live: bool = False  # whether data decides what runs, or a run changes a state, so that only a session can run it

    def graph(self) -> Graph:
        """The graph, made anew: passes rewrite graphs in place."""
        given = {name: array for name, array in self.case.inputs.items() if name not in self.bound}
        sizes = {
            info.name: given[info.name].shape
            for info in self.case.model.graph.input
            if info.name in given and hasattr(given[info.name], "shape") and _is_open(info)
        }
        return read_model(self.data, self.case.name, sizes)


def _is_open(info: Any) -> bool:
    kind = info.type.tensor_type
    return not kind.HasField("shape") or any(not d.HasField("dim_value") for d in kind.shape.dim)


def load_cases(words: Sequence[str] = ()) -> list[Case]:
    """All cases whose names hold one of the words, in the package's order; all cases without words."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return [_case(raw) for raw in found if not words or any(word in raw.name for word in words)]


def _case(raw: Any) -> Case:
    (inputs, outputs) = raw.data_sets[0]
    graph = raw.model.graph
    base = re.sub(r"_expanded.*$", "", raw.name.removeprefix("test_"))
    names = [node.op_type for node in graph.node]
    return Case(
        raw.name,
        names[0] if len(names) == 1 else f"parts of {base}",
        raw.model,
        {info.name: _array(a) for info, a in zip(graph.input, inputs, strict=True)},
        {info.name: _array(a) for info, a in zip(graph.output, outputs, strict=True)},
        raw.rtol,
        raw.atol,
    )


def _array(value: Any) -> Any:
    """The value as an array, if it is a tensor of a type that NumPy has; else the value itself."""
    from onnx import TensorProto, numpy_helper

    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, (np.ndarray, np.generic, int, float)) else value


def read_all(cases: Sequence[Case]) -> list[Reading]:
    """Every case as the importer reads it."""
    return [_read(case) for case in cases]


def _read(case: Case) -> Reading:
    reading = Reading(case, case.model.SerializeToString())
    error = _attempt(reading)
    if error is not None and (_AT_RUN_TIME in str(error) or _DEPENDS in str(error)):
        reading.bound, reading.data = _with_bound_inputs(case)
        error = _attempt(reading)
        if error is not None and (_AT_RUN_TIME in str(error) or _DEPENDS in str(error)):
            reading.bound, reading.live, error = [], True, None
    if isinstance(error, (UnsupportedOpError, LimitError)):
        problems = error.problems if isinstance(error, UnsupportedOpError) else [str(error)]
        reading.verdict, reading.why = "unsupported", re.sub(r" \(operators? [^)]*\)", "", "; ".join(problems))
    elif error is not None:
        reading.verdict, reading.why = "wrong", f"{type(error).__name__}: {error}"
    return reading


def _attempt(reading: Reading) -> Exception | None:
    try:
        reading.live = bool(reading.graph().states)
    except Exception as error:  # untyped ones are wrong
        return error
    return None


def _with_bound_inputs(case: Case) -> tuple[list[str], bytes]:
    """The model with inputs of few numbers as constants; real ones (scales of sizes) only behind the first input."""
    from onnx import numpy_helper

    model = type(case.model)()
    model.CopyFrom(case.model)
    bound = []
    for i, (name, array) in enumerate(case.inputs.items()):
        kinds = "iubf" if i else "iub"
        if isinstance(array, np.ndarray) and array.dtype.kind in kinds and array.ndim <= 1 and array.size <= 64:
            bound.append(name)
            model.graph.initializer.append(numpy_helper.from_array(array, name))
    kept = [info for info in model.graph.input if info.name not in bound]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return bound, model.SerializeToString()


async def judge(host: Any, backend: str, readings: Sequence[Reading]) -> list[dict[str, Any]]:
    """A row for each case: right, unsupported, disputed or wrong, and why."""
    ready = [reading for reading in readings if not reading.verdict and not reading.live]
    found = await outcomes(host, backend, [_problem(reading) for reading in ready])
    by_reading = dict(zip(map(id, ready), found, strict=True))
    for reading in readings:
        if reading.live:
            by_reading[id(reading)] = await _live_outcome(host, backend, reading.case)
    rows = []
    for reading in readings:
        verdict, why = reading.verdict, reading.why
        if not verdict:
            verdict, why = _verdict(reading.case, by_reading[id(reading)])
        rows.append({
            "backend": backend, "operator": reading.case.operator, "case": reading.case.name, "verdict": verdict,
            "why": why, "bound": bool(reading.bound),
        })  # fmt: skip
    return rows


async def _live_outcome(host: Any, backend: str, case: Case) -> Outcome:
    try:
        with await load(case.model.SerializeToString(), backend=backend, strict=True, host=host) as session:
            results = await session.run(case.inputs)
            return {name: results[name].numpy().copy() for name in case.outputs}
    except Exception as error:  # which the verdict names
        return error


def _problem(reading: Reading) -> Problem:
    kinds = reading.graph().outer

    def array(value: Value) -> Array:
        given = np.asarray(reading.case.inputs[value.name], order="C")
        if given.dtype.name != kinds.get(value.name, value.type.dtype).value or given.shape != value.type.shape:
            raise WebinferError(f"input {value.name} is {value.type}, the case gives {given.dtype}{given.shape}")
        return given

    return Problem(reading.graph, array, list(reading.case.outputs))


def _verdict(case: Case, outcome: Outcome) -> tuple[str, str]:
    if isinstance(outcome, Exception):
        return verdict_of(outcome)
    why = "; ".join(filter(None, (difference(case, name, outcome[name]) for name in case.outputs)))
    if why and case.name in DISPUTED:
        return "disputed", DISPUTED[case.name]
    return ("wrong", why) if why else ("right", "")


def difference(case: Case, name: str, got: Array) -> str:
    """What is wrong with an output: its type, its shape, or a number out of bounds; integers must be equal."""
    want = case.outputs[name]
    if not isinstance(want, np.ndarray):
        return f"{name} is an array, must be {type(want).__name__}"
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{name} is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}"
    if not DType(want.dtype.name).is_float:
        bad = got != want
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        bad = ~np.isclose(a, b, case.rtol, case.atol, equal_nan=True)
        if want.dtype.name in ("float16", "bfloat16"):  # two steps of the type may be more than the relative tolerance
            digits = 11 if want.dtype == np.float16 else 8
            with np.errstate(invalid="ignore"):
                step = np.ldexp(1.0, np.maximum(np.frexp(b)[1] - digits, -24 if digits == 11 else -133))
                bad &= ~(np.abs(a - b) <= 2 * step)
    if not bad.any():
        return ""
    at = int(np.argmax(bad.reshape(-1)))
    found, needed = got.reshape(-1)[at], want.reshape(-1)[at]
    return f"{name}: {int(bad.sum())} of {got.size} wrong; at {at} {found!r}, must be {needed!r}"
