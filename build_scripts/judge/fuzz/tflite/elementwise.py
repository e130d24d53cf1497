"""Random TFLite nodes that compute each element by itself."""

from collections.abc import Callable, Sequence

import numpy as np

from build_scripts.judge.fuzz.graphs import FuzzNode, Quant
from build_scripts.judge.fuzz.tflite.drawing import REAL, STORED, STORED8, WHOLE, TfliteDraw

Row = Callable[[TfliteDraw], FuzzNode | list[FuzzNode] | None]
CODES = {
    "float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7, "int8": 9, "uint32": 15,
}  # fmt: skip
_SHARES = {"qint8": Quant((1 / 256,), (-128,)), "quint8": Quant((1 / 256,), (0,)), "qint16": Quant((1 / 32768,), (0,))}
_SIGNED = {"qint8": Quant((1 / 128,), (0,)), "quint8": Quant((1 / 128,), (128,)), "qint16": Quant((1 / 32768,), (0,))}
FIXED = {  # scales and zero points that the format prescribes, by the type
    "LOGISTIC": _SHARES,
    "TANH": _SIGNED,
    "SOFTMAX": _SHARES,
    "LOG_SOFTMAX": {"qint8": Quant((16 / 256,), (127,)), "quint8": Quant((16 / 256,), (255,))},
    "L2_NORMALIZATION": _SIGNED,
}


def unary(op: str, kinds: Sequence[str] = REAL, **options: tuple[float, ...]) -> Row:
    """One operand; a quantised result has a scale of its own, or the one that the format prescribes."""

    def row(d: TfliteDraw) -> FuzzNode:
        x = d.value(kinds)
        kind = d.kind(x)
        chosen = {key: d.real(*numbers) for key, numbers in options.items()}
        return d.make(op, [x], d.out(kind, FIXED.get(op, {}).get(kind)), **chosen)

    return row


def binary(op: str, kinds: Sequence[str], fused: bool = False, alike: bool = False) -> Row:
    """Two operands that broadcast; `alike` if all quantised ones must have one scale."""

    def row(d: TfliteDraw) -> FuzzNode:
        x = d.value(kinds)
        y = d.partner(x)
        a, b = d.known(x), d.known(y)
        if op in ("DIV", "FLOOR_DIV", "FLOOR_MOD") and b.dtype.kind in "iu" and (b == 0).any():  # it refuses, or ends
            y = d.new(np.where(b == 0, 1, b).astype(b.dtype))
        if op == "POW" and a.dtype.kind == "i":
            y = d.new(d.array(a.dtype.name, b.shape, 0, 4))
        if alike and x in d.quants:
            y = d.new(d.array(d.kind(x), b.shape))
            d.quants[y] = d.quants[x]
        pair = [y, x] if d.chance(0.3) and op != "POW" else [x, y]
        result = d.same(x) if alike else d.out(d.kind(x))
        act = d.activation() if fused and d.known(x).dtype != np.int64 else None
        return d.make(op, pair, result, **({} if act is None else {"fused_activation_function": act}))

    return row


def comparison(op: str, kinds: Sequence[str] = (*REAL, *WHOLE, *STORED8)) -> Row:
    """Two operands that broadcast, to bool."""

    def row(d: TfliteDraw) -> FuzzNode:
        x = d.value(kinds)
        return d.make(op, [x, d.partner(x)], d.out("bool"))

    return row


def _cast(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, *WHOLE, "bool", "int8", "uint8", "int16", "uint32", "float16"))
    to = d.dtype((*REAL, *WHOLE, "bool", "int8", "uint8", "int16", "uint32"))
    return d.make("CAST", [x], d.out(to), in_data_type=CODES[d.known(x).dtype.name], out_data_type=CODES[to])


def _select(op: str) -> Row:
    def row(d: TfliteDraw) -> FuzzNode:
        x = d.value((*REAL, *WHOLE, "bool"))
        y = d.like(x, d.known(x).shape) if op == "SELECT" else d.partner(x)
        shape = np.broadcast_shapes(d.known(x).shape, d.known(y).shape)
        if np.prod(shape) == 1:
            raise ValueError("it keeps the shape that the file declares")
        found = d.fitting(("bool",), lambda a: a.shape == shape)
        part = [n if op == "SELECT" or d.chance(0.8) else 1 for n in shape]
        condition = d.pick(found) if found and d.chance(0.8) else d.new(d.array("bool", part))
        return d.make(op, [condition, x, y], d.same(x))

    return row


def _prelu(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, *STORED8), 1, 4)
    shape = d.known(x).shape
    slope = [n if d.chance(0.6) or i == len(shape) - 1 else 1 for i, n in enumerate(shape)][
        d.integer(0, len(shape) - 1) :
    ]
    return d.make("PRELU", [x, d.like(x, slope)], d.out(d.kind(x)))


def _quantize(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, *STORED))
    return d.make("QUANTIZE", [x], d.out(d.dtype(STORED)))


def _fake_quant(d: TfliteDraw) -> FuzzNode:
    return d.make(
        "FAKE_QUANT", [d.value(REAL)], d.out("float32"), min=-d.real(1.0, 2.0), max=d.real(1.0, 6.0) + 2, num_bits=8
    )


def _add_n(d: TfliteDraw) -> FuzzNode:
    x = d.value((*REAL, "int32"))
    return d.make("ADD_N", [x, *(d.like(x, d.known(x).shape) for _ in range(d.integer(1, 3)))], d.same(x))


def _atan2(d: TfliteDraw) -> FuzzNode:
    x = d.value(REAL)
    return d.make("ATAN2", [x, d.like(x, d.known(x).shape)], d.out("float32"))  # it checks no shapes, and reads on


_SIMPLE = "CEIL COS FLOOR ROUND SIGN SIN SQRT SQUARE".split()

ROWS: dict[str, Row] = {
    **{op: unary(op) for op in _SIMPLE},
    **{op: unary(op, (*REAL, *STORED)) for op in ("LOGISTIC", "TANH")},
    **{op: unary(op, (*REAL, *STORED8)) for op in ("HARD_SWISH", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")},
    **{op: unary(op, (*REAL, "qint8")) for op in ("ELU", "EXP", "LOG", "RSQRT", "GELU")},
    "ABS": unary("ABS", (*REAL, "int32", "qint8", "qint16")),
    "NEG": unary("NEG", (*REAL, *WHOLE)),
    "LEAKY_RELU": unary("LEAKY_RELU", (*REAL, *STORED), alpha=(0.01, 0.3, -0.5)),
    "ZEROS_LIKE": unary("ZEROS_LIKE", (*REAL, *WHOLE)),
    **{op: binary(op, (*REAL, *WHOLE, *STORED), fused=True) for op in ("ADD", "SUB", "MUL")},
    "DIV": binary("DIV", (*REAL, "int32", "quint8"), fused=True),
    **{op: binary(op, (*REAL, *WHOLE, *STORED8), alike=True) for op in ("MAXIMUM", "MINIMUM")},
    "SQUARED_DIFFERENCE": binary("SQUARED_DIFFERENCE", (*REAL, "int32", "qint8")),
    "FLOOR_DIV": binary("FLOOR_DIV", (*REAL, "int32")),
    "FLOOR_MOD": binary("FLOOR_MOD", (*REAL, *WHOLE)),
    "POW": binary("POW", (*REAL, "int32")),
    "ATAN2": _atan2,
    **{op: comparison(op) for op in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")},
    **{op: comparison(op, ("bool",)) for op in ("LOGICAL_AND", "LOGICAL_OR")},
    "LOGICAL_NOT": unary("LOGICAL_NOT", ("bool",)),
    "BITWISE_XOR": binary("BITWISE_XOR", ("int32", "uint32", "int8", "uint8", "int16")),
    "CAST": _cast,
    "SELECT": _select("SELECT"),
    "SELECT_V2": _select("SELECT_V2"),
    "PRELU": _prelu,
    "QUANTIZE": _quantize,
    "DEQUANTIZE": lambda d: d.make("DEQUANTIZE", [d.value((*STORED, "float16"))], d.out("float32")),
    "FAKE_QUANT": _fake_quant,
    "ADD_N": _add_n,
}
