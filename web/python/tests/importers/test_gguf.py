"""GGUF files become graphs that compute what the equations say; damaged ones are refused in tokens."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from tests.importers.gguf_writer import gguf, tiny_decoder
from tests.language.decoder_reference import ReferenceDecoder
from tests.ops.case_graphs import run

from webinfer.backends.base import BuildOptions
from webinfer.backends.wasm import BACKEND
from webinfer.errors import LimitError, ModelFormatError, UnsupportedOpError, WebinferError
from webinfer.host.native import NativeHost
from webinfer.importers import read_model
from webinfer.importers.formats import outline
from webinfer.importers.gguf import container
from webinfer.importers.gguf.architecture import architecture_of
from webinfer.importers.gguf.container import read_file
from webinfer.importers.gguf.decoder import decoder_graph, input_names, output_names
from webinfer.ops.language import BlockType
from webinfer.spans import FileSpan

IDS = [3, 17, 40, 5, 5, 22, 9, 31, 2, 11, 47]
MANY = 8


async def _logits(data: bytes) -> np.ndarray:
    """Of every token: the first ones in one part of many rows, with some left over, the others one by one."""
    file = read_file(memoryview(data), "tiny")
    graph = decoder_graph(file, architecture_of(file), (1, MANY), 32)
    executor = await BACKEND.build(graph, NativeHost(), BuildOptions())

    async def step(part: int, rows: int, at: int, count: int) -> np.ndarray:
        ids, last = input_names(rows)
        given = [*IDS[at : at + count], *[0] * (rows - count)]
        inputs = {
            "place": struct.pack("<2i", at, count), "options": bytes(16), ids: struct.pack(f"<{rows}i", *given),
            last: struct.pack("<i", count - 1),
        }  # fmt: skip
        return np.array((await executor.run_part(part, inputs, output_names(rows)[1:2]))[output_names(rows)[1]].numpy())

    rows = [await step(1, MANY, 0, 5), await step(1, MANY, 5, 3)]
    rows += [await step(0, 1, at, 1) for at in range(8, len(IDS))]
    executor.close()
    return np.concatenate(rows)


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("type", BlockType, ids=lambda type: type.name)
def test_logits_are_those_of_the_equations(architecture: str, type: BlockType) -> None:
    large = {"width": 256, "inner": 256} if type.elements == 256 else {}
    data = tiny_decoder(architecture, type, tied=type is not BlockType.Q8_0, **large)  # type: ignore[arg-type]
    got, want = run(_logits(data)), ReferenceDecoder(data).logits(IDS)
    want = want[[4, 7, *range(8, len(IDS))]]
    assert np.abs(got - want).max() <= (1e-4 if type.is_float else 1e-3) * np.ptp(want)


class _File:
    """A file whose reads are counted (spans.LargeFile)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.size, self.reads = data, len(data), list[tuple[int, int]]()

    def read(self, at: int, nbytes: int) -> memoryview:
        self.reads.append((at, nbytes))
        return memoryview(self.data)[at : at + nbytes]

    def copy_into(self, at: int, array: bytearray) -> None:
        array[:] = self.data[at : at + len(array)]

    def close(self) -> None:
        self.data = b""


@pytest.mark.parametrize("head", [16, 300, 1 << 20])
def test_of_a_file_that_is_not_in_memory_only_the_head_is_read(monkeypatch: pytest.MonkeyPatch, head: int) -> None:
    monkeypatch.setattr(container, "HEAD_BYTES", head)
    data = tiny_decoder()
    file, whole = _File(data), read_file(memoryview(data), "tiny")
    found = read_file(FileSpan(file, 0, file.size), "tiny")  # type: ignore[arg-type]
    assert found.facts == whole.facts
    assert file.reads[0] == (0, min(head, len(data)))
    assert (len(file.reads) == 1) == (head > len(data))
    for name, stored in whole.tensors.items():
        span = found.tensors[name].data
        assert isinstance(span, FileSpan)
        assert span.view() == stored.data
        room = bytearray(len(span))
        span.copy_into(room)
        assert room == stored.data
    with pytest.raises(ModelFormatError, match=r"the download was cut off|the file is damaged"):
        read_file(FileSpan(file, 0, 700), "tiny")


@pytest.mark.parametrize("window", [9, 24, 1 << 20])
def test_lists_of_texts_are_read_window_by_window(monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    monkeypatch.setattr(container, "WINDOW", window)
    texts = ["", "a", "a text of some length", "", "\u00e9\u4e2d", "x" * 40]
    data = gguf({"plain": texts, "with zeros": [*texts, "\0"], "empty": [""], "after": 7}, {})
    assert read_file(memoryview(data), "tiny").facts == {
        "plain": texts, "with zeros": [*texts, "\0"], "empty": [""], "after": 7
    }  # fmt: skip
    cut = data.index(b"some length")
    with pytest.raises(ModelFormatError, match="ends inside"):
        read_file(memoryview(data[:cut]), "tiny")


def test_a_session_of_a_file_takes_one_word_a_run() -> None:
    graph = read_model(tiny_decoder(), "tiny")
    assert [v.name for v in graph.inputs] == ["place", "options", "ids_1", "last_1"]
    assert len(graph.resident) == 4
    name, facts = outline(memoryview(tiny_decoder()), "tiny")
    assert (name, facts.facts["general.architecture"]) == ("GGUF", "llama")
    assert facts.values["token_embd.weight"].type == "Q4_1 [48, 64]"


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (tiny_decoder("mamba"), UnsupportedOpError, "the architecture mamba; llama, qwen2, qwen3 are read"),
        (tiny_decoder(more={"llama.expert_count": 8}), UnsupportedOpError, "mixture of experts"),
        (tiny_decoder(more={"llama.rope.scaling.type": "yarn"}), UnsupportedOpError, "positions scaled by yarn"),
        (tiny_decoder(more={"llama.attention.head_count": 0}), LimitError, "head_count"),
        (tiny_decoder(more={"llama.attention.head_count_kv": 3}), ModelFormatError, "in 3 groups"),
        (tiny_decoder(more={"llama.feed_forward_length": 128}), ModelFormatError, "blk.0.ffn_gate.weight is of sizes"),
        (gguf({"general.architecture": "llama"}, {}), ModelFormatError, "is missing"),
        (gguf({}, {"x": (10, (256,), bytes(84))}), ModelFormatError, "general.architecture is missing"),
        (gguf({}, {"x": (3, (33,), bytes(84))}), ModelFormatError, "no whole blocks of Q4_1"),
        (gguf({"general.alignment": 3}, {}), ModelFormatError, "power of two"),
        (tiny_decoder()[:-9], ModelFormatError, "cut off"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0) + bytes(64), ModelFormatError, "version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**40, 0) + bytes(64), LimitError, "tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**60) + bytes(9), ModelFormatError, "ends inside"),
    ],
)
def test_what_cannot_be_read_is_said(data: bytes, error: type[WebinferError], said: str) -> None:
    with pytest.raises(error, match=said):
        read_model(data, "tiny")
