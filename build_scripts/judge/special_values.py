"""The table of tolerances and special values: how far a backend may be off, and what NaN, infinity and edges give."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

SUMMED = "a NaN gives a NaN; an infinity stays, two of both signs give a NaN; where the terms overflow float32, open"
PLAIN = "a NaN gives a NaN, an infinity what IEEE 754 says; integers wrap around"
POSITIONS = "a negative position counts from the end, one outside goes to the nearest element"
QUOTIENT = "integers: x / 0 is 0, and the least number / -1 wraps around; floats as IEEE 754 says"
PRODUCT = f"bytes: the int32 sum wraps around; floats: {SUMMED}"
TAPS = "zeros of the padding times an infinite weight may make a NaN"
LINES = (
    "a beta that is negative, infinite or a NaN is refused; open where float32 overflows between two elements of a line"
)
NUMBERS = "which result is chosen for NaN, infinite and extreme numbers is open"

# What is not said by SUMMED or PLAIN, by operator.
SPECIAL = {
    "arg_max": "a NaN is the extreme; of equals the first",
    "arg_min": "a NaN is the extreme; of equals the first",
    "attention": f"{SUMMED}, and where an infinite value meets a weight that rounds to 0",
    "block_matmul": NUMBERS,
    "cached_attention": NUMBERS,
    "cast": "floats are cut towards zero and saturate, a NaN gives 0; integers wrap around",
    "clamp": "a NaN stays; a bound that is a NaN is refused; of bounds that cross the upper one counts",
    "conv2d": f"{PRODUCT}; {TAPS}",
    "conv_transpose2d": f"{PRODUCT}; {TAPS}",
    "depthwise_conv2d": f"{PRODUCT}; {TAPS}",
    "detection_postprocess": NUMBERS,
    "div": QUOTIENT,
    "floor_div": QUOTIENT,
    "floor_mod": "integers: x % 0 is 0; floats as NumPy says",
    "gather": POSITIONS,
    "gather_elements": POSITIONS,
    "gather_nd": POSITIONS,
    "gelu": "minus infinity gives its limit, 0",
    "hard_swish": "infinite from a sixth of the largest float32 on",
    "layer_norm": "as IEEE 754 says; open where a sum of squares overflows float32, or vanishes",
    "log_softmax": LINES,
    "matmul": PRODUCT,
    "max_pool2d": "a NaN is the largest",
    "max_pool_with_argmax2d": "a NaN is the largest; of equals the first",
    "max_unpool2d": "of several for one place the last in row-major order stays; taps outside the window are dropped",
    "non_max_suppression": NUMBERS,
    "one_hot": "a position outside gives only `off`",
    "posenet_decoder": NUMBERS,
    "pow": "integers: of a negative exponent 1, -1 or 0 is left; floats as IEEE 754 says",
    "quantize": "saturates; a NaN gives the zero point",
    "recurrent": NUMBERS,
    "reduce_max": "a NaN is the largest",
    "reduce_min": "a NaN is the least",
    "round_rows": NUMBERS,
    "scatter_elements": f"{POSITIONS}; of several updates of one place the last stays",
    "scatter_nd": f"{POSITIONS}; of several updates of one place the last stays, or all are added",
    "sample": NUMBERS,
    "softmax": LINES,
    "ssd_detections": NUMBERS,
    "swiglu": NUMBERS,
    "top_k": "of equals the first, a NaN last",
}


def _size(tolerance: Any) -> str:
    if not tolerance.absolute and not tolerance.relative:
        return "exact"
    whole = "the sum of magnitudes" if tolerance.summed else "the result"
    return f"{tolerance.absolute:g} + {tolerance.relative:g} of {whole}"


def table(operators: Iterable[Any]) -> str:
    """The rows, operators with the same words in one."""
    words = [
        (_size(t), t.reason, SPECIAL.get(op.name, SUMMED if t.summed else PLAIN), op.name)
        for op in operators
        if (t := op.tolerance) is not None
    ]
    rows = ["| operators | off by at most | because | special values |", "|---|---|---|---|"]
    for (size, reason, special), group in groupby(sorted(words), key=lambda row: row[:3]):
        names = ", ".join(f"`{row[3]}`" for row in group)
        rows.append(f"| {names} | {size} | {reason} | {special} |")
    return "\n".join(rows)
