"""Where TensorFlow.js leaves open what comes out, or its kernels do otherwise than TensorFlow."""

from typing import Any

import numpy as np

from build_scripts.judge.fuzz.graphs import FuzzNode
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

EXACT_IN_FLOAT32 = 2.0**24  # up to which float32 holds every integer
_THROUGH_FLOAT32 = "TensorFlow's is exact; the runtime takes integers through float32"
_ORDERED = "ArgMax ArgMin ClipByValue Max MaxPool Maximum Min Minimum Relu Relu6 Sign TopKV2 Unique".split()
_SUMS = "Cumprod Cumsum Mean Prod Sum".split()
_WEIGHTED = (
    "Conv2D _FusedConv2D DepthwiseConv2dNative Conv2DBackpropInput ResizeBilinear MatMul _FusedMatMul BatchMatMulV2"
).split()


def _always(difference: Difference, node: FuzzNode) -> bool:
    return True


def _slice_is_another(difference: Difference, node: FuzzNode) -> bool:
    """Whether the runtime's slice is not the one that TensorFlow defines, which is NumPy's."""
    x, begins, ends, strides = difference.read(node)

    def masked(name: str, i: int) -> bool:
        return bool(int(node.attrs.get(f"{name}_mask", 0)) >> i & 1)

    where: list[Any] = []
    for i, (begin, end, stride) in enumerate(zip(begins.tolist(), ends.tolist(), strides.tolist(), strict=True)):
        cut = slice(None if masked("begin", i) else begin, None if masked("end", i) else end, stride)
        where.append(
            ...
            if masked("ellipsis", i)
            else None
            if masked("new_axis", i)
            else begin
            if masked("shrink_axis", i)
            else cut
        )
    return not np.array_equal(np.asarray(x[tuple(where)]), difference.made(node)[0], equal_nan=True)


def _product_is_another(difference: Difference, node: FuzzNode) -> bool:
    """Whether the runtime's product is not that of broadcast batches."""
    a, b = (x.astype(np.float64) for x in difference.read(node))
    a = a.swapaxes(-1, -2) if node.attrs.get("adj_x") else a
    b = b.swapaxes(-1, -2) if node.attrs.get("adj_y") else b
    return not np.allclose(a @ b, difference.made(node)[0], 1e-3, 1e-3, equal_nan=True)


def _reads_floats(difference: Difference, node: FuzzNode) -> bool:
    return any(a.dtype.kind == "f" for a in difference.read(node))


def _updates_itself(difference: Difference, node: FuzzNode) -> bool:
    """Whether the updates are the tensor that is updated."""
    return node.inputs[0] == node.inputs[2]


def _square_overflows(d: Difference, node: FuzzNode) -> bool:
    """Whether an integer goes in whose square no integer of its type holds."""
    (x,) = d.read(node)
    return x.dtype.kind in "iu" and bool((np.square(x.astype(np.float64)) > np.iinfo(x.dtype).max).any())


def _difference_squared_is_rounded(d: Difference, node: FuzzNode) -> bool:
    """Whether integers go in whose difference, squared, no float32 need hold."""
    a, b = d.read(node)
    return a.dtype.kind in "iu" and bool((np.square(a.astype(np.float64) - b) > EXACT_IN_FLOAT32).any())


RULES: tuple[Rule, ...] = (
    Rule(frozenset(_ORDERED), "where a NaN stands among other numbers is open", reads_nan),
    Rule(frozenset(["Cast"]), "what integer a NaN or an infinity becomes is open", reads_odd),
    odd_taps(_WEIGHTED),
    Rule(frozenset(["MatrixBandPart"]), "the runtime takes the negative of a tensor for the upper bound: 0", _always),
    Rule(frozenset(["StridedSlice"]), "TensorFlow, as NumPy, takes other elements", _slice_is_another),
    Rule(
        frozenset(["BatchMatMulV2"]),
        "the runtime takes the last batch where several axes broadcast",
        _product_is_another,
    ),
    Rule(
        frozenset(["TensorScatterUpdate"]),
        "the runtime writes into the tensor that it still reads updates from",
        _updates_itself,
    ),
    Rule(frozenset(["Square"]), "what squares become that the integer type does not hold is open", _square_overflows),
    Rule(frozenset(["Pow"]), "what powers that the integer type does not hold become is open", powers_overflow),
    Rule(
        frozenset(["FusedBatchNormV3"]),
        "one factor and one term, both made of constants: infinite ones may meet there",
        reads_odd,
    ),
    Rule(
        frozenset(["FloorDiv"]),
        "of floats TensorFlow and the runtime's WebAssembly give floats, its JavaScript int32",
        _reads_floats,
    ),
    Rule(frozenset(["Abs"]), _THROUGH_FLOAT32, reads_beyond(EXACT_IN_FLOAT32)),
    Rule(frozenset(["SquaredDifference"]), _THROUGH_FLOAT32, _difference_squared_is_rounded),
    Rule(frozenset(_ORDERED), "which of 0 and -0 is the larger is open", reads_negative_zero),
    Rule(frozenset(["AddN"]), "a sum of -0 is -0; the runtime begins with 0", reads_negative_zero),
    Rule(frozenset(["Mod", "FloorMod"]), "a rest by an infinity is NumPy's; the runtime adds the infinity", reads_odd),
    Rule(frozenset(["Equal", "NotEqual"]), "whether numbers that rounding sets apart are equal is open", nearly_equal),
    Rule(
        frozenset("All Any Max Min".split()),
        "of nothing TensorFlow gives what changes no result; the runtime reads beyond the tensor",
        reads_nothing,
    ),
    Rule(frozenset(["Mean"]), "TensorFlow's mean of nothing is a NaN; the runtime's 0", reads_nothing),
    Rule(frozenset(_SUMS), "what integers that do not hold a sum become is open", whole_overflows),
)
