"""Where TFLite leaves open what comes out, or LiteRT's own kernels do not agree."""

import numpy as np

from build_scripts.judge.fuzz.graphs import FuzzNode
from build_scripts.judge.fuzz.rules import Difference, Rule, powers_overflow, reads_nan, reads_odd, whole_overflows

_ORDERED = (  # the latter have a clamp behind them
    "ARG_MAX ARG_MIN MAXIMUM MINIMUM MAX_POOL_2D REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 SIGN "
    "TOPK_V2 UNIQUE UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN "
    "ADD SUB MUL DIV CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED AVERAGE_POOL_2D L2_POOL_2D TRANSPOSE_CONV"
).split()
_TABLES = "TANH LOGISTIC SOFTMAX LEAKY_RELU".split()
STEPS16 = 4  # of 65536


def _near_in_16_bits(d: Difference, node: FuzzNode) -> bool:
    """Whether the results are of 16 bits and as near as a table gives them."""
    pairs = [(g, w) for g, w in zip(d.got, d.want, strict=True) if w.dtype == np.int16 and g.shape == w.shape]
    return bool(pairs) and all(int(np.abs(g.astype(int) - w.astype(int)).max(initial=0)) <= STEPS16 for g, w in pairs)


_STORED = "CAST QUANTIZE FAKE_QUANT".split()
_WEIGHTED = "RESIZE_BILINEAR CONV_2D CONV_3D DEPTHWISE_CONV_2D TRANSPOSE_CONV FULLY_CONNECTED BATCH_MATMUL".split()
_SUMS = "MEAN SUM REDUCE_PROD CUMSUM".split()


def _two_infinities(d: Difference, node: FuzzNode) -> bool:
    y, x = d.read(node)[:2]
    return bool((np.isinf(y) & np.isinf(x)).any())


RULES: tuple[Rule, ...] = (
    Rule(frozenset(_ORDERED), "where a NaN stands among other numbers is open", reads_nan),
    Rule(frozenset(_STORED), "what integer a NaN or an infinity becomes is open", reads_odd),
    Rule(
        frozenset(_WEIGHTED),
        "whether a tap of weight 0, which may make a NaN of an infinity, is read is open",
        reads_odd,
    ),
    Rule(frozenset(_TABLES), "LiteRT interpolates tables of functions of 16 bits", _near_in_16_bits),
    Rule(frozenset(["ATAN2"]), "the direction of two infinities is a NaN here", _two_infinities),
    Rule(frozenset(["POW"]), "what powers that the integer type does not hold become is open", powers_overflow),
    Rule(frozenset(_SUMS), "what integers that do not hold a sum become is open", whole_overflows),
)
