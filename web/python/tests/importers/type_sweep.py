"""Models of one operator whose tensors have other element types than the operator is made for.

Each must end in a typed error, or run: then no step leaves its tensor, no byte of the gaps between tensors is touched,
and wasm computes what the reference does. What is read is planned for webgpu too, for three kinds of device; a share of
the models runs there.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import traceback
from collections.abc import Iterator
from types import ModuleType
from typing import Any, cast

import numpy as np
from tests.importers import paper_host
from tests.importers.float_runs import FLOAT_RUNS
from tests.importers.mutations import Tally
from tests.importers.quantized_runs import QUANTIZED_RUNS
from tests.importers.runs import Run
from tests.importers.tflite_writer import Array, single
from tests.ops.case_graphs import run as on_loop
from tests.webgpu.devices import HARDWARE, MODERN, SOFTWARE

from webinfer.backends import reference
from webinfer.backends.webgpu.schedule import make_schedule
from webinfer.errors import GpuError, KernelError, LimitError, UnsupportedOpError, WebinferError
from webinfer.graph.ir import Graph, TensorType
from webinfer.graph.verify import verify
from webinfer.host.interface import Host
from webinfer.importers import read_model
from webinfer.lowering.affine import is_stored
from webinfer.ops.elementwise import FLOOR_DIV
from webinfer.passes.pipeline import optimize

DEVICES = (HARDWARE, SOFTWARE, MODERN)
RUNS = [*FLOAT_RUNS, *QUANTIZED_RUNS]
Kind = tuple[str, tuple[float, int] | None]
KINDS: tuple[Kind, ...] = (
    ("float32", None), ("float16", None), ("int8", (0.05, 3)), ("uint8", (0.04, 120)), ("int16", (0.001, 0)),
    ("int32", (0.002, 0)), ("int8", None), ("uint8", None), ("int32", None), ("int64", None), ("bool", None),
)  # fmt: skip


def _show(kind: Kind) -> str:
    return kind[0] + ("*" if kind[1] else "")


def _is_tensor(given: Any) -> bool:
    """Whether an operand of a run is a value, no constant."""
    return given is not None and not isinstance(given, np.ndarray) and not isinstance(given[0], np.ndarray)


def _retyped(given: Any, kind: Kind) -> Any:
    """An operand of another kind: values keep their shape, constants their numbers where the type holds them."""
    dtype, quant = kind
    if _is_tensor(given):
        return (given[0], dtype, quant, *given[3:])
    array: Array = given if isinstance(given, np.ndarray) else given[0]
    numbers = array.astype(np.float64)
    if quant is not None and array.dtype == np.float32:
        numbers = np.round(numbers / quant[0]) + quant[1]
    if dtype not in ("float32", "float16", "bool"):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        numbers = np.clip(numbers, max(low, -(2**31)), min(high, 2**31 - 1))
    array = numbers.astype(dtype)
    return array if quant is None else (array, quant)


def variants(run: Run) -> Iterator[tuple[str, Run]]:
    """The run with all its inputs of one kind and all results of one, then with one operand of another kind."""
    for before in KINDS:
        inputs = [_retyped(x, before) if _is_tensor(x) else x for x in run.inputs]
        for after in KINDS:
            outputs = [(y[0], *after) for y in run.outputs]
            label = f"{run}, {_show(before)} to {_show(after)}"
            yield label, dataclasses.replace(run, inputs=inputs, outputs=outputs)
    for i, x in enumerate(run.inputs):
        for kind in KINDS if x is not None else ():
            inputs = [*run.inputs[:i], _retyped(x, kind), *run.inputs[i + 1 :]]
            yield f"{run}, input {i} {_show(kind)}", dataclasses.replace(run, inputs=inputs)
    for i, y in enumerate(run.outputs):
        for kind in KINDS:
            outputs = [*run.outputs[:i], (y[0], *kind), *run.outputs[i + 1 :]]
            yield f"{run}, result {i} {_show(kind)}", dataclasses.replace(run, outputs=outputs)


def _draw(run: Run, type: TensorType, rng: np.random.Generator) -> Array:
    if type.dtype.is_float:
        return rng.uniform(run.low, run.high, type.shape).astype(type.dtype.value)
    low, high = type.dtype.range
    if type.quant is None:
        low, high = max(low, int(min(run.low, 0))), min(high, int(max(run.high, 1)))
    low, high = max(low, -30_000), min(high, 30_000)
    return rng.integers(low, max(high, low + 1), type.shape, endpoint=True).astype(type.dtype.value)


async def _compute(backend: ModuleType, host: Host, graph: Graph, arrays: list[Array]) -> list[Array]:
    executor = await backend.build(graph, host)
    try:
        views = {v.name: memoryview(a.tobytes()) for v, a in zip(graph.inputs, arrays, strict=True)}
        results = await executor.run(views)
        return [results[v.name].numpy().copy() for v in graph.outputs]
    finally:
        executor.close()


def _differs(got: Array, want: Array, graph: Graph) -> bool:
    absolute = sum(node.op.tolerance.absolute for node in graph.nodes)
    relative = sum(node.op.tolerance.relative for node in graph.nodes)
    floors = any(n.op is FLOOR_DIV for n in graph.nodes) and any(is_stored(v.type) for v in graph.inputs)
    if floors or not np.issubdtype(want.dtype, np.floating):
        absolute = max(absolute, 1.0)  # where a real number is rounded, a tie may fall either way
    elif want.dtype == np.float16:
        absolute, relative = absolute + 2e-3, relative + 2e-3
    finite = want[np.isfinite(want)].astype(np.float64)
    scale = max(1.0, float(np.abs(finite).max(initial=0.0)))
    a, b = got.astype(np.float64), want.astype(np.float64)
    return got.dtype != want.dtype or not np.allclose(a, b, rtol=relative, atol=absolute * scale, equal_nan=True)


def attempt(label: str, run: Run, host: Host | None, tally: Tally, *, on_gpu: bool = False) -> None:
    """One model: refused with a typed error, or planned within its tensors and, with a host, computed right."""
    try:
        data = single(run.op, run.inputs, run.outputs, run.version, **run.options)
    except Exception:  # of the file's writer, which lacks some combinations
        return
    try:
        graph = read_model(data, "retyped")
        optimize(graph)
        verify(graph)
        if _plan_for_webgpu(graph, label, tally) and on_gpu and host is not None:
            _judge_on_gpu(graph, run, host, label, tally)
        paper_host.plan(graph)
        if host is None or _judge(graph, run, host, label, tally):
            tally.results += 1
    except KernelError as error:  # a lowering that mistakes its types
        tally.others.append(f"{label}: {error}")
    except WebinferError as error:
        tally.errors[error.code] += 1
    except Exception:
        tally.others.append(f"{label}: {traceback.format_exc(limit=-3)}")


def _plan_for_webgpu(graph: Graph, label: str, tally: Tally) -> bool:
    """Whether all devices run the graph; a dispatch that would leave its tensor is noted."""
    try:
        for target in DEVICES:
            make_schedule(graph, target)
    except KernelError as error:
        tally.others.append(f"{label}: {error}")
        return False
    except (UnsupportedOpError, LimitError):
        tally.webgpu["refused"] += 1
        return False
    tally.webgpu["planned"] += 1
    return True


def _judge_on_gpu(graph: Graph, run: Run, host: Host, label: str, tally: Tally) -> None:
    from webinfer.backends import webgpu

    arrays, wanted = _wanted(graph, run)
    tally.webgpu["ran"] += 1
    try:
        _compare("webgpu", on_loop(_compute(webgpu, host, graph, arrays)), wanted, graph, label, tally)
    except GpuError as error:  # a shader that does not compile is a lowering's mistake
        tally.others.append(f"{label}: {error}")


def _judge(graph: Graph, run: Run, host: Host, label: str, tally: Tally) -> bool:
    """Whether a guarded run gives the reference's result; what is wrong is noted."""
    from tests.wasm import guards

    arrays, wanted = _wanted(graph, run)
    try:
        found = asyncio.run(_compute(guards, host, graph, arrays))
    except guards.GuardError as error:
        tally.touched += 1
        tally.others.append(f"{label}: {error}")
        return False
    tally.untouched += 1
    return _compare("wasm", found, wanted, graph, label, tally)


def _wanted(graph: Graph, run: Run) -> tuple[list[Array], list[Array]]:
    """Inputs, and what the reference makes of them."""
    rng = np.random.default_rng(5)
    arrays = [_draw(run, v.type, rng) for v in graph.inputs]
    with np.errstate(all="ignore"):
        return arrays, asyncio.run(_compute(reference, cast(Host, None), graph, arrays))


def _compare(who: str, found: list[Array], wanted: list[Array], graph: Graph, label: str, tally: Tally) -> bool:
    """Whether all results are right; the first that is not is noted."""
    for got, want in zip(found, wanted, strict=True):
        if _differs(got, want, graph):
            tally.others.append(f"{label}: {who} computes {got.ravel()[:4]}, the reference {want.ravel()[:4]}")
            return False
    return True


def size() -> int:
    """How many models the whole sweep has."""
    return sum(1 for run in RUNS for _ in variants(run))


def sweep(host: Host | None, share: float = 1.0, seed: int = 1, gpu_share: float = 0.0) -> Tally:
    """Outcomes of the models, or of a random share of them; a share of these runs on the host's GPU too."""
    tally, rng = Tally(), random.Random(seed)
    for run in RUNS:
        for label, variant in variants(run):
            if share >= 1.0 or rng.random() < share:
                attempt(label, variant, host, tally, on_gpu=random.Random(f"{seed} {label}").random() < gpu_share)
    return tally
