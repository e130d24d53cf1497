"""What a GGUF file says of its model: sizes, and how positions turn. From metadata, never from a model's name."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from webinfer.errors import LimitError, ModelFormatError, UnsupportedOpError
from webinfer.graph.printer import safe_name
from webinfer.importers.gguf.container import GgufFile
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.language import MAX_HEAD

# architecture -> whether the elements of a pair that turns lie side by side
ADJACENT = {"llama": True, "qwen2": False, "qwen3": False}
HEAD_NORMS = "attn_q_norm.weight", "attn_k_norm.weight"  # in every block, or in none
MAX_BLOCKS = 512
MAX_SIZE = 1 << 20  # of a row


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder of the llama family: blocks of attention over a cache and SwiGLU, each behind an RMS norm.

    `speeds` are radians a position of the pairs that turn; `context` the positions that the model was trained for.
    With `head_norms` each head of queries and keys is normed before it turns.
    """

    name: str
    layers: int
    width: int
    inner: int
    heads: int
    groups: int
    head_width: int
    epsilon: float
    speeds: tuple[float, ...]
    adjacent: bool
    context: int
    vocabulary: int
    head_norms: bool


def architecture_of(file: GgufFile) -> Architecture:
    """What the metadata says.

    Raises:  UnsupportedOpError naming an architecture, or what of it is not read; ModelFormatError; LimitError
    """
    name = file.fact("general.architecture", str)
    if name not in ADJACENT:
        raise UnsupportedOpError([f"the architecture {safe_name(name)}; {', '.join(ADJACENT)} are read"])

    def size(key: str, most: int = MAX_SIZE, default: int | None = None) -> int:
        found = file.fact(f"{name}.{key}", int, default)
        if not 1 <= found <= most:
            raise LimitError(f"{file.name!r}: {name}.{key}", found, most, "sizes are from 1; the file may be damaged")
        return found

    heads, width = size("attention.head_count"), size("embedding_length")
    head_width = size("attention.key_length", MAX_HEAD, max(1, width // heads))
    turned = size("rope.dimension_count", head_width, head_width)
    epsilon = file.fact(f"{name}.attention.layer_norm_rms_epsilon", float)
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.sizes) != 2:
        raise ModelFormatError(f"{file.name!r} has no matrix token_embd.weight; the file is damaged")
    groups = size("attention.head_count_kv", heads, heads)
    if heads % groups or head_width % 4 or turned % 2 or not 0 <= epsilon < 1:
        found = f"{heads} heads of {head_width} in {groups} groups, {turned} elements turn, epsilon {epsilon}"
        raise ModelFormatError(f"{file.name!r}: {found}; these values are inconsistent")
    problems = _refused(file, name, head_width)
    if problems:
        raise UnsupportedOpError(problems)
    return Architecture(
        name, size("block_count", MAX_BLOCKS), width, size("feed_forward_length"), heads, groups, head_width, epsilon,
        _speeds(file, name, turned), ADJACENT[name], size("context_length", 1 << 24), embedding.sizes[1],
        f"blk.0.{HEAD_NORMS[0]}" in file.tensors,
    )  # fmt: skip


def _refused(file: GgufFile, name: str, head_width: int) -> list[str]:
    """Options of the architecture that change what is computed, and are not read."""
    found = []
    if file.facts.get(f"{name}.expert_count", 0):
        found.append("a mixture of experts")
    if file.facts.get(f"{name}.rope.scaling.type", "none") not in ("none", "linear"):
        found.append(f"positions scaled by {safe_name(str(file.facts[f'{name}.rope.scaling.type']))}")
    if file.facts.get(f"{name}.attention.value_length", head_width) != head_width:
        found.append("values of another width than keys")
    unread = {t.type_name for t in file.tensors.values() if t.type is None}
    return found + [f"weights of the type {safe_name(kind)}" for kind in sorted(unread)]


def _speeds(file: GgufFile, name: str, turned: int) -> tuple[float, ...]:
    base = file.fact(f"{name}.rope.freq_base", float, 10000.0)
    slower = 1.0
    if file.facts.get(f"{name}.rope.scaling.type") == "linear":
        slower = file.fact(f"{name}.rope.scaling.factor", float)
    if not (1 <= base < math.inf and 0 < slower < math.inf):
        raise ModelFormatError(f"{file.name!r}: positions with base {base} and factor {slower}; the file is damaged")
    factors: Sequence[float] = [1.0] * (turned // 2)
    stored = file.tensors.get("rope_freqs.weight")
    if stored is not None:
        if stored.type_name != "F32" or stored.sizes != (turned // 2,):
            raise ModelFormatError(f"{file.name!r}: rope_freqs.weight is {stored.type_name} {stored.sizes}")
        factors = struct.unpack(f"<{turned // 2}f", stored.data)
    if not all(0 < factor < math.inf for factor in factors):
        raise ModelFormatError(f"{file.name!r}: rope_freqs.weight holds no positive numbers; the file is damaged")
    return tuple(base ** (-2.0 * i / turned) / slower / factor for i, factor in enumerate(factors))
