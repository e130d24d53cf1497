"""Products with weights in blocks, attention over a cache, and the draw of a word."""

from __future__ import annotations

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.dtypes import DType
from webinfer.graph.ir import Node, Op
from webinfer.ops import language as ops
from webinfer.ops.language import BlockType


def weights(data: Array, type: BlockType) -> Array:
    """The float32 numbers that rows of blocks stand for. Source: the block layouts of the GGUF format"""
    rows = data.shape[0]
    blocks = np.ascontiguousarray(data).reshape(-1, type.nbytes)
    if type.is_float:
        flat = np.ascontiguousarray(data).reshape(-1)
        if type is BlockType.BF16:
            return (flat.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(rows, -1)
        return flat.view("<f4" if type is BlockType.F32 else "<f2").astype(np.float32).reshape(rows, -1)
    unpack = {256: _large, 32: _small}[type.elements]
    return unpack(blocks, type).astype(np.float32).reshape(rows, -1)


def _half(blocks: Array, at: int) -> Array:
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(bytes_: Array) -> Array:
    return np.concatenate([bytes_ & 15, bytes_ >> 4], axis=-1)


def _small(blocks: Array, type: BlockType) -> Array:
    d = _half(blocks, 0)
    if type is BlockType.Q8_0:
        return np.asarray(d * blocks[:, 2:].view(np.int8))
    with_minimum, five = type in (BlockType.Q4_1, BlockType.Q5_1), type in (BlockType.Q5_0, BlockType.Q5_1)
    at = 4 if with_minimum else 2
    q = _nibbles(blocks[:, at + 4 * five :]).astype(np.float32)
    if five:
        q += 16 * np.unpackbits(blocks[:, at : at + 4], axis=1, bitorder="little")
    return np.asarray(d * q + (_half(blocks, 2) if with_minimum else d * (-16 if five else -8)))


def _large(blocks: Array, type: BlockType) -> Array:
    count = len(blocks)
    if type is BlockType.Q6_K:
        low = _nibbles(blocks[:, :128].reshape(count, 2, 64))  # [.., half, 128]
        high = blocks[:, 128:192].reshape(count, 2, 1, 32) >> np.array([0, 2, 4, 6]).reshape(4, 1) & 3
        q = (low | high.reshape(count, 2, 128) << 4).astype(np.float32) - 32
        scales = blocks[:, 192:208].view(np.int8).astype(np.float32) * _half(blocks, 208)
        found: Array = (q.reshape(count, 16, 16) * scales[:, :, None]).reshape(count, 256)
        return found
    s = blocks[:, 4:16]
    scale = np.concatenate([s[:, :4] & 63, s[:, 8:] & 15 | s[:, :4] >> 6 << 4], axis=1)
    minimum = np.concatenate([s[:, 4:8] & 63, s[:, 8:] >> 4 | s[:, 4:8] >> 6 << 4], axis=1)
    five = type is BlockType.Q5_K
    q = _nibbles(blocks[:, 48 if five else 16 :].reshape(count, 4, 32)).reshape(count, 8, 32)
    if five:
        q = q | (blocks[:, None, 16:48] >> np.arange(8).reshape(8, 1) & 1) << 4
    d, m = _half(blocks, 0) * scale, _half(blocks, 2) * minimum
    return np.asarray(d[:, :, None] * q - m[:, :, None]).reshape(count, 256)


def in_fifteen_bits(x: Array) -> Array:
    """Rows whose elements are whole numbers from -16256 to 16256 times a scale, one for each 32."""
    blocks = x.astype(np.float32).reshape(-1, 32)
    top = np.abs(blocks).max(-1, keepdims=True)
    inverse = np.divide(np.float32(16256), top, out=np.zeros_like(top), where=top > 0)
    return np.asarray(wide(np.rint(blocks * inverse)) * wide(top / np.float32(16256))).reshape(x.shape)


def _block_matmul(inputs: Inputs, node: Node) -> list[Array]:
    x, w = (required(array) for array in inputs[:2])
    type = node.attrs.type
    y = (wide(x) if type.is_float else in_fifteen_bits(x)) @ wide(weights(w, type)).T
    for more in inputs[2:4]:
        y = y if more is None else y + wide(more)
    if inputs[4:] and inputs[4] is not None:
        y = np.where(np.arange(len(y))[:, None] < inputs[4][1], y, 0)
    return [rounded(y, node.output.type)]


def _block_rows(inputs: Inputs, node: Node) -> list[Array]:
    table, ids = (required(array) for array in inputs)
    known = np.where((ids >= 0) & (ids < len(table)), ids, 0)
    return [weights(table[known], node.attrs.type)]


def turn(x: Array, first: int, speeds: Array, turned: int, adjacent: bool) -> Array:
    """Rows of heads [M, H, D] turned by their positions, from `first` on."""
    positions = np.arange(first, first + len(x), dtype=np.float32)
    angles = np.asarray(positions[:, None] * speeds.astype(np.float32), np.float64)[:, None, :]
    y, half = wide(x).copy(), turned // 2
    a, b = (slice(0, turned, 2), slice(1, turned, 2)) if adjacent else (slice(half), slice(half, turned))
    left, right = y[..., a].copy(), y[..., b].copy()
    y[..., a] = left * np.cos(angles) - right * np.sin(angles)
    y[..., b] = left * np.sin(angles) + right * np.cos(angles)
    return y


def _opened_floats(cache: Array, rows: Array, first: int, keys: bool) -> Array:
    """Puts rows into a cache from a position on; all that it holds, [groups, capacity, D]."""
    if not keys:
        cache[:, first : first + len(rows)] = np.swapaxes(rows, 0, 1)
        return cache
    flat = np.swapaxes(cache, 2, 3)
    for i, row in enumerate(rows):
        flat[:, (first + i) // ops.LANES, (first + i) % ops.LANES] = row
    return flat.reshape(len(cache), -1, cache.shape[2])


def _in_thirteen_bits(x: Array) -> tuple[Array, Array]:
    """Rows as whole numbers from -4095 to 4095, and their scales."""
    x = x.astype(np.float32)
    top = np.abs(x).max(-1, keepdims=True)
    inverse = np.divide(np.float32(ops.MOST), top, out=np.zeros_like(top), where=top > 0)
    return np.rint(x * inverse), np.asarray(top / np.float32(ops.MOST))


def _opened_whole(cache: Array, rows: Array, first: int, keys: bool) -> Array:
    """The same with a cache of whole numbers and scales."""
    groups, lanes, head = len(cache), ops.LANES, ops.LANES * ops.SCALE
    width = cache.shape[2] // lanes - ops.SCALE
    scales = np.ascontiguousarray(cache[:, :, :head]).view(np.float32)
    if keys:
        numbers = cache[:, :, head:].reshape(groups, -1, width // 2, lanes, 2).transpose(0, 1, 3, 2, 4)
    else:
        numbers = cache[:, :, head:].reshape(groups, -1, lanes // 2, width, 2).transpose(0, 1, 2, 4, 3)
    numbers = numbers.reshape(groups, -1, lanes, width).copy()
    for i, (row, its_scales) in enumerate(zip(*_in_thirteen_bits(rows), strict=True)):
        at = (slice(None), (first + i) // lanes, (first + i) % lanes)
        numbers[at], scales[at] = row, its_scales[:, 0]
    if keys:
        words = numbers.reshape(groups, -1, lanes, width // 2, 2).transpose(0, 1, 3, 2, 4)
    else:
        words = numbers.reshape(groups, -1, lanes // 2, 2, width).transpose(0, 1, 2, 4, 3)
    cache[:, :, :head], cache[:, :, head:] = scales.view(np.int16), words.reshape(*cache.shape[:2], -1)
    found: Array = (wide(numbers) * wide(scales)[..., None]).reshape(groups, -1, width)
    return found


def _cached_attention(inputs: Inputs, node: Node) -> list[Array]:
    q, k, v, place, speeds, keys, values = (required(array) for array in inputs)
    a, rows, last = node.attrs, len(q), node.required_input(6).type
    _, capacity, width = ops.cache_sizes(last)
    first, some = int(place[0]), min(int(place[1]), rows)
    y = np.zeros(q.shape)
    if first < 0 or some < 1 or first + some > capacity:
        return [rounded(y, node.output.type)]
    q, k, v = (x.reshape(rows, -1, width) for x in (q, k, v))
    q, k = (turn(x, first, speeds, a.turned, a.adjacent) for x in (q, k))
    keys, values = (x if x.flags.writeable else x.copy() for x in (keys, values))
    opened = _opened_floats
    if last.dtype is DType.INT16:
        opened, (whole, scales) = _opened_whole, _in_thirteen_bits(q)
        q = wide(whole) * wide(scales)
    flat = opened(keys, k[:some], first, True), opened(values, v[:some], first, False)
    k, v = (np.repeat(wide(x[:, : first + some]), a.heads // a.groups, axis=0) for x in flat)
    logits = np.einsum("ihd,hpd->hip", q[:some], k) * a.scale
    seen = np.arange(k.shape[1])[None, :] <= first + np.arange(some)[:, None]
    logits = np.where(seen, logits, -np.inf)
    share = np.exp(logits - logits.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    y[:some] = np.einsum("hip,hpd->ihd", share, v).reshape(some, -1)
    return [rounded(y, node.output.type)]


def _swiglu(inputs: Inputs, node: Node) -> list[Array]:
    gate, up = (wide(required(array)) for array in inputs)
    return [rounded(gate / (1 + np.exp(-gate)) * up, node.output.type)]


def _sample(inputs: Inputs, node: Node) -> list[Array]:
    x, options = (required(array).reshape(-1) for array in inputs)
    temperature, most, share, draw = map(float, options)
    order = np.argsort(-x, kind="stable")
    largest = order[0]
    if temperature > 0:
        order = order[: int(most)] if 1 <= most < len(order) else order
        every = np.exp((wide(x) - x.max()) / temperature)
        kept = every[order]
        whole = kept.sum()
        count = max(1, int(np.searchsorted(np.cumsum(kept), share * whole)) + 1) if share < 1 else len(order)
        reached = np.cumsum(kept[:count])
        order = order[min(int(np.searchsorted(reached, draw * reached[-1], side="right")), count - 1) :]
    return [np.array([order[0], largest], np.int32)]


LOWERINGS: dict[Op, Compute] = {
    ops.BLOCK_MATMUL: _block_matmul,
    ops.BLOCK_ROWS: _block_rows,
    ops.CACHED_ATTENTION: _cached_attention,
    ops.SAMPLE: _sample,
    ops.SWIGLU: _swiglu,
}
