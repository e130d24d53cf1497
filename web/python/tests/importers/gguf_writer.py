"""GGUF files that the tests write themselves: tiny decoders with seeded weights of any type."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webinfer.ops.language import BlockType, row_bytes

LETTERS = {bool: (7, "<?"), int: (4, "<I"), float: (6, "<f")}
Stored = tuple[BlockType | int, Sequence[int], bytes]  # type, sizes innermost first, bytes


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, list):
        items = [_value(item) for item in value] or [struct.pack("<I", 4)]
        return struct.pack("<I", 9) + items[0][:4] + struct.pack("<Q", len(value)) + b"".join(i[4:] for i in items)
    kind, letter = LETTERS[type(value)]
    return struct.pack("<I", kind) + struct.pack(letter, value)


def gguf(facts: Mapping[str, Any], tensors: Mapping[str, Stored]) -> bytes:
    """A file of version 3."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts))
    head += b"".join(_text(key) + _value(value) for key, value in facts.items())
    body = b""
    for name, (kind, sizes, data) in tensors.items():
        body += bytes(-len(body) % 32)
        head += _text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, int(kind), len(body))
        body += data
    return head + bytes(-len(head) % 32) + body


def block_bytes(type: BlockType, n: int, k: int, rng: np.random.Generator) -> bytes:
    """Seeded weights of about -0.2 to 0.2 in blocks."""
    if type.is_float:
        numbers = rng.normal(0, 0.1, n * k).astype(np.float32)
        if type is BlockType.BF16:
            return (numbers.view(np.uint32) >> 16).astype("<u2").tobytes()
        return numbers.astype("<f4" if type is BlockType.F32 else "<f2").tobytes()
    data = rng.integers(0, 256, (n * row_bytes(type, k) // type.nbytes, type.nbytes), np.uint8)
    span = {"Q4_0": 8, "Q4_1": 8, "Q5_0": 16, "Q5_1": 16, "Q8_0": 128, "Q4_K": 256, "Q5_K": 512, "Q6_K": 2048}[
        type.name
    ]

    def put(at: int, scale: float) -> None:
        data[:, at : at + 2] = np.full(len(data), scale, "<f2").view(np.uint8).reshape(-1, 2)

    put(208 if type is BlockType.Q6_K else 0, 0.2 / span)
    if type.name.endswith("_1"):
        put(2, -0.2)
    elif type.name in ("Q4_K", "Q5_K"):
        put(2, 0.2 / 64)
    return data.tobytes()


def tiny_decoder(
    architecture: str = "llama", type: BlockType = BlockType.Q4_1, tokens: Sequence[str] = (), tied: bool = True,
    blocks: int = 2, width: int = 64, heads: int = 4, groups: int = 2, inner: int = 96, context: int = 256,
    more: Mapping[str, Any] | None = None, seed: int = 3,
) -> bytes:  # fmt: skip
    """A decoder small enough to be read in milliseconds; K types need sizes of whole 256s."""
    rng = np.random.default_rng(seed)
    count, head = len(tokens) or 48, width // heads
    if architecture == "qwen3":  # whose heads are wider than a part of a row
        head *= 2
        more = {"qwen3.attention.key_length": head, "qwen3.attention.value_length": head, **(more or {})}
    facts: dict[str, Any] = {
        "general.architecture": architecture, f"{architecture}.block_count": blocks,
        f"{architecture}.context_length": context, f"{architecture}.embedding_length": width,
        f"{architecture}.feed_forward_length": inner, f"{architecture}.attention.head_count": heads,
        f"{architecture}.attention.head_count_kv": groups, f"{architecture}.rope.freq_base": 100.0,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5, **(more or {}),
    }  # fmt: skip
    tensors: dict[str, Stored] = {}

    def matrix(name: str, n: int, k: int, kind: BlockType = type) -> None:
        tensors[name] = (kind, (k, n), block_bytes(kind, n, k, rng))

    def vector(name: str, n: int, middle: float) -> None:
        tensors[name] = (BlockType.F32, (n,), (middle + rng.normal(0, 0.1, n)).astype("<f4").tobytes())

    matrix("token_embd.weight", count, width)
    for block in range(blocks):
        at = f"blk.{block}."
        vector(f"{at}attn_norm.weight", width, 1)
        vector(f"{at}ffn_norm.weight", width, 1)
        for name, n, k in (
            ("attn_q", heads * head, width), ("attn_k", groups * head, width), ("attn_v", groups * head, width),
            ("attn_output", width, heads * head), ("ffn_gate", inner, width), ("ffn_up", inner, width),
            ("ffn_down", width, inner),
        ):  # fmt: skip
            matrix(f"{at}{name}.weight", n, k)
            if architecture == "qwen2" and name in ("attn_q", "attn_k", "attn_v"):
                vector(f"{at}{name}.bias", n, 0)
            if architecture == "qwen3" and name in ("attn_q", "attn_k"):
                vector(f"{at}{name}_norm.weight", head, 1)
    vector("output_norm.weight", width, 1)
    if not tied:
        matrix("output.weight", count, width)
    return gguf(facts, tensors)
