"""What a package's plans say, proved against the memory and the buffers that there are, before anything is written.

The player does the same in web/player/src/checks.js.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from webinfer.errors import LimitError, ModelFormatError
from webinfer.graph.ir import Graph
from webinfer.kernel_constants import MEMORY_MAX_BYTES, PROGRAM_HEADER_WORDS, PROGRAM_MAGIC, PROGRAM_VERSION

MAX_GROUPS = 65535  # of a dispatch in each direction
ALIGNMENT = 256  # of what a shader is given, in a buffer


def whole(number: Any) -> int:
    """A number from 0 up.

    Raises:  ModelFormatError
    """
    if type(number) is not int or not 0 <= number < 1 << 53:
        raise ModelFormatError(f"a package has {str(number)[:40]!r} where a whole number belongs")
    return number


def referenced(programs: bytes | memoryview, addresses: Iterable[int]) -> int:
    """How many of these addresses programs name."""
    data = memoryview(programs)[: len(programs) // 4 * 4]
    words = {word for (word,) in struct.iter_unpack("<I", data)}
    return sum(address in words for address in addresses)


def order_of(plan: Mapping[str, Any]) -> int:
    """CRC-32 of what a plan for a GPU runs, in which order and between which buffers; names do not count."""
    rows = [list(row[1:]) for row in plan["dispatches"]]
    facts = [plan["buffers"], plan["prepare"], plan["freed"], plan["inputs"], plan["outputs"], plan["uniforms"], rows]
    return zlib.crc32(json.dumps(facts, separators=(",", ":")).encode())


def bindings_of(form: Mapping[str, Any]) -> int:
    """CRC-32 of what a plan says of open sizes: which words follow which expressions, and for which sizes it holds."""
    sizes = form["sizes"]
    facts = [len(sizes["symbols"]), sizes["atoms"], sizes["guards"], sizes["values"]]
    facts += [form[key] for key in sorted(form) if key not in ("sizes", "bindings")]
    return zlib.crc32(json.dumps(facts, separators=(",", ":")).encode())


def check_bindings(form: Mapping[str, Any]) -> None:
    """Proves that what follows sizes is what was compiled.

    Raises:  ModelFormatError
    """
    if form.get("bindings") != bindings_of(form):
        raise _refuse("its sizes are bound in another way than it was made with")


def _refuse(what: str) -> ModelFormatError:
    return ModelFormatError(f"a package breaks its form: {what}")


def _inside(at: Any, nbytes: Any, low: int, high: int, what: str) -> None:
    if whole(at) < low or whole(nbytes) > high - at:
        raise _refuse(f"{what} lies at {at} with {nbytes} bytes, outside of {low} to {high}")


def _apart(spans: Iterable[tuple[int, int]], what: str) -> None:
    for (at, nbytes), (after, _) in pairwise(sorted(span for span in spans if span[1])):
        if at + nbytes > after:
            raise _refuse(f"{what} share bytes")


def _fitting(plan: Mapping[str, Any], graph: Graph, taken: Sequence[Sequence[int]]) -> None:
    """That inputs, outputs and weights are those that the plan was made for; older packages do not say it."""
    if (made := plan.get("for")) is None:
        if "for" in plan:
            raise _refuse("it does not say what its plan was made for")
        return
    if made["weights"] != [sum(at for at, _ in taken), sum(nbytes for _, nbytes in taken)]:
        raise _refuse("its plan was made for other weights than those that it takes")
    for key, values in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        if made[key] != (own := [[v.name, v.type.dtype.value, list(v.type.shape)] for v in values]):
            raise _refuse(f"its plan was made for other {key}: {made[key]}, not {own}")


# ----- kernels


def check_wasm(plan: Mapping[str, Any], graph: Graph, sources: Sequence[memoryview], heap: int, abi: int) -> None:
    """Proves a plan for one thread on kernels whose memory begins at `heap`; `sources`: weights, programs.

    Raises:  ModelFormatError, LimitError; KeyError, TypeError or ValueError where facts are missing or of other types
    """
    found = _written(plan, graph, sources, heap, abi)
    used = [plan["program"]] if plan["prepare"] is None else [plan["program"], plan["prepare"]]
    _used(found, used)
    if len(plan["steps"]) != plan["program"][1]:
        raise _refuse("its steps have other names")
    _ends(plan, graph, heap, (plan["program"][0], found[plan["program"][0]][1]))
    weights = [row for row in plan["writes"] if row[1] == 0]
    _fitting(plan, graph, [row[2:] for row in weights])
    if "referenced" in plan:
        ends = zip((*graph.inputs, *graph.outputs), (*plan["inputs"], *plan["outputs"]), strict=True)
        starts = [*(at for v, at in ends if v.type.nbytes), *(row[0] for row in weights)]
        if referenced(sources[1], starts) != plan["referenced"]:
            raise _refuse("its programs name other addresses than its plan")


def check_open_wasm(plan: Mapping[str, Any], graph: Graph, sources: Sequence[memoryview], heap: int, abi: int) -> None:
    """As `check_wasm`, of plans for several regimes of sizes; what their words are is checked where they are read.

    Raises:  as `check_wasm`
    """
    found = _written(plan, graph, sources, heap, abi)
    if not plan["regimes"]:
        raise _refuse("it has no plan for any size")
    _used(found, [*(regime["program"] for regime in plan["regimes"]), *plan["prepares"]])
    for regime in plan["regimes"]:
        check_bindings(regime)
        (address, steps), end = regime["program"], regime["first"] + 4 * regime["count"]
        if len(regime["steps"]) != steps:
            raise _refuse("its steps have other names")
        _inside(regime["first"], 4 * regime["count"], heap, plan["top"], "what follows sizes")
        _inside(address, found[address][1], regime["first"], end, "a program that follows sizes")
    taken = [row[2:] for row in plan["writes"] if row[1] == 0]
    if plan["weights"] != [sum(at for at, _ in taken), sum(nbytes for _, nbytes in taken)]:
        raise _refuse("its plan was made for other weights than those that it takes")


def _written(
    plan: Mapping[str, Any], graph: Graph, sources: Sequence[memoryview], heap: int, abi: int
) -> dict[int, tuple[int, int]]:
    """Proves that what is written fits memory; the steps and bytes of programs by address."""
    if whole(plan["top"]) > MEMORY_MAX_BYTES:
        raise LimitError(f"memory of package {graph.name!r} in bytes", plan["top"], MEMORY_MAX_BYTES, "it is damaged")
    if whole(plan["heap"]) != heap or plan["abi"] != abi or plan["top"] < heap:
        raise ModelFormatError(f"package {graph.name!r} is laid out for other kernels than those in it")
    for address, source, at, nbytes in plan["writes"]:
        if source not in (0, 1):
            raise _refuse(f"it writes from source {source}")
        _inside(at, nbytes, 0, len(sources[source]), "what a write takes")
        _inside(address, nbytes, heap, plan["top"], "a write")
    _apart(((address, nbytes) for address, _, _, nbytes in plan["writes"]), "two writes")
    return _programs(plan, sources[1])


def _ends(plan: Mapping[str, Any], graph: Graph, heap: int, program: tuple[int, int]) -> None:
    """Proves that inputs and outputs lie in memory, and beside the program (its address and bytes)."""
    for key, values in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        spans = [(whole(at), v.type.nbytes) for v, at in zip(values, plan[key], strict=True)]
        for at, nbytes in spans:
            if nbytes:
                _inside(at, nbytes, heap, plan["top"], f"one of the {key}")
            _apart([(at, nbytes), program], f"the program and one of the {key}")
        if key == "inputs":
            _apart(spans, "two inputs")


def _programs(plan: Mapping[str, Any], data: memoryview) -> dict[int, tuple[int, int]]:
    """Proves that each program is one; steps and bytes by address."""
    found = dict[int, tuple[int, int]]()
    for address, source, at, nbytes in plan["writes"]:
        if source == 1:
            if nbytes < 4 * PROGRAM_HEADER_WORDS:
                raise _refuse("a program without a head")
            magic, version, records, words = struct.unpack_from("<4I", data, at)
            if (magic, version, 4 * words) != (PROGRAM_MAGIC, PROGRAM_VERSION, nbytes):
                raise _refuse("a program that is none, or of another length")
            found[address] = records, nbytes
    return found


def _used(found: Mapping[int, tuple[int, int]], used: Sequence[Sequence[Any]]) -> None:
    """Proves that what runs are the programs that there are."""
    for address, steps in used:
        if found.get(whole(address), (None,))[0] != whole(steps):
            raise _refuse(f"there is no program of {steps} steps at {address}")
    if {*found} != {address for address, _ in used}:
        raise _refuse("it has a program that never runs")


# ----- GPU


def check_gpu(plan: Mapping[str, Any], shaders: Sequence[Mapping[str, Any]], graph: Graph, weights: int) -> None:
    """Proves a plan for a GPU: spans lie in buffers, what is read was written, shaders are there. `weights`: bytes.

    Raises:  as `check_wasm`
    """
    sizes = [whole(size) for size in plan["buffers"]]
    every = [*sizes, len(bytes.fromhex(plan["uniforms"]))]  # the constants' buffer comes last
    filled, later = _filled(plan, graph, sizes, weights), {*plan["inputs"]}
    if whole(plan["prepare"]) > len(plan["dispatches"]):
        raise _refuse("more is prepared than there is")
    for i, row in enumerate(plan["dispatches"]):
        used = _dispatch(row, shaders, every, filled)
        later.update(used if i >= plan["prepare"] else ())
    later |= _results(plan, graph, sizes, filled)
    if any(whole(buffer) >= len(sizes) or buffer in later for buffer in plan["freed"]):
        raise _refuse("a buffer is freed and used")
    _fitting(plan, graph, [row[1:] for row in plan["writes"]])
    if plan.get("order") != order_of(plan) and ("order" in plan or "for" in plan):
        raise _refuse("it runs in another order, or between other buffers, than it was made with")


def _filled(plan: Mapping[str, Any], graph: Graph, sizes: Sequence[int], weights: int) -> set[int]:
    """The buffers that weights and inputs are written to, each of which has room for them."""
    filled = set[int]()
    for buffer, at, nbytes in plan["writes"]:
        if whole(buffer) >= len(sizes) or whole(nbytes) > -(-sizes[buffer] // 4) * 4:
            raise _refuse(f"a write of {nbytes} bytes into buffer {buffer}")
        _inside(at, nbytes, 0, weights, "what a write takes")
        filled.add(buffer)
    for value, buffer in zip(graph.inputs, plan["inputs"], strict=True):
        if whole(buffer) >= len(sizes) or value.type.nbytes > sizes[buffer]:
            raise _refuse(f"{value.name} has no buffer of {value.type.nbytes} bytes")
        filled.add(buffer)
    return filled


def _results(plan: Mapping[str, Any], graph: Graph, sizes: Sequence[int], filled: set[int]) -> set[int]:
    """The buffers of the outputs, each of which is written."""
    found = set[int]()
    for value, span in zip(graph.outputs, plan["outputs"], strict=True):
        if (0 if span is None else span[2]) != value.type.nbytes:
            raise _refuse(f"{value.name} has {value.type.nbytes} bytes, and its plan gives others")
        if span is not None:
            found.add(_span(span, sizes, value.name))
            if span[1] % 4 or span[0] not in filled:
                raise _refuse(f"{value.name} is in buffer {span[0]} at {span[1]}, which nothing writes")
    return found


def _span(row: Sequence[Any], sizes: Sequence[int], what: str) -> int:
    buffer, offset, nbytes = map(whole, row)
    if buffer >= len(sizes):
        raise _refuse(f"{what} names buffer {buffer} of {len(sizes)}")
    _inside(offset, nbytes, 0, -(-sizes[buffer] // 4) * 4, what)
    return buffer


def _dispatch(
    row: Sequence[Any], shaders: Sequence[Mapping[str, Any]], sizes: Sequence[int], filled: set[int]
) -> list[int]:
    """Proves a dispatch and notes what it writes; the buffers that it uses."""
    label, number, bindings, groups = row
    kinds = shaders[whole(number)]["bindings"] if whole(number) < len(shaders) else None
    if kinds is None or len(kinds) != len(bindings):
        raise _refuse(f"{label} has no shader that takes {len(bindings)} buffers")
    buffers = [_span(span, sizes, str(label)) for span in bindings]
    for kind, buffer, (_, offset, nbytes) in zip(kinds, buffers, bindings, strict=True):
        if (kind == "uniform") is not (buffer == len(sizes) - 1) or offset % ALIGNMENT or not nbytes:
            raise _refuse(f"{label} takes {nbytes} bytes at {offset} of buffer {buffer} as {kind}")
        if kind == "read" and buffer not in filled:
            raise _refuse(f"{label} reads buffer {buffer}, which nothing writes before")
    filled.update(buffer for kind, buffer in zip(kinds, buffers, strict=True) if kind == "write")
    if len(groups) != 3 or any(whole(count) > MAX_GROUPS or not count for count in groups):
        raise _refuse(f"{label} has the groups {groups}")
    return buffers
