"""Where TFLite leaves open what comes out, or LiteRT's own kernels do not agree."""

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
    reads_odd,
    whole_overflows,
)
from build_scripts.judge.fuzz.tflite import elementwise

_ORDERED = (  # the latter have a clamp behind them
    "ARG_MAX ARG_MIN MAXIMUM MINIMUM MAX_POOL_2D REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 SIGN "
    "TOPK_V2 UNIQUE UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN "
    "ADD SUB MUL DIV CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED AVERAGE_POOL_2D L2_POOL_2D TRANSPOSE_CONV"
).split()
_COMPARISONS = "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL".split()
_TABLES = "TANH LOGISTIC SOFTMAX LEAKY_RELU".split()
NEAR_STEP = 1 / 256 + 1e-4  # of the number 1: LiteRT compares stored numbers of two scales in 256ths
STEPS16 = 4  # of 65536


def _near_in_16_bits(d: Difference, node: FuzzNode) -> bool:
    """Whether the results are of 16 bits and as near as a table gives them."""
    pairs = [(g, w) for g, w in zip(d.got, d.want, strict=True) if w.dtype == np.int16 and g.shape == w.shape]
    return bool(pairs) and all(int(np.abs(g.astype(int) - w.astype(int)).max(initial=0)) <= STEPS16 for g, w in pairs)


_STORED = "CAST QUANTIZE FAKE_QUANT".split()
_WEIGHTED = "RESIZE_BILINEAR CONV_2D CONV_3D DEPTHWISE_CONV_2D TRANSPOSE_CONV FULLY_CONNECTED BATCH_MATMUL".split()
_SUMS = "MEAN SUM REDUCE_PROD CUMSUM".split()


def _window_beyond(d: Difference, node: FuzzNode) -> bool:
    """Whether a VALID window is larger than what it lies on."""
    x = d.read(node)[0]
    sizes = (node.attrs.get("filter_height", 0), node.attrs.get("filter_width", 0))
    return (
        node.attrs.get("padding") == 1 and x.ndim == 4 and any(k > n for k, n in zip(sizes, x.shape[1:3], strict=True))
    )


def _nearly_equal(d: Difference, node: FuzzNode) -> bool:
    """Whether stored numbers of two scales are compared that are less than a 256th apart."""
    pair = [d.graph.quants.get(name) for name in node.inputs]
    if None in pair or pair[0] == pair[1]:
        return False
    a, b = (
        (x.astype(np.float64) - q.zero_points[0]) * q.scales[0]
        for x, q in zip(d.read(node), pair, strict=True)
        if q is not None
    )
    return bool((np.abs(a - b) < NEAR_STEP).any())


def _beyond_int32(d: Difference, node: FuzzNode) -> bool:
    quant = d.graph.quants[node.outputs[0]]
    return any(a.dtype.kind == "f" and bool((np.abs(a) >= 2.0**31 * min(quant.scales)).any()) for a in d.read(node))


def _less_than_a_step(d: Difference, node: FuzzNode) -> bool:
    """Whether stored numbers are divided whose quotient is less than a step of the result, but not 0."""
    quants = [d.graph.quants.get(name) for name in (*node.inputs, *node.outputs)]
    if None in quants:
        return False
    scales, zeros = [q.scales[0] for q in quants if q], [q.zero_points[0] for q in quants if q]
    a, b = (x.astype(np.float64) - zero for x, zero in zip(d.read(node), zeros, strict=False))
    with np.errstate(all="ignore"):
        steps = np.abs(a / b) * scales[0] / (scales[1] * scales[2])
    return bool(((steps > 0) & (steps < 1)).any())


def _by_channel(d: Difference, node: FuzzNode) -> bool:
    """Whether an operand has a scale for each channel."""
    return any(len(quant.scales) > 1 for name in node.inputs if (quant := d.graph.quants.get(name)) is not None)


def _nothing_multiplied(d: Difference, node: FuzzNode) -> bool:
    """Whether a product has one factor, whose scale is not the result's."""
    (x, *_), quants = d.read(node), [d.graph.quants.get(name) for name in (node.inputs[0], node.outputs[0])]
    return quants[0] != quants[1] and x.size == sum(y.size for y in d.made(node))


def _least_by_minus_one(d: Difference, node: FuzzNode) -> bool:
    """Whether the least integer is divided by -1: the quotient is one more than its type holds."""
    a, b = d.read(node)
    return a.dtype.kind == "i" and bool(((a == np.iinfo(a.dtype).min) & (b == -1)).any())


RULES: tuple[Rule, ...] = (
    Rule(frozenset(_ORDERED), "where a NaN stands among other numbers is open", reads_nan),
    Rule(frozenset(_STORED), "what integer a NaN or an infinity becomes is open", reads_odd),
    odd_taps(_WEIGHTED),
    Rule(frozenset(_TABLES), "LiteRT interpolates tables of functions of 16 bits", _near_in_16_bits),
    Rule(frozenset(["POW"]), "what powers that the integer type does not hold become is open", powers_overflow),
    Rule(
        frozenset(["AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"]),
        "of a window larger than its image LiteRT's delegate makes one that is cut off, its kernels none",
        _window_beyond,
    ),
    Rule(
        frozenset(_COMPARISONS),
        "LiteRT rounds stored numbers of two scales to 256ths before it compares them",
        _nearly_equal,
    ),
    Rule(
        frozenset(["LOCAL_RESPONSE_NORMALIZATION"]),
        "LiteRT's running sum keeps a NaN or an infinity that the window has left",
        reads_odd,
    ),
    Rule(frozenset(_ORDERED), "which of 0 and -0 is the larger is open", reads_negative_zero),
    Rule(frozenset(["DIV"]), "LiteRT shifts by more than 31 bits where less than a step comes out", _less_than_a_step),
    Rule(frozenset(["ONE_HOT"]), "LiteRT cuts positions to 32 bits", reads_beyond(2.0**31)),
    Rule(frozenset(["QUANTIZE"]), "LiteRT wraps around what lies 2^31 steps from zero", _beyond_int32),
    Rule(frozenset(["GELU"]), "minus infinity gives its limit, 0; LiteRT multiplies it by 0", reads_odd),
    Rule(
        frozenset(elementwise.ROWS) - {"QUANTIZE", "DEQUANTIZE"} | {"BATCH_MATMUL", "L2_NORMALIZATION"},
        "TFLite has one scale for all but weights; LiteRT takes 0 for the scale of a tensor with several",
        _by_channel,
    ),
    Rule(frozenset(_COMPARISONS), "whether numbers that rounding sets apart are equal is open", nearly_equal),
    Rule(
        frozenset(["REDUCE_PROD"]), "LiteRT copies a stored number that nothing is multiplied by", _nothing_multiplied
    ),
    Rule(
        frozenset(["DIV"]), "what a quotient becomes that the integer type does not hold is open", _least_by_minus_one
    ),
    Rule(frozenset(_SUMS), "what integers that do not hold a sum become is open", whole_overflows),
)
