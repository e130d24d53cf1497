"""ONNX operators beside the runtime that they come from: one model each, all in one graph on each backend."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from tests.importers.contributed_runs import RUNS as CONTRIBUTED
from tests.importers.int8_range import int8_ends
from tests.importers.learned_runs import RUNS as LEARNED

import webinfer
from build_scripts.judge.onnx_case import Case, judge, read_all
from webinfer.host.native import NativeHost

_RNG = np.random.default_rng(5)


def _real(*shape: int) -> Any:
    return _RNG.uniform(-2, 2, shape).astype(np.float32)


def _whole(dtype: str, *shape: int) -> Any:
    most = min(119, int8_ends()[1]) if dtype == "int8" else 119
    return _RNG.integers(0, most + 1, shape).astype(dtype)


def _positions(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


IMAGE, ROW, TABLE, VOLUME = _real(1, 4, 6, 8), _real(2, 3, 9), _real(3, 5), _real(2, 4, 5, 4, 6)
_WEIGHTS = [_real(2, 16, 2), _real(2, 16, 4), _real(2, 32)]
# name → operator, inputs, constants behind them, attributes
RUNS: dict[str, tuple[str, list[Any], list[Any], dict[str, Any]]] = {
    "conv, padded": ("Conv", [IMAGE], [_real(5, 4, 3, 3), _real(5)], {"pads": [1, 0, 1, 2], "strides": [2, 1]}),
    "conv, same lower": ("Conv", [IMAGE], [_real(5, 4, 2, 2)], {"auto_pad": "SAME_LOWER"}),
    "conv, groups": ("Conv", [IMAGE], [_real(6, 2, 3, 3)], {"group": 2, "dilations": [1, 2]}),
    "conv, depthwise": ("Conv", [IMAGE], [_real(8, 1, 3, 3)], {"group": 4}),
    "conv of rows": ("Conv", [ROW], [_real(4, 3, 3), _real(4)], {"pads": [2, 1]}),
    "conv of volumes": ("Conv", [VOLUME], [_real(5, 4, 2, 3, 2), _real(5)],
        {"pads": [1, 0, 1, 1, 2, 0], "strides": [2, 1, 2], "dilations": [2, 1, 1]}),
    "conv of volumes, groups": ("Conv", [VOLUME], [_real(6, 2, 3, 3, 3)], {"group": 2, "auto_pad": "SAME_UPPER"}),
    "conv of volumes, planes alone": ("Conv", [VOLUME], [_real(5, 4, 3, 1, 1), _real(5)], {"strides": [2, 1, 1]}),
    "transposed conv of volumes": ("ConvTranspose", [VOLUME], [_real(4, 3, 3, 2, 2), _real(3)],
        {"strides": [2, 1, 2], "pads": [1, 0, 1, 0, 1, 0], "output_padding": [1, 0, 0]}),
    "transposed conv of volumes, far apart": ("ConvTranspose", [VOLUME], [_real(4, 3, 1, 2, 2), _real(3)],
        {"strides": [3, 2, 2], "output_padding": [2, 1, 1]}),
    "transposed conv of volumes, groups": ("ConvTranspose", [VOLUME], [_real(4, 3, 2, 2, 2), _real(6)],
        {"strides": [2, 2, 1], "dilations": [2, 1, 2], "group": 2}),
    "rest of floats": ("Mod", [_real(40), np.where(np.arange(40) % 9, _real(40), np.inf).astype("f4")], [],
        {"fmod": 1}),
    "weights of bands": ("MelWeightMatrix", [], [np.int64(8), np.int64(64), np.int64(8000), np.float32(20),
        np.float32(3900)], {}),
    "transform, one side": ("DFT", [_real(2, 512, 1) / 50], [], {"onesided": 1}),
    "transform back": ("DFT", [_real(2, 512, 2)], [], {"inverse": 1}),
    "transform back to real numbers": ("DFT", [_real(2, 257, 2)], [], {"inverse": 1, "onesided": 1}),
    "frames": ("STFT", [_real(2, 1000, 1) / 50], [np.int64(60), _real(256)], {}),
    "mean pool of volumes": ("AveragePool", [VOLUME], [], {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2]}),
    "transposed conv": ("ConvTranspose", [IMAGE], [_real(4, 3, 3, 3)], {"strides": [2, 2], "output_padding": [1, 0]}),
    "transposed conv, shape": ("ConvTranspose", [IMAGE], [_real(4, 2, 3, 3)],
        {"strides": [2, 2], "output_shape": [12, 16]}),
    "max pool, ceil": ("MaxPool", [IMAGE], [], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "max pool beyond the end": ("MaxPool", [_real(1, 2, 2, 5)], [], {"kernel_shape": [3, 3], "strides": [2, 2]}),
    "mean pool beyond the end": ("AveragePool", [_real(1, 2, 4, 2)], [], {"kernel_shape": [6, 3], "strides": [3, 2]}),
    "mean pool, pads": ("AveragePool", [IMAGE], [],
        {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "count_include_pad": 1}),
    "mean pool of rows": ("AveragePool", [ROW], [], {"kernel_shape": [4], "strides": [3]}),
    "norm of an image": ("GlobalLpPool", [IMAGE], [], {"p": 3}),
    "celu": ("Celu", [ROW], [], {"alpha": 0.5}),
    "celu, falling": ("Celu", [ROW], [], {"alpha": -0.5}),
    "sums of no products": ("MatMul", [_real(2, 3, 0)], [_real(2, 0, 4)], {}),
    "sums of no products, a bias": ("Gemm", [_real(2, 0)], [_real(0, 3), _real(3)], {}),
    "largest of nothing": ("ReduceMax", [_real(2, 0, 3)], [_positions(1)], {"keepdims": 0}),
    "least of nothing": ("ReduceMin", [_whole("int32", 0, 3)], [_positions(0)], {}),
    "mean of no integers": ("ReduceMean", [np.zeros((2, 0), np.int64)], [_positions(1)], {}),
    "norm of nothing": ("LayerNormalization", [_real(0, 3)], [_real(3)], {}),
    "determinants": ("Det", [_real(2, 4, 4)], [], {}),
    "whole image": ("GlobalAveragePool", [IMAGE], [], {}),
    "channels in a sum": ("LRN", [IMAGE], [], {"size": 3}),
    "batch norm": ("BatchNormalization", [IMAGE], [_real(4), _real(4), _real(4), abs(_real(4))], {}),
    "instance norm": ("InstanceNormalization", [IMAGE], [_real(4), _real(4)], {}),
    "norm of ones and zeros": ("InstanceNormalization", [IMAGE], [np.ones(4, np.float32), np.zeros(4, np.float32)], {}),
    "layer norm": ("LayerNormalization", [ROW], [_real(9), _real(9)], {}),
    "gemm": ("Gemm", [TABLE], [_real(4, 5), _real(3, 1)], {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    "product of batches": ("MatMul", [_real(2, 1, 3, 4), _real(5, 4, 2)], [], {}),
    "product with a vector": ("MatMul", [_real(2, 3, 4), _real(4)], [], {}),
    "cubic": ("Resize", [IMAGE], [np.array([], np.float32), np.array([1, 1, 1.5, 0.75], np.float32)],
        {"mode": "cubic"}),
    "linear, aligned": ("Resize", [IMAGE], [np.array([], np.float32), np.array([],
        np.float32), _positions(1, 4, 11, 5)],
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
    "nearest, ceil": ("Resize", [IMAGE], [np.array([], np.float32), np.array([1, 1, 2, 2], np.float32)],
        {"nearest_mode": "ceil", "coordinate_transformation_mode": "asymmetric"}),
    "blocks, CRD": ("DepthToSpace", [_real(1, 12, 2, 3)], [], {"blocksize": 2, "mode": "CRD"}),
    "slice backwards": ("Slice", [IMAGE],
        [_positions(-1, 1), _positions(-9, 99), _positions(3, 2), _positions(-2, 2)], {}),
    "pad, reflected": ("Pad", [TABLE], [_positions(1, 2, 0, 1)], {"mode": "reflect"}),
    "pad, cut": ("Pad", [TABLE], [_positions(-1, 2, 0, 1), np.array(1.5, np.float32)], {}),
    "gather": ("Gather", [IMAGE], [np.array([[2, -1], [0, 1]])], {"axis": 2}),
    "gather of elements": ("GatherElements", [TABLE], [np.array([[0, -1], [1, 2]])], {"axis": 1}),
    "sum over axes": ("ReduceSum", [IMAGE], [_positions(1, -1)], {"keepdims": 0}),
    "last of equals": ("ArgMax", [np.array([[1, 3, 3], [2, 2, 0]], np.float32)], [],
        {"axis": 1, "select_last_index": 1}),
    "largest": ("TopK", [ROW], [_positions(3)], {"axis": 1, "largest": 0}),
    "running sum": ("CumSum", [TABLE], [np.array(1)], {"exclusive": 1, "reverse": 1}),
    "quantised": ("QuantizeLinear", [TABLE], [np.float32([0.1, 0.2, 0.3]), np.uint8([3, 128, 9])], {"axis": 0}),
    "dequantised": ("DequantizeLinear", [_whole("uint8", 3, 5)], [np.float32(0.1), np.uint8(7)], {}),
    "dynamically quantised": ("DynamicQuantizeLinear", [TABLE], [], {}),
    "product of bytes": ("MatMulInteger", [_whole("uint8", 3, 700)], [_whole("int8", 700, 2), np.uint8(9)], {}),
    "conv of bytes": ("QLinearConv", [_whole("uint8", 1, 3, 5, 5)],
        [np.float32(0.05), np.uint8(30), _whole("int8", 4, 3, 3, 3),
        np.float32([0.02, 0.03, 0.01, 0.04]), np.int8([0, 0, 0, 0]), np.float32(0.9), np.uint8(5)], {}),
    "lstm, both ways": ("LSTM", [_real(5, 2, 3)], [_real(2, 16, 3), _real(2, 16, 4), _real(2, 32)],
        {"hidden_size": 4, "direction": "bidirectional"}),
    "gru": ("GRU", [_real(5, 2, 3)], [_real(1, 12, 3), _real(1, 12, 4), _real(1, 24)],
        {"hidden_size": 4, "linear_before_reset": 1}),
    "lstm, all inputs": ("LSTM", [_real(5, 3, 2)], [*_WEIGHTS, np.int32([5, 2, 3]), _real(2, 3, 4), _real(2, 3, 4),
        _real(2, 12)], {"hidden_size": 4, "direction": "bidirectional", "clip": 0.7}),
    "lstm, relu": ("LSTM", [_real(5, 3, 2)], [w[:1] for w in _WEIGHTS],
        {"hidden_size": 4, "activations": ["Sigmoid", "Relu", "Relu"], "direction": "reverse"}),
    "lstm, other functions": ("LSTM", [_real(5, 3, 2)], [w[:1] for w in _WEIGHTS],
        {"hidden_size": 4, "activations": ["Tanh", "Softsign", "Tanh"]}),
    "gru, lengths, reverse": ("GRU", [_real(5, 3, 2)], [*(w[:1, :12] for w in _WEIGHTS[:2]), _real(1, 24),
        np.int32([1, 5, 3]), _real(1, 3, 4)], {"hidden_size": 4, "direction": "reverse"}),
    "rnn, both ways": ("RNN", [_real(5, 3, 2)], [*(w[:, :4] for w in _WEIGHTS[:2]), _real(2, 8)],
        {"hidden_size": 4, "direction": "bidirectional", "activations": ["Relu", "Tanh"]}),
    "grid, cubic": ("GridSample", [IMAGE, _real(1, 3, 2, 2)], [], {"mode": "cubic", "padding_mode": "border"}),
    "where": ("Where", [np.array([[True], [False], [True]]), TABLE, _real(5)], [], {}),
    "clip": ("Clip", [TABLE], [np.float32(-0.5)], {}),
    "power": ("Pow", [abs(TABLE)], [np.float32(1.7)], {}),
    "softmax": ("Softmax", [IMAGE], [], {"axis": 1}),
    "com.microsoft.QuickGelu": ("com.microsoft.QuickGelu", [TABLE], [], {}),
    "com.microsoft.FusedMatMul": ("com.microsoft.FusedMatMul", [_real(2, 4, 3), _real(2, 4, 5)], [],
        {"transA": 1, "alpha": 0.5}),
    "com.microsoft.SkipLayerNormalization": ("com.microsoft.SkipLayerNormalization", [_real(1, 3, 8), _real(1, 3, 8)],
        [_real(8), _real(8), _real(8)], {"epsilon": 1e-5}),
    "com.microsoft.MultiHeadAttention": ("com.microsoft.MultiHeadAttention",
        [_real(1, 3, 8), _real(1, 5, 8), _real(1, 5, 8)], [], {"num_heads": 2}),
    "com.microsoft.MatMulNBits": ("com.microsoft.MatMulNBits", [_real(2, 3, 40)],
        [_whole("uint8", 6, 2, 16), abs(_real(12)), _whole("uint8", 6)],
        {"K": 40, "N": 6, "bits": 4, "block_size": 32}),
    "packed bytes": ("com.microsoft.MatMulNBits", [_real(1, 64)],
        [_whole("uint8", 5, 4, 16), abs(_real(5, 4))], {"K": 64, "N": 5, "bits": 8, "block_size": 16}),
    "bytes to floats": ("com.microsoft.MatMulIntegerToFloat", [_whole("uint8", 3, 20)],
        [_whole("int8", 20, 4), np.float32(0.02), np.float32([0.01, 0.02, 0.03, 0.01]), np.uint8(9), np.int8([0] * 4),
        _real(4)], {}),
    "dynamic product": ("com.microsoft.DynamicQuantizeMatMul", [_real(3, 20)],
        [_whole("int8", 20, 4), np.float32(0.02), np.int8(0), _real(4)], {}),
    "grouped attention, prompt": ("com.microsoft.GroupQueryAttention",
        [_real(2, 5, 64), _real(2, 5, 32), _real(2, 5, 32), _real(2, 2, 0, 16), _real(2, 2, 0, 16)],
        [np.int32([4, 4]), np.int32(5), _real(9, 8), _real(9, 8)], {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}),
    "grouped attention, a step": ("com.microsoft.GroupQueryAttention",
        [_real(1, 1, 128), None, None, _real(1, 2, 6, 16), _real(1, 2, 6, 16)],
        [np.int32([6]), np.int32(7), _real(9, 8), _real(9, 8)],
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "local_window_size": 4, "rotary_interleaved": 1}),
    "grouped attention, several sequences": ("com.microsoft.GroupQueryAttention",
        [_real(2, 1, 32), _real(2, 1, 32), _real(2, 1, 32), _real(2, 2, 4, 16), _real(2, 2, 4, 16)],
        [np.int32([4, 4]), np.int32(5)], {"num_heads": 2, "kv_num_heads": 2, "scale": 0.3, "softcap": 2.0}),
    "attention with a mask of keys": ("com.microsoft.MultiHeadAttention",
        [_real(2, 3, 8), _real(2, 5, 8), _real(2, 5, 8)],
        [_real(24), np.int32([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]])], {"num_heads": 2}),
    "einsum, other axes": ("Einsum", [_real(2, 3, 4), _real(2, 4, 6)], [], {"equation": "...ij, ...jk -> k...i"}),
    "einsum, diagonal": ("Einsum", [_real(3, 4, 3)], [], {"equation": "iji->ji"}),
    "einsum, trace": ("Einsum", [_real(3, 3)], [], {"equation": "ii"}),
    "einsum of three": ("Einsum", [_real(2, 3), _real(3, 4, 2), _real(4, 5)], [], {"equation": "ab,bca,cd->ad"}),
    "einsum, axes of one": ("Einsum", [_real(1, 3, 4), _real(1, 4, 1)], [], {"equation": "bij,bjk->kbi"}),
    "einsum, outer": ("Einsum", [_real(3), _real(2, 4)], [], {"equation": "i,jk->jki"}),
    "scattered, a part": ("ScatterElements", [TABLE, np.array([[0, -1, 2], [4, 3, 0]]), _real(2, 3)], [],
        {"axis": 1}),
    "scattered sums": ("ScatterElements", [TABLE, np.array([[0, 0, -1], [2, 0, 0]]), _real(2, 3)], [],
        {"reduction": "add"}),
    "scattered largest": ("ScatterElements", [TABLE, np.array([[0, 0], [4, -1], [2, 1]]), _real(3, 2)], [],
        {"axis": 1, "reduction": "max"}),
    "scattered products": ("ScatterND", [_real(4, 2, 3), np.array([[1, 0], [-1, 1], [1, 0]]), _real(3, 3)], [],
        {"reduction": "mul"}),
    "scattered sums of 64 bits": ("ScatterND", [np.arange(5) << 40, np.array([[1], [4], [1]]),
        np.array([3, -(1 << 50), 1 << 60])], [], {"reduction": "add"}),
    "scattered sums of bytes": ("ScatterElements", [_whole("uint8", 5), np.array([0, 3, -5]), _whole("uint8", 3)], [],
        {"reduction": "add"}),
    "scattered smallest of 64 bits": ("ScatterND", [_whole("int64", 4, 2) << 40, np.array([[1], [-1], [1]]),
        _whole("int64", 3, 2) << 40], [], {"reduction": "min"}),
    "scattered products of bytes": ("ScatterElements", [_whole("int8", 5), np.array([0, 3, 0]), _whole("int8", 3)], [],
        {"reduction": "mul"}),
    "scattered largest of many": ("ScatterND", [_real(90, 40), _whole("int64", 400, 1) % 90, _real(400, 40)], [],
        {"reduction": "max"}),
    "scattered smallest of many": ("ScatterND", [_whole("int32", 90, 40), _whole("int64", 400, 1) % 90,
        _whole("int32", 400, 40)], [], {"reduction": "min"}),
    "halves, running sums": ("CumSum", [_real(2, 5).astype("f2")], [np.int64(1)], {}),
    "sampled at no place": ("GridSample", [_real(1, 2, 4, 5), np.float32([[[[np.nan, 0.1], [0.2, -0.3]]]])], [], {}),
    "halves, sampled": ("GridSample", [_real(1, 2, 4, 5).astype("f2"), _real(1, 3, 2, 2).astype("f2") / 2], [], {}),
    "halves, transformed": ("DFT", [_real(1, 8, 1).astype("f2")], [], {}),
    "halves, frames": ("STFT", [_real(1, 40, 1).astype("f2")], [np.int64(4), _real(8).astype("f2")], {}),
    "halves, different ones": ("Unique", [np.float16([3, -1, 3, 0.5, -1])], [], {}),
    "bytes, different ones": ("Unique", [_whole("int8", 9) % 4], [], {"sorted": 0}),
    "largest and where": ("MaxPool", [_real(2, 3, 6, 7)], [],
        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    "norms of windows": ("LpPool", [IMAGE], [],
        {"kernel_shape": [3, 2], "strides": [2, 1], "p": 3, "pads": [1, 0, 1, 1]}),
    "columns added up": ("Col2Im", [_real(2, 12, 12)], [_positions(5, 6), _positions(2, 3)],
        {"strides": [2, 1], "dilations": [1, 1], "pads": [1, 0, 0, 0]}),
    "regions": ("RoiAlign", [_real(2, 3, 8, 9)], [np.float32([[1, 2, 7.5, 6], [-3, -2, 2, 20], [4, 4, 4, 4]]),
        np.array([1, 0, 1])], {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 0.9}),
    "smallest integers": ("TopK", [np.array([[5, -2**62, 7, -3]]), ], [_positions(3)], {"largest": 0}),
    "different elements": ("Unique", [np.float32([2, 1, 1, 3, 4, 3])], [], {"sorted": 0}),
    "com.microsoft.FastGelu": ("com.microsoft.FastGelu", [TABLE], [_real(5)], {}),
    "rotation, heads by the width of a table": ("com.microsoft.RotaryEmbedding", [_real(2, 3, 24), _positions(4)],
        [_real(9, 4), _real(9, 4)], {}),
    "rotation, a position each": ("com.microsoft.RotaryEmbedding",
        [_real(2, 2, 3, 8), np.array([[3, 1, 4], [1, 5, 2]])], [_real(9, 4), _real(9, 4)], {"interleaved": 1}),
    "rotation of a part": ("com.microsoft.RotaryEmbedding", [_real(1, 3, 32), _positions(2)],
        [_real(9, 4), _real(9, 4)], {"num_heads": 2, "rotary_embedding_dim": 8}),
    "running sums of long integers": ("CumSum", [np.array([[5, -2**62, 7, 2**40 - 3, 2**62], [-1, 1, 2**31, -9, 3]])],
        [np.int64(1)], {"exclusive": 1}),
    "fused conv": ("com.microsoft.FusedConv", [IMAGE, _real(5, 4, 3, 3), _real(5), _real(1, 5, 4, 6)], [],
        {"activation": "LeakyRelu", "activation_params": [0.3]}),
    "fused conv, a clip": ("com.microsoft.FusedConv", [IMAGE], [_real(8, 1, 3, 3), _real(8)],
        {"group": 4, "activation": "Clip", "activation_params": [-0.5, 0.75]}),
    "fused product": ("com.microsoft.FusedGemm", [_real(3, 4)], [_real(4, 5), _real(5)],
        {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4}),
    "embedded words": ("com.microsoft.EmbedLayerNormalization", [np.int32([[1, 4, 0], [2, 2, 8]]),
        np.int32([[0, 1, 1], [0, 0, 1]])], [_real(9, 8), _real(6, 8), _real(2, 8), _real(8), _real(8),
        np.int32([[1, 1, 0], [1, 1, 1]])], {"epsilon": 1e-6}),
    "embedded words, places given": ("com.microsoft.EmbedLayerNormalization", [np.int32([[1, 4, 0]]), None,
        _real(9, 8), _real(6, 8), None, _real(8), _real(8), None, np.int32([[5, 0, 2]])], [], {}),
    "packed attention, numbers of keys": ("com.microsoft.Attention", [_real(2, 5, 8)],
        [_real(8, 24), _real(24), np.int32([3, 5])], {"num_heads": 2}),
    "packed attention, a mask of keys": ("com.microsoft.Attention", [_real(2, 5, 8)],
        [_real(8, 24), _real(24), np.int32([[1, 1, 0, 1, 0], [1] * 5])], {"num_heads": 2}),
    "packed attention, a mask of pairs, a past": ("com.microsoft.Attention", [_real(1, 3, 8)], [_real(8, 24),
        _real(24), np.int32([[[1, 0, 1, 1, 0], [1, 1, 1, 0, 1], [0, 1, 1, 1, 1]]]), _real(2, 1, 2, 2, 4)],
        {"num_heads": 2}),
    "packed attention, a past, none ahead": ("com.microsoft.Attention", [_real(1, 3, 8)], [_real(8, 24), _real(24),
        np.int32([[1, 1, 1, 0, 1]]), _real(2, 1, 2, 2, 4)], {"num_heads": 2, "unidirectional": 1}),
    "attention of bytes": ("com.microsoft.QAttention", [_whole("uint8", 2, 5, 8)], [_whole("int8", 8, 24), _real(24),
        np.float32(0.02), np.float32(0.01), np.int32([[1, 1, 0, 1, 0], [1] * 5]), np.uint8(60), np.int8(55)],
        {"num_heads": 2}),
    "rows of a table of blocks": ("com.microsoft.GatherBlockQuantized", [_whole("uint8", 9, 32),
        np.array([[7, 0], [3, 3]]), _real(9, 4), _whole("uint8", 9, 2)], [], {"block_size": 16, "bits": 4}),
    "rows of a table of bytes": ("com.microsoft.GatherBlockQuantized", [_whole("uint8", 9, 32),
        np.array([7, 0, 3]), _real(9, 2)], [], {"block_size": 16, "bits": 8}),
    "means of windows beyond the end, which count padding of 0": ("AveragePool", [_real(1, 2, 3, 2)], [],
        {"kernel_shape": [7, 4], "strides": [7, 4], "ceil_mode": 1, "count_include_pad": 1}),
    "means of windows beyond the padding, which counts": ("AveragePool", [_real(1, 2, 2, 3)], [],
        {"kernel_shape": [5, 3], "strides": [2, 2], "pads": [1, 1, 1, 0], "ceil_mode": 1, "count_include_pad": 1}),
    "attention, products before they are capped": ("Attention", [_real(1, 2, 3, 4), _real(1, 2, 5, 4),
        _real(1, 2, 5, 4), _real(3, 5)], [], {"softcap": 1.1, "qk_matmul_output_mode": 0}),
    **CONTRIBUTED,
    **LEARNED,
}  # fmt: skip
_OUTPUTS = {
    "GroupQueryAttention": 3, "LSTM": 3, "GRU": 2, "RNN": 2, "TopK": 2, "DynamicQuantizeLinear": 3,
    "MaxPool": 2, "Unique": 4, "TreeEnsembleClassifier": 2, "LinearClassifier": 2, "SVMClassifier": 2,
    "EmbedLayerNormalization": 2, "LinearAttention": 2, "LinearAttentionGate": 2, "CausalConvWithState": 2,
    "attention, products before they are capped": 4,
    "packed attention, a mask of pairs, a past": 2, "packed attention, a past, none ahead": 2,
}  # fmt: skip


def _case(name: str) -> Case:
    """The model of a run and what ONNX Runtime makes of it."""
    operator, inputs, constants, attributes = RUNS[name]
    domain, _, kind = operator.rpartition(".")
    given = {f"x{i}": array for i, array in enumerate(inputs) if array is not None}
    held = [numpy_helper.from_array(np.asarray(a), f"c{i}") for i, a in enumerate(constants) if a is not None]
    outputs = [f"y{i}" for i in range(_OUTPUTS.get(name, _OUTPUTS.get(kind, 1)))]
    node = helper.make_node(
        kind,
        [
            *("" if a is None else f"x{i}" for i, a in enumerate(inputs)),
            *("" if a is None else f"c{i}" for i, a in enumerate(constants)),
        ],
        outputs,
        domain=domain,
        **attributes,
    )
    kind_of = helper.np_dtype_to_tensor_dtype
    ends = [helper.make_tensor_value_info(n, kind_of(np.asarray(a).dtype), np.shape(a)) for n, a in given.items()]
    results = [helper.make_empty_tensor_value_info(n) for n in outputs]
    graph = helper.make_graph([node], "one", ends, results, held)
    version = 23 if operator == "Attention" else 20
    versions = {"": version, "com.microsoft": 1, "ai.onnx.ml": 5 if kind == "TreeEnsemble" else 3}
    domains = list(itertools.starmap(helper.make_opsetid, versions.items()))
    model = helper.make_model(graph, opset_imports=domains, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = dict(zip(outputs, session.run(None, given), strict=True))
    halves = any(isinstance(a, np.ndarray) and a.dtype == np.float16 for a in wanted.values())
    relative, absolute = (4e-3, 4e-3) if halves else (1e-4, 1e-5)  # of halves each step is rounded, there none is
    return Case(name, operator, model, given, wanted, relative, absolute)


@pytest.mark.parametrize("each_column", [False, True])
def test_an_lstm_of_bytes_is_computed_in_real_numbers(each_column: bool) -> None:
    """ONNX Runtime rounds the input and the state to bytes, so it is only near; the same layer of floats is equal."""
    w, r = (_RNG.integers(*int8_ends(), (2, n, 24)).astype("i1") for n in (5, 6))
    scales = [_RNG.uniform(2e-3, 4e-3, (2, 24) if each_column else (2,)).astype("f4") for _ in range(2)]
    point = 0 if each_column else 3  # as ONNX Runtime wants it
    points = [np.full(s.shape, point, np.int8) for s in scales]
    bias, x = _real(2, 48), _real(7, 1, 5)
    wide = [s.reshape(2, 1, -1) for s in scales]
    real = [((b - np.float32(point)) * s).transpose(0, 2, 1).copy() for b, s in zip((w, r), wide, strict=True)]
    given = {"direction": "bidirectional", "hidden_size": 6}
    RUNS["bytes"] = ("com.microsoft.DynamicQuantizeLSTM", [x, w, r, bias, *[None] * 4, scales[0], points[0], scales[1],
                     points[1]], [], given)  # fmt: skip
    RUNS["floats"] = ("LSTM", [x], [*real, bias], given)
    try:
        near, exact = _case("bytes"), _case("floats")
    finally:
        del RUNS["bytes"], RUNS["floats"]
    rounded, found = near.outputs["y0"], dict[str, Any]()
    for mode in ("float", "int8"):  # the second one is ONNX Runtime's
        with webinfer.load_sync(near.model.SerializeToString(), backend="reference", dynamic_range=mode) as session:
            found[mode] = session.run(near.inputs)["y0"].numpy()
    np.testing.assert_allclose(found["float"], exact.outputs["y0"], 1e-4, 1e-5)
    np.testing.assert_allclose(rounded, exact.outputs["y0"], atol=0.03)
    np.testing.assert_allclose(found["int8"], rounded, atol=2e-6)
    assert np.abs(found["float"] - rounded).max() > 1e-4


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
def test_rows_of_blocks_of_a_small_type_have_no_zero_point_where_none_is_given(kind: str) -> None:
    numbers = _RNG.integers(0, 8, 9 * 32)
    held = [
        helper.make_tensor("data", getattr(TensorProto, kind), (9, 32), numbers.tolist()),
        numpy_helper.from_array(np.ones((9, 2), "f4"), "scales"),
    ]
    node = helper.make_node(
        "GatherBlockQuantized", ["data", "x", "scales"], ["y"], domain="com.microsoft", block_size=16
    )
    ends = [helper.make_tensor_value_info("x", TensorProto.INT64, (2,))]
    graph = helper.make_graph([node], "one", ends, [helper.make_tensor_value_info("y", 1, None)], held)
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=domains, ir_version=10)
    wanted = numbers.reshape(9, 32)[[8, 2]].astype("f4")
    case = Case(kind, "", model, {"x": _positions(8, 2)}, {"y": wanted}, 0, 0)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, case.inputs)[0], wanted)
    (row,) = asyncio.run(judge(NativeHost(), "reference", read_all([case])))
    assert row["why"] == ""


@pytest.mark.parametrize("place", [1, 6])
def test_a_scale_that_is_not_finite_is_named(place: int) -> None:
    """The quantizer of ONNX Runtime writes it for sums with masks of the least float."""
    numbers = [np.float32(0.1), np.uint8(3)]
    held: list[Any] = [None, *numbers, None, *numbers, *numbers]
    held[place] = np.float32(np.inf)
    names = [f"i{i}" for i in range(8)]
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in zip(names, held, strict=True) if a is not None]
    ends = [helper.make_tensor_value_info(names[i], TensorProto.UINT8, (2,)) for i in (0, 3)]
    node = helper.make_node("QLinearAdd", names, ["y"], domain="com.microsoft")
    graph = helper.make_graph([node], "one", ends, [helper.make_tensor_value_info("y", 2, (2,))], constants)
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=domains, ir_version=9).SerializeToString()
    with pytest.raises(webinfer.UnsupportedOpError, match="a scale of inf"):
        webinfer.load_sync(data, backend="reference")


def test_a_model_that_is_optimised_for_one_processor_is_refused_with_what_helps() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], domain="com.microsoft.nchwc")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 16, 4, 4)) for name in "xwy"]
    graph = helper.make_graph([node], "blocks of channels", ends[:2], ends[2:])
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft.nchwc", 1)]
    data = helper.make_model(graph, opset_imports=domains, ir_version=9).SerializeToString()
    with pytest.raises(webinfer.UnsupportedOpError, match="ORT_ENABLE_EXTENDED"):
        webinfer.load_sync(data, backend="reference")


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [_case(name) for name in RUNS]


@pytest.mark.parametrize("backend", ["reference", "wasm"])
def test_operators_compute_what_their_runtime_does(backend: str, cases: list[Case]) -> None:
    rows = asyncio.run(judge(NativeHost(), backend, read_all(cases)))
    assert [row["case"] + ": " + row["why"] for row in rows if row["verdict"] != "right"] == []


def _old_file(node: NodeProto, x: Any) -> tuple[str, Any]:
    """What is wrong with the node of a file of opset 11 on the reference, and what ONNX Runtime makes of it."""
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape), helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([node], "old", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {"x": x})
    case = Case("old", node.op_type, model, {"x": x}, {"y": want}, 1e-6, 0)
    (row,) = asyncio.run(judge(NativeHost(), "reference", read_all([case])))
    return row["why"], want


def test_hardmax_of_old_files_takes_all_axes_from_one_on_as_a_row() -> None:
    why, want = _old_file(helper.make_node("Hardmax", ["x"], ["y"], axis=1), _real(2, 3, 4))
    assert why == ""
    assert want.sum() == 2


@pytest.mark.parametrize("pads", [[0, 0], [0, 1]])
def test_means_of_old_files_count_all_of_a_window_that_is_larger_than_the_image(pads: list[int]) -> None:
    x = np.ones((1, 1, 2), np.float32)
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[4], strides=[3], pads=pads, count_include_pad=1)
    why, want = _old_file(node, x)
    assert why == ""
    assert want.tolist() == [[[0.5]]]
