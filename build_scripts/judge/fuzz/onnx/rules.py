"""Where ONNX leaves open what comes out, or ONNX Runtime is known to do otherwise than ONNX says."""

from functools import cache

import numpy as np

from build_scripts.judge.fuzz.graphs import Array, FuzzNode
from build_scripts.judge.fuzz.rules import (
    Difference,
    Rule,
    nearly_equal,
    odd_taps,
    powers_overflow,
    reads_beyond,
    reads_nan,
    reads_negative_zero,
    reads_nothing,
    reads_odd,
    whole_overflows,
)

_ORDERED = (
    "ArgMax ArgMin Clip GlobalMaxPool Hardmax Max MaxPool Min ReduceMax ReduceMin Relu Sign TopK Unique "
    "NonMaxSuppression ReduceLogSumExp"
).split()
_STORED = "Cast CastLike QuantizeLinear DynamicQuantizeLinear com.microsoft.DynamicQuantizeMatMul".split()
_WEIGHTED = (
    "Col2Im Resize RoiAlign GridSample Conv ConvTranspose com.microsoft.FusedConv AveragePool LpPool LRN AffineGrid"
).split()
_CELLS = (
    "Attention GRU Gelu LSTM RNN com.microsoft.BiasGelu com.microsoft.Gelu com.microsoft.FastGelu "
    "com.microsoft.MultiHeadAttention"
).split()
_FOLDED = "BatchNormalization InstanceNormalization".split()
_INTEGER_PRODUCTS = (
    "ConvInteger MatMulInteger QLinearConv QLinearMatMul com.microsoft.DynamicQuantizeMatMul "
    "com.microsoft.MatMulIntegerToFloat"
).split()
TIE = 1e-6  # of an axis
CANCELLED = 1e-6  # of the terms of a sum: 0.42 - 0.5 + 0.08 in float32 is some 1e-8, of either sign
_SUMS = "ReduceL1 ReduceL2 ReduceMean ReduceProd ReduceSum ReduceSumSquare".split()


def _part_indices(d: Difference, node: FuzzNode) -> bool:
    x = d.values.get(node.inputs[0])
    return x is not None and x.dtype.kind == "f" and bool((x != np.trunc(x)).any())


def _ends_at_one(d: Difference, node: FuzzNode) -> bool:
    return any((y == np.iinfo(y.dtype).min).any() for y in d.made(node))


def _even_lines(d: Difference, node: FuzzNode) -> bool:
    return any(bool(np.isnan(y).any()) for y in d.made(node))


def _skipped_region(d: Difference, node: FuzzNode) -> bool:
    """Whether a region cuts along an axis that keeps its size."""
    x, region = d.values.get(node.inputs[0]), d.values.get(node.inputs[1])
    if x is None or region is None or region.size != 2 * x.ndim:
        return False
    cut = [(a, b) != (0.0, 1.0) for a, b in region.reshape(2, -1).T]
    return any(c and n == m for y in d.made(node) for c, n, m in zip(cut, x.shape, y.shape, strict=True))


def _out_of_range(d: Difference, node: FuzzNode) -> bool:
    """Whether a float goes in that the integers of the result do not hold."""
    kinds = [np.iinfo(y.dtype) for y in d.made(node) if y.dtype.kind in "iu"]
    found = [a.astype(np.float64) for a in d.read(node)[:1] if a.dtype.kind == "f" and a.size]
    return any(not ((np.trunc(a) >= kind.min) & (np.trunc(a) <= kind.max)).all() for kind in kinds for a in found)


def _short_window(d: Difference, node: FuzzNode) -> bool:
    """Whether a transposed convolution that keeps sizes by name has a stride beyond its window."""
    w = d.values.get(node.inputs[1])
    steps = node.attrs.get("strides", [1])
    return (
        "SAME" in node.attrs.get("auto_pad", "")
        and w is not None
        and any(s > k for s, k in zip(steps, w.shape[2:], strict=True))
    )


def _all_equal(d: Difference, node: FuzzNode) -> bool:
    return any(not a.any() for a in d.read(node))


def _a_step_apart(d: Difference, node: FuzzNode) -> bool:
    """Whether integers were interpolated, and are one off at most: the runtime cuts what rounding left below them."""
    pairs = [(g, w) for g, w in zip(d.got, d.want, strict=True) if g.shape == w.shape and w.dtype.kind in "iu"]
    return bool(pairs) and all(int(np.abs(g.astype(int) - w.astype(int)).max(initial=0)) <= 1 for g, w in pairs)


def _loses_negative_bytes(d: Difference, node: FuzzNode) -> bool:
    """Whether bytes below 0 are resized with antialias, which the runtime computes as in pictures."""
    x = d.values.get(node.inputs[0])
    return bool(node.attrs.get("antialias")) and x is not None and x.dtype == np.int8 and bool((x < 0).any())


def _at_a_tie(d: Difference, node: FuzzNode) -> bool:
    """Whether the nearest element is asked for where a sample lies on the border of two, within float32's rounding."""
    read = [name for name in node.inputs[2:] if name]
    if node.attrs.get("mode", "nearest") != "nearest" or not read:
        return False
    given, x, y = d.values[read[-1]].astype(np.float64), d.values[node.inputs[0]], d.made(node)[0]
    if d.values[read[-1]].dtype.kind == "i" or given.size != x.ndim:
        given = np.array([m / max(n, 1) for n, m in zip(x.shape, y.shape, strict=True)])
    half = 0.0 if node.attrs.get("coordinate_transformation_mode", "half_pixel") == "asymmetric" else 0.5
    for n, m, scale in zip(x.shape, y.shape, given, strict=True):
        at = (np.arange(m) + half) / scale - half
        if node.attrs.get("coordinate_transformation_mode") == "half_pixel_symmetric":
            at = at + n / 2 * (1 - m / (scale * n))
        if (np.abs(2 * at - np.round(2 * at)) < TIE * max(n, 1)).any() and scale != 1:
            return True
    return False


def _zero_but_for_rounding(d: Difference, node: FuzzNode) -> bool:
    """Whether the last input comes from a sum whose terms cancel: a transform, or the end of a Blackman window."""
    sources = {node.inputs[-1]}
    for other in reversed(d.graph.nodes):
        if not sources.isdisjoint(other.outputs):
            sources |= {name for name in other.inputs if name}
            if other.op in ("BlackmanWindow", "DFT"):
                terms = d.values.get(other.inputs[0]) if other.op == "DFT" else None
                size = 1.0 if terms is None else float(np.abs(terms[np.isfinite(terms)].astype(float)).sum())
                found = d.values.get(node.inputs[-1])
                return found is not None and bool((np.abs(found) < CANCELLED * max(size, 1.0)).any())
    return False


@cache
def _sums_pairs_in_16_bits() -> bool:
    """Whether the runtime, on a processor without dot products of bytes, adds two products of bytes in 16 bits."""
    import onnx
    import onnxruntime

    a = onnx.helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, [1, 2])
    b = onnx.helper.make_tensor_value_info("b", onnx.TensorProto.INT8, [2, 1])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [1, 1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "pair", [a, b], [y])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (sum_,) = session.run(None, {"a": np.array([[255, 255]], np.uint8), "b": np.array([[127], [127]], np.int8)})
    return int(sum_.item()) != 2 * 255 * 127


def _a_pair_saturates(d: Difference, node: FuzzNode) -> bool:
    """Whether two neighbouring products of a byte without and one with a sign make more than 16 bits hold."""
    place = 3 if "QLinear" in node.op else 1
    x, w = d.values.get(node.inputs[0]), d.values.get(node.inputs[place])
    if x is None or w is None or w.dtype != np.int8 or not x.size or not w.size or not _sums_pairs_in_16_bits():
        return False
    if "Conv" in node.op:  # whose order of products is the runtime's own
        most = np.sort(w.reshape(-1).astype(int))
        return max(255 * int(most[-2:].sum()), -255 * int(most[:2].sum())) > np.iinfo(np.int16).max
    a = _as_bytes(x).astype(int).reshape(-1, x.shape[-1])
    pairs = [a[:, i : i + 2] @ w[i : i + 2].astype(int) for i in range(0, len(w), 2)]
    return any(bool(((pair > 32767) | (pair < -32768)).any()) for pair in pairs)


def _as_bytes(x: Array) -> Array:
    """What the runtime multiplies: bytes without a sign; floats quantised as DynamicQuantizeLinear does."""
    if x.dtype.kind != "f":
        return x if x.dtype == np.uint8 else x.astype(int) + 128
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    scale = (high - low) / 255 or 1.0
    found: Array = np.clip(np.rint(x / scale) + np.rint(-low / scale), 0, 255)
    return found


def _reduces_nothing_from_the_end(d: Difference, node: FuzzNode) -> bool:
    listed = node.attrs.get("axes")
    axes = d.values.get(node.inputs[1]) if listed is None and len(node.inputs) > 1 else listed
    x = d.values.get(node.inputs[0])
    return x is not None and x.size == 0 and axes is not None and bool((np.asarray(axes) < 0).any())


RULES: tuple[Rule, ...] = (
    Rule(frozenset(_ORDERED), "where a NaN stands among other numbers is open", reads_nan),
    Rule(frozenset(_STORED), "what integer a NaN or an infinity becomes is open", reads_odd),
    odd_taps(_WEIGHTED),
    Rule(
        frozenset(_CELLS),
        "the runtime's functions in cells, heads and GELU turn a NaN into a number, or an infinity into a NaN",
        reads_odd,
    ),
    Rule(
        frozenset(_FOLDED),
        "the runtime computes x * scale + (shift - mean * scale): with an infinite scale infinity less infinity",
        reads_odd,
    ),
    Rule(
        frozenset("ArgMax ArgMin ReduceMax ReduceMin ReduceLogSumExp".split()),
        "the runtime keeps the axis where nothing is to be compared",
        reads_nothing,
    ),
    Rule(
        frozenset([*_SUMS, "ReduceLogSum"]),
        "where there is nothing to sum, the runtime leaves axes that are counted from the end as they are",
        _reduces_nothing_from_the_end,
    ),
    Rule(
        frozenset(["Cast", "CastLike"]),
        "what a float becomes that the integer type does not hold is open",
        _out_of_range,
    ),
    Rule(frozenset(["Resize"]), "the runtime ignores a region along axes that keep their size", _skipped_region),
    Rule(
        frozenset(["ConvTranspose"]),
        "ONNX wants the input's size times the stride; the runtime keeps gaps between windows out",
        _short_window,
    ),
    Rule(frozenset(["DynamicQuantizeLinear"]), "ONNX gives a scale of 0 where all is 0; the runtime 1", _all_equal),
    Rule(frozenset(["Resize"]), "the runtime cuts interpolated integers, which rounding leaves below", _a_step_apart),
    Rule(frozenset(["Resize"]), "with antialias the runtime makes int8 below 0 to 0", _loses_negative_bytes),
    Rule(frozenset(["Resize"]), "which element is the nearest to the border of two is a matter of rounding", _at_a_tie),
    Rule(
        frozenset(_INTEGER_PRODUCTS),
        "without dot products of bytes in the processor, the runtime adds pairs of products in 16 bits, which saturate",
        _a_pair_saturates,
    ),
    Rule(frozenset(["Equal"]), "whether numbers that rounding sets apart are equal is open", nearly_equal),
    Rule(frozenset(["ReduceMean"]), "the runtime takes means of int64 in float64", reads_beyond(2.0**53)),
    Rule(
        frozenset(["Div", "Log", "Reciprocal"]),
        "parts of a transform and the ends of a Blackman window may be 0 but for rounding",
        _zero_but_for_rounding,
    ),
    Rule(frozenset(["Pow"]), "what powers that the integer type does not hold become is open", powers_overflow),
    Rule(frozenset(_SUMS), "what integers that do not hold a sum become is open", whole_overflows),
    Rule(frozenset(_SUMS), "the mean of no integers is open", reads_nothing),
    Rule(
        frozenset(["GRU", "LSTM", "RNN"]),
        "no steps leave the states as they were; the runtime gives 0 or what lies in its memory",
        reads_nothing,
    ),
    Rule(frozenset(_ORDERED), "which of 0 and -0 is the larger is open", reads_negative_zero),
    Rule(
        frozenset(["OneHot"]),
        "ONNX casts positions that are floats to integers; the runtime compares them as floats",
        _part_indices,
    ),
    Rule(
        frozenset(["com.microsoft.QLinearSoftmax"]),
        "a share of 1 is stored as the largest byte; in the runtime it wraps around",
        _ends_at_one,
    ),
    Rule(
        frozenset(["MeanVarianceNormalization"]),
        "ONNX adds an epsilon to the deviation; the runtime divides 0 by 0",
        _even_lines,
    ),
)
