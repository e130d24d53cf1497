"""Packages whose facts were altered and sealed again: the player gives the right numbers, or a PlayerError."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.package.altered import altered

import webinfer
from build_scripts.site.player import SOURCE
from build_scripts.tests.in_node import PLAYER, answer_of, node
from webinfer.package import compile_model
from webinfer.package.container import Package, Writer

__all__ = ["node"]  # a fixture
PLAN = "wasm/simd128"
LIMIT_S = 200  # for hundreds of packages
RUNS = """
import { readFileSync } from "node:fs";
const [player, cases] = process.argv.slice(2);
const { load } = await import(player);
const found = [];
for (const file of JSON.parse(readFileSync(cases))) {
  let told;
  try {
    const model = await load(new Uint8Array(Buffer.from(file, "base64")), { backend: "wasm" });
    const x = Float32Array.from({ length: 4 }, (_, i) => i - 1);
    const given = Object.fromEntries(model.inputs.map((row) => [row.name, x]));
    const outputs = await model.run(given);
    told = Object.values(outputs).map(({ data, shape }) => [Array.from(data), shape]);
    model.close();
  } catch (error) {
    told = error.name === "PlayerError" ? error.code : `${error.name}: ${error.message}`;
  }
  found.push(told);
}
process.stdout.write(JSON.stringify(found));
"""
PROVES = """
import { readFileSync } from "node:fs";
const [checks, tensors, cases] = process.argv.slice(2);
const { checkGpu } = await import(checks);
const { tensorsOf } = await import(tensors);
const { header, shaders, plans } = JSON.parse(readFileSync(cases));
const found = plans.map((plan) => {
  try {
    checkGpu(plan, shaders, tensorsOf(header), 2 ** 28);
    return "passes";
  } catch (error) {
    return error.name === "PlayerError" ? error.code : "untyped";
  }
});
process.stdout.write(JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def package() -> Package:
    """Two inputs, two outputs and a matrix, for both backends."""
    builder = webinfer.GraphBuilder("small")
    x, z = builder.input("x", (1, 4)), builder.input("z", (1, 4))
    added = builder.node("add", builder.node("linear", x, a=2.0, b=-1.0), z)
    builder.output(builder.node("softmax", added, axis=1), "y")
    builder.output(builder.node("relu", added), "w")
    made = compile_model(builder, backend=("wasm", "webgpu"), builds=("simd128",), threads=False)
    return Package(memoryview(asyncio.run(made)), "small")


def sealed(package: Package, plan: Any = None, header: Any = None) -> bytes:
    """The package with another plan or header, and right hashes."""
    writer = Writer()
    writer.weights(bytes(package.section("weights")))
    for name, *_ in package.header["sections"]:
        if name != "weights":
            writer.sections[name] = bytes(package.section(name))
    if plan is not None:
        writer.sections[PLAN] = json.dumps(plan).encode()
    facts = package.header if header is None else header
    return writer.file({key: value for key, value in facts.items() if key != "sections"})


def test_altered_packages_run_right_or_end_in_a_typed_error(node: str, package: Package, tmp_path: Path) -> None:
    facts = {key: value for key, value in package.header.items() if key not in ("sections", "webgpu", "engine")}
    cases = [("nothing", sealed(package))]
    cases += [(f"plan {what}", sealed(package, plan=plan)) for what, plan in altered(package.json(PLAN))]
    cases += [(f"header {what}", sealed(package, header=header)) for what, header in altered(facts)]
    (tmp_path / "runs.mjs").write_text(RUNS)
    (tmp_path / "cases.json").write_text(json.dumps([base64.b64encode(data).decode() for _, data in cases]))
    found = answer_of([node, tmp_path / "runs.mjs", PLAYER, tmp_path / "cases.json"], LIMIT_S)
    right = found[0]
    assert isinstance(right, list)
    numbers = [value for value, _ in right]
    wrong = {
        name: result
        for (name, _), result in zip(cases, found, strict=True)
        if (result not in CODES if isinstance(result, str) else not same(result, right, numbers, name))
    }
    kinds = Counter(result if isinstance(result, str) else "runs" for result in found)
    assert not wrong, (len(wrong), kinds, dict(list(wrong.items())[:25]))
    assert kinds["package"] > 200


CODES = ("package", "integrity", "unavailable", "input", "kernel", "memory")


def same(result: Any, right: Any, numbers: Any, name: str) -> bool:
    """Whether a run gave the right numbers; a shape of as many elements is the header's own business."""
    return bool(result == right or (name.startswith("header ") and [value for value, _ in result] == numbers))


def test_a_plan_for_a_gpu_is_proved_before_it_runs(node: str, package: Package, tmp_path: Path) -> None:
    plan = package.json("webgpu/0")
    cases = [("nothing", plan), *altered(plan)]
    (tmp_path / "proves.mjs").write_text(PROVES)
    facts = {"header": package.header, "shaders": package.json("webgpu/shaders"), "plans": [each for _, each in cases]}
    (tmp_path / "cases.json").write_text(json.dumps(facts))
    files = [(SOURCE / "src" / name).as_uri() for name in ("checks.js", "tensors.js")]
    found = answer_of([node, tmp_path / "proves.mjs", *files, tmp_path / "cases.json"], LIMIT_S)
    assert found[0] == "passes"
    harmless = ("nothing", "memory", *(f"dispatches.{i}.0:" for i in range(len(plan["dispatches"]))))  # names
    rows = zip((name for name, _ in cases), found, strict=True)
    passing = [name for name, result in rows if result == "passes" and not name.startswith(harmless)]
    assert not passing
    assert "untyped" not in found


HEADERS = """
const [checks, tensors] = process.argv.slice(2);
const [{ checkHeader }, { tensorsOf }] = await Promise.all([import(checks), import(tensors)]);
const inputs = [["x", "float32", [1, 2, 2, 3]], ["h", "float32", [4]]];
const outputs = [["y", "float32", [2]], ["g", "float32", [4]]];
const picture = { width: 2, height: 2, scale: 1, offset: 0, border: 0, sampling: 0, input: "x" };
const state = { input: "h", output: "g", bytes: new Uint8Array(16) };
const judged = (changes, states = []) => {
  const header = { inputs, outputs, task: { picture: { ...picture, ...changes } } };
  try { checkHeader(header, tensorsOf(header), states); } catch (error) { return error.code ?? "untyped"; }
  return "passes";
};
const pictures = [{}, { width: 3 }, { height: 1 }, { width: 1.5 }, { input: "h" }, { input: "none" },
  { scale: NaN }, { offset: "1" }, { border: 0.5 }, { sampling: null }].map((changes) => judged(changes));
const states = [{}, { input: "" }, { output: "" }, { input: "none" }, { output: "none" },
  { input: "", output: "" }, { output: "y" }, { bytes: new Uint8Array(8) }]
  .map((changes) => judged({}, [{ ...state, ...changes }]));
process.stdout.write(JSON.stringify([pictures, states]));
"""


def test_a_header_fits_together_or_is_refused(node: str, tmp_path: Path) -> None:
    """A picture fills its input, and a state is an input, an output or both of one size."""
    (tmp_path / "headers.mjs").write_text(HEADERS)
    files = [(SOURCE / "src" / name).as_uri() for name in ("checks.js", "tensors.js")]
    pictures, states = answer_of([node, tmp_path / "headers.mjs", *files], LIMIT_S)
    assert pictures == ["passes", *["package"] * 9]
    assert states == [*["passes"] * 3, *["package"] * 5]
