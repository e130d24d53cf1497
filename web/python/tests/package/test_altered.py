"""Packages whose facts were altered and sealed again: the engine gives the right numbers, or a typed error."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.package.altered import altered

import webinfer
from webinfer.errors import WebinferError
from webinfer.package import compile_model
from webinfer.package.container import Package, Writer
from webinfer.package.proofs import check_gpu, check_wasm
from webinfer.package.reading import PackagedModel

PLAN = "wasm/scalar"
GIVEN = {"x": [-1.0, 0.0, 1.0, 2.0], "z": [0.5, -3.0, 2.0, 1.0]}


@pytest.fixture(scope="module")
def package() -> Package:
    """Two inputs and two outputs, for both backends."""
    builder = webinfer.GraphBuilder("small")
    x, z = builder.input("x", (1, 4)), builder.input("z", (1, 4))
    added = builder.node("add", builder.node("linear", x, a=2.0, b=-1.0), z)
    builder.output(builder.node("softmax", added, axis=1), "y")
    builder.output(builder.node("relu", added), "w")
    made = compile_model(builder, backend=("wasm", "webgpu"), builds=("scalar",), threads=False)
    return Package(memoryview(asyncio.run(made)), "small")


def sealed(package: Package, plan: Any) -> bytes:
    """The package with another plan, and right hashes."""
    writer = Writer()
    writer.weights(bytes(package.section("weights")))
    for name, *_ in package.header["sections"]:
        if name != "weights":
            writer.sections[name] = bytes(package.section(name))
    writer.sections[PLAN] = json.dumps(plan).encode()
    return writer.file({key: value for key, value in package.header.items() if key != "sections"})


async def outputs_of(data: bytes) -> Any:
    from array import array

    with await webinfer.load(data, backend="wasm") as session:
        outputs = await session.run({name: array("f", values) for name, values in GIVEN.items()})
        return {name: tensor.tolist() for name, tensor in outputs.items()}


def test_altered_plans_give_right_numbers_or_typed_errors(package: Package) -> None:
    graph, plan = PackagedModel(package), package.json(PLAN)
    sources = package.section("weights"), package.section(f"{PLAN}/programs")
    right, wrong, refused = asyncio.run(outputs_of(sealed(package, plan))), [], 0
    for i, (what, other) in enumerate(altered(plan)):
        proved = holds(lambda other=other: check_wasm(other, graph, sources, plan["heap"], plan["abi"]))  # type: ignore[misc]
        refused += not proved
        if proved or i % 20 == 0:  # to load one takes a quarter of a second
            try:
                found = asyncio.run(outputs_of(sealed(package, other)))
            except WebinferError:
                continue
            if found != right:
                wrong.append((what, found))
    assert not wrong, (len(wrong), wrong[:20])
    assert refused > 300


def holds(proof: Any) -> bool:
    """Whether a proof holds; what is not an error of ours becomes one in package.reading."""
    try:
        proof()
    except (WebinferError, KeyError, TypeError, ValueError, IndexError, AttributeError):
        return False
    return True


def test_a_plan_for_a_gpu_is_proved_before_it_runs(package: Package) -> None:
    graph, shaders, plan = PackagedModel(package), package.json("webgpu/shaders"), package.json("webgpu/0")
    room, passing = len(package.section("weights")), []
    check_gpu(plan, shaders, graph, room)
    for what, other in altered(plan):
        if holds(lambda other=other: check_gpu(other, shaders, graph, room)):  # type: ignore[misc]
            passing.append(what)
    harmless = ("memory", *(f"dispatches.{i}.0:" for i in range(len(plan["dispatches"]))))  # and the names of shaders
    assert not [what for what in passing if not what.startswith(harmless)], passing
