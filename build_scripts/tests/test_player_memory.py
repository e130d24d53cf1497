"""The player's memory: plans that lie across and above 2 GiB."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import webinfer
from build_scripts.site.player import SOURCE
from build_scripts.tests.in_node import answer_of, node
from webinfer.backends.wasm.memory import KernelMemory
from webinfer.host.interface import Kernels
from webinfer.package import compile_model

__all__ = ["node"]  # a fixture

RUN = """
import { readFileSync } from "node:fs";
const [player, file] = process.argv.slice(2);
const { load } = await import(player);
const model = await load(new Uint8Array(readFileSync(file)), { backend: "wasm" });
const { y } = await model.run({ x: Float32Array.from({ length: 8 }, (_, i) => i - 3) });
process.stdout.write(JSON.stringify(Array.from(y.data)));
"""


@pytest.mark.parametrize("end", [(1 << 31) - (1 << 12), (1 << 31) + (1 << 20)], ids=["across", "above"])
def test_a_plan_lies_above_two_gigabytes(node: str, end: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of which nothing is written cost a test no memory."""
    begin = KernelMemory.__init__

    def far_up(self: KernelMemory, kernels: Kernels) -> None:
        begin(self, kernels)
        self.end = end

    monkeypatch.setattr(KernelMemory, "__init__", far_up)
    builder = webinfer.GraphBuilder("far")
    x = builder.input("x", (1, 8))
    matrix = builder.constant([float(i % 7 - 3) for i in range(8 * 512)], (8, 512))
    wide = builder.node("relu", builder.node("matmul", x, matrix))
    builder.output(builder.node("reduce_sum", wide, axes=(1,), keep_dims=True), "y")
    package = asyncio.run(compile_model(builder, backend="wasm", builds=("simd128",), threads=False))
    (tmp_path / "far.webinfer").write_bytes(package)
    (tmp_path / "run.mjs").write_text(RUN)
    command = [node, str(tmp_path / "run.mjs"), str(SOURCE / "src" / "player.js"), str(tmp_path / "far.webinfer")]
    given = range(-3, 5)
    columns = [[float(i % 7 - 3) for i in range(column, 8 * 512, 512)] for column in range(512)]
    want = sum(max(sum(a * b for a, b in zip(given, column, strict=True)), 0) for column in columns)
    assert answer_of(command, 60) == [want]
