"""Where TFLite leaves open what comes out, or LiteRT's own kernels do not agree."""

import numpy as np

from build_scripts.judge.fuzz.graphs import FuzzNode
from build_scripts.judge.fuzz.rules import (
    Difference,
    Rule,
    odd_taps,
    powers_overflow,
    reads_nan,
    reads_odd,
    two_infinities,
    whole_overflows,
)

_ORDERED = (  # the latter have a clamp behind them
    "ARG_MAX ARG_MIN MAXIMUM MINIMUM MAX_POOL_2D REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 SIGN "
    "TOPK_V2 UNIQUE UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN "
    "ADD SUB MUL DIV CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED AVERAGE_POOL_2D L2_POOL_2D TRANSPOSE_CONV"
).split()
_COMPARISONS = "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL".split()
_TABLES = "TANH LOGISTIC SOFTMAX LEAKY_RELU".split()
NEAR_STEP = 0.05  # of the smaller scale: LiteRT compares in fixed point
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
    """Whether stored numbers of two scales are compared that are a fraction of a step apart."""
    pair = [d.graph.quants.get(name) for name in node.inputs]
    if None in pair or pair[0] == pair[1]:
        return False
    a, b = (
        (x.astype(np.float64) - q.zero_points[0]) * q.scales[0]
        for x, q in zip(d.read(node), pair, strict=True)
        if q is not None
    )
    step = min(q.scales[0] for q in pair if q is not None)
    apart = np.abs(a - b)
    return bool((apart < NEAR_STEP * step).any())


RULES: tuple[Rule, ...] = (
    Rule(frozenset(_ORDERED), "where a NaN stands among other numbers is open", reads_nan),
    Rule(frozenset(_STORED), "what integer a NaN or an infinity becomes is open", reads_odd),
    odd_taps(_WEIGHTED),
    Rule(frozenset(_TABLES), "LiteRT interpolates tables of functions of 16 bits", _near_in_16_bits),
    Rule(frozenset(["ATAN2"]), "the direction of two infinities is a NaN here", two_infinities),
    Rule(frozenset(["POW"]), "what powers that the integer type does not hold become is open", powers_overflow),
    Rule(
        frozenset(["AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"]),
        "of a window larger than its image LiteRT's delegate makes one that is cut off, its kernels none",
        _window_beyond,
    ),
    Rule(frozenset(_COMPARISONS), "LiteRT compares stored numbers of two scales in fixed point", _nearly_equal),
    Rule(frozenset(["LOCAL_RESPONSE_NORMALIZATION"]), "an infinity beside its own square is open", reads_odd),
    Rule(frozenset(_SUMS), "what integers that do not hold a sum become is open", whole_overflows),
)
