"""Operators of ONNX Runtime's own as single ones, for test_onnx_operators: operator, inputs, constants, attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

_RNG = np.random.default_rng(12)


def _real(*shape: int) -> Any:
    return _RNG.uniform(-2, 2, shape).astype(np.float32)


def _half(*shape: int) -> Any:
    return _real(*shape).astype(np.float16)


def _bytes(*shape: int) -> Any:
    return _RNG.integers(0, 256, shape).astype(np.uint8)


def _past(room: int, lengths: list[int]) -> Any:
    """Keys or values of two heads for sequences of these lengths; behind their ends nothing is stored."""
    past = _real(len(lengths), 2, room, 16)
    for row, length in zip(past, lengths, strict=True):
        row[:, length:] = 0
    return past


def _grouped(n: int, new: int, room: int, lengths: list[int]) -> list[Any]:
    """Queries, keys, values and a past for GroupQueryAttention of four heads of queries and two of keys."""
    return [_real(n, new, 64), _real(n, new, 32), _real(n, new, 32), _past(room, lengths), _past(room, lengths)]


def _ends(*lengths: int) -> list[Any]:
    """How many keys there are behind each sequence, less one, and the largest number."""
    return [np.int32([n - 1 for n in lengths]), np.int32(max(lengths))]


def _experts(count: int, size: int, wide: int, inner: int) -> list[Any]:
    """Two layers with a bias for each expert; of a gated activation the first one is twice as wide as its result."""
    return [_real(count, wide, size), _real(count, wide), _real(count, size, inner), _real(count, size)]


def _packed_experts(bits: int, block: int, zeros: bool, wide: int = 64, inner: int = 32) -> list[Any]:
    """The same for three experts of 32 channels with weights of a few bits, a scale a row or a block of it."""
    parts: list[Any] = []
    for n, k in ((wide, 32), (32, inner)):
        scales = _RNG.uniform(0.005, 0.03, (3, n, k // block) if block else (3, n)).astype(np.float32)
        parts += [_bytes(3, n, k * bits // 8), scales, _real(3, n)]
    points = [_bytes(3, n, -(-k // block * bits // 8)) if block else _bytes(3, -(-n * bits // 8))
              for n, k in ((wide, 32), (32, inner))]  # fmt: skip
    return [*parts, None, None, None, *(points if zeros else [])]


_GROUPS = {"num_heads": 4, "kv_num_heads": 2}
_HEADS = {"num_heads": 2}
_SWIGLU = {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1}
_SCALE, _ZERO = np.float32(0.031), np.uint8(127)
_TO = [np.float32(0.017), np.uint8(100)]
_IMAGE, _PIXELS = _bytes(1, 6, 7, 4), [_SCALE, _ZERO]
_TABLES = [np.cos(_real(9, 4)), np.sin(_real(9, 4))]
_FADE, _CORRECT = -np.abs(_real(2, 3, 2)), np.abs(_real(2, 3, 2)) / 2
Run = tuple[str, list[Any], list[Any], dict[str, Any]]
RUNS: dict[str, Run] = {
    "grouped attention, sequences of two lengths": ("GroupQueryAttention", _grouped(2, 1, 5, [5, 3]), _ends(6, 4),
        _GROUPS),
    "grouped attention, room for two lengths": ("GroupQueryAttention", _grouped(2, 1, 9, [5, 3]),
        [*_ends(6, 4), _real(9, 8), _real(9, 8)], {**_GROUPS, "do_rotary": 1}),
    "grouped attention, sinks": ("GroupQueryAttention", _grouped(2, 1, 5, [5, 3]), [*_ends(6, 4), *[None] * 4,
        _real(4)], {**_GROUPS, "local_window_size": 3}),
    "grouped attention, a score of zero beside": ("GroupQueryAttention", _grouped(1, 4, 0, [0]), _ends(4),
        {**_GROUPS, "smooth_softmax": 1}),
    "attention, numbers of keys": ("MultiHeadAttention", [_real(2, 3, 8), _real(2, 5, 8), _real(2, 5, 8)],
        [None, np.int32([5, 2])], _HEADS),
    "attention, numbers and starts of all": ("MultiHeadAttention", [_real(2, 3, 8), _real(2, 5, 8), _real(2, 5, 8)],
        [None, np.int32([5, 2, 0, 3, 6, 0, 5, 7])], _HEADS),
    "attention, a mask of pairs": ("MultiHeadAttention", [_real(2, 3, 8), _real(2, 5, 8), _real(2, 5, 8)],
        [None, _RNG.integers(0, 2, (2, 3, 5)).astype(np.int32)], _HEADS),
    "packed attention, ends and starts": ("Attention", [_real(2, 5, 8)], [_real(8, 24), _real(24),
        np.int32([5, 4, 1, 0])], _HEADS),
    "packed attention, wide values": ("Attention", [_real(2, 5, 8)], [_real(8, 32), _real(32)],
        {**_HEADS, "qkv_hidden_sizes": [8, 8, 16]}),
    "packed attention of halves, a mask, none ahead": ("Attention", [_half(2, 5, 8)], [_half(8, 24), _half(24),
        np.int32([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])], {**_HEADS, "unidirectional": 1}),
    "packed attention of halves, keys for each query": ("Attention", [_half(2, 3, 8)], [_half(8, 24), _half(24),
        _RNG.integers(0, 2, (2, 3, 3)).astype(np.int32)], _HEADS),
    "attention of halves, none ahead": ("MultiHeadAttention", [_half(2, 3, 8), _half(2, 3, 8), _half(2, 3, 8)], [],
        {**_HEADS, "unidirectional": 1}),
    "grouped attention, room behind a first prompt of two": ("GroupQueryAttention", _grouped(2, 4, 9, [0, 0]),
        [*_ends(4, 4), _real(9, 8), _real(9, 8)], {**_GROUPS, "do_rotary": 1}),
    "packed product, columns by importance": ("MatMulNBits", [_real(2, 3, 48)], [_bytes(9, 3, 8), _real(9, 3) / 9,
        None, _RNG.permutation(np.arange(48) // 16).astype(np.int32)], {"N": 9, "K": 48, "block_size": 16}),
    "packed product, columns by importance, real zero points": ("MatMulNBits", [_real(3, 48)], [_bytes(9, 3, 8),
        _real(9, 3) / 9, 4 + _real(9, 3), _RNG.permutation(np.arange(48) // 16).astype(np.int32)],
        {"N": 9, "K": 48, "block_size": 16}),
    "packed product, columns as they are": ("MatMulNBits", [_real(3, 40)], [_bytes(9, 3, 8), _real(9, 3) / 9, None,
        (np.arange(40) // 16).astype(np.int32)], {"N": 9, "K": 40, "block_size": 16}),
    "rows of a table of 2 bits": ("GatherBlockQuantized", [_bytes(9, 8), np.array([[7, 0]]), _real(9, 2), _bytes(9, 1)],
        [], {"block_size": 16, "bits": 2}),
    "experts": ("MoE", [_real(5, 8), _real(5, 4)], _experts(4, 8, 6, 6), {"k": 2, "activation_type": "silu"}),
    "experts, one for each token": ("MoE", [_real(5, 8), _real(5, 4)], _experts(4, 8, 6, 6),
        {"k": 1, "activation_type": "gelu"}),
    "experts, gated, shares of the chosen": ("MoE", [_real(2, 3, 8), _real(6, 4)], _experts(4, 8, 12, 6), {"k": 3,
        "activation_type": "swiglu", "swiglu_fusion": 1, "normalize_routing_weights": 1, "swiglu_limit": 2.0,
        "activation_alpha": 1.702, "activation_beta": 1.0}),
    "experts, some at a time": ("MoE", [_real(3, 2), _real(3, 3)], _experts(3, 2, 4200, 4200), {"k": 2}),
    "packed experts, blocks with zero points": ("QMoE", [_real(5, 32), _real(5, 3)], _packed_experts(4, 16, True),
        {**_SWIGLU, "block_size": 16}),
    "packed experts, rows with zero points": ("QMoE", [_real(5, 32), _real(5, 3)], _packed_experts(4, 0, True),
        _SWIGLU),
    "packed experts, 2 bits": ("QMoE", [_real(5, 32), _real(5, 3)], _packed_experts(2, 16, True),
        {**_SWIGLU, "block_size": 16, "expert_weight_bits": 2}),
    "packed experts, 2 bits of rows": ("QMoE", [_real(5, 32), _real(5, 3)], _packed_experts(2, 0, False),
        {**_SWIGLU, "expert_weight_bits": 2}),
    "packed experts, bytes": ("QMoE", [_real(5, 32), _real(5, 3)], _packed_experts(8, 0, True),
        {**_SWIGLU, "expert_weight_bits": 8}),
    "packed experts, some at a time": ("QMoE", [_real(5, 32), _real(5, 3)], _packed_experts(4, 32, False, 4128, 4128),
        {"k": 1, "block_size": 32}),
    "packed experts, other shares": ("QMoE", [_real(5, 32), _real(5, 3)], [*_packed_experts(4, 0, True), None,
        np.abs(_real(5, 3))], {**_SWIGLU, "normalize_routing_weights": 1}),
    "rotation in sections": ("MRotaryEmbedding", [_real(2, 5, 24), _RNG.integers(0, 9, (3, 2, 5))], _TABLES,
        {"mrope_section": [2, 1, 1], "num_heads": 3}),
    "rotation in turns": ("MRotaryEmbedding", [_real(2, 3, 5, 8), _RNG.integers(0, 9, (3, 2, 5))], _TABLES,
        {"mrope_section": [2, 1, 1], "mrope_layout": 1, "interleaved": 1}),
    "linear attention": ("LinearAttention", [_real(2, 3, 32), _real(2, 3, 16), _real(2, 3, 8), _real(2, 2, 8, 4),
        _FADE, _CORRECT], [], {"q_num_heads": 4, "kv_num_heads": 2}),
    "linear attention, fewer heads of queries": ("LinearAttention", [_real(2, 3, 8), _real(2, 3, 16), _real(2, 3, 8)],
        [], {"q_num_heads": 1, "kv_num_heads": 2, "update_rule": "linear", "scale": 0.7}),
    "gates of linear attention": ("LinearAttentionGate", [_real(2, 3, 4), _real(4), _real(4), _real(2, 3, 4)], [], {}),
    "gated norm": ("GatedRMSNorm", [_real(2, 3, 8), _real(4), _real(2, 3, 8)], [],
        {"activation": "silu", "epsilon": 1e-6}),
    "causal conv": ("CausalConvWithState", [_real(2, 6, 5), _real(6, 1, 3), _real(6), _real(2, 6, 4)], [],
        {"dilation": 2, "activation": "silu"}),
    "causal conv, channels last": ("CausalConvWithState", [_real(2, 2, 2, 3), _real(6, 1, 4)], [],
        {"channels_last": 1}),
    "product, batches inside": ("FusedMatMul", [_real(3, 2, 5), _real(6, 2, 5)], [],
        {"transBatchA": 1, "transBatchB": 1, "transB": 1, "alpha": 0.5}),
    "product, another name": ("TransposeMatMul", [_real(2, 5, 3), _real(2, 5, 6)], [], {"transA": 1}),
    "grid": ("GridSample", [_real(1, 2, 5, 5), _real(1, 3, 4, 2) / 2], [], {"mode": "bilinear", "align_corners": 1}),
    "bytes, channels last": ("QLinearConv", [_IMAGE], [*_PIXELS, _bytes(5, 4, 3, 3), np.float32(0.011), np.uint8(120),
        np.float32(0.53), np.uint8(110)], {"channels_last": 1, "strides": [2, 1]}),
    "bytes, means of windows with channels last": ("QLinearAveragePool", [_IMAGE], [*_PIXELS, *_TO],
        {"channels_last": 1, "kernel_shape": [3, 2]}),
    "bytes, means of windows beyond the end, which count padding": ("QLinearAveragePool", [_bytes(1, 2, 4, 3)],
        [*_PIXELS, *_TO], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 0, 0], "ceil_mode": 1,
        "count_include_pad": 1}),
    "bytes, means with channels last": ("QLinearGlobalAveragePool", [_IMAGE], [*_PIXELS, *_TO], {"channels_last": 1}),
    "bytes, where": ("QLinearWhere", [_RNG.integers(0, 2, (1, 6, 7, 4)).astype(bool), _IMAGE], [*_PIXELS, _bytes(7, 1),
        np.float32(0.023), np.uint8(90), *_TO], {}),
}  # fmt: skip
RUNS = {name: ("com.microsoft." + run[0], *run[1:]) for name, run in RUNS.items()}
