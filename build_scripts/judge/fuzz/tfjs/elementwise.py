"""Random TensorFlow.js nodes that compute each element by itself."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.draw import Draw
from build_scripts.judge.fuzz.graphs import FuzzNode

Row = Callable[[Draw], FuzzNode | list[FuzzNode] | None]
REAL, WHOLE, BOTH, ALL = ("float32",), ("int32",), ("float32", "int32"), ("float32", "int32", "bool")
KINDS = {"float32": "DT_FLOAT", "int32": "DT_INT32", "bool": "DT_BOOL"}


def unary(op: str, kinds: Sequence[str] = REAL, **attrs: Any) -> Row:
    """One operand."""
    return lambda d: d.node(op, [d.value(kinds)], **{key: d.pick(choices) for key, choices in attrs.items()})


def binary(op: str, kinds: Sequence[str] = BOTH) -> Row:
    """Two operands that broadcast, in either order."""

    def row(d: Draw) -> FuzzNode:
        x = d.value(kinds)
        y = d.partner(x)
        whole = d.known(y).dtype.kind == "i"
        if whole and op in ("Div", "RealDiv", "FloorDiv", "Mod", "FloorMod") and (d.known(y) == 0).any():
            y = d.new(np.where(d.known(y) == 0, 3, d.known(y)).astype("int32"))
        if op == "Pow":
            y = d.new(d.array(d.known(x).dtype.name, d.known(y).shape, 0, 3))
        return d.node(
            op,
            [y, x] if d.chance(0.3) and op not in ("Pow", "Div", "RealDiv", "FloorDiv", "Mod", "FloorMod") else [x, y],
        )

    return row


def _cast(d: Draw) -> FuzzNode:
    x = d.value(ALL)
    return d.node("Cast", [x], SrcT=KINDS[d.known(x).dtype.name], DstT=KINDS[d.dtype(ALL)])


def _clip(d: Draw) -> FuzzNode:
    low = d.real(-1.0, 0.0)
    return d.node("ClipByValue", [d.value(REAL), d.constant(low, "float32"), d.constant(low + 2, "float32")])


def _prelu(d: Draw) -> FuzzNode:
    x = d.value(REAL, 1, 4)
    shape = d.known(x).shape
    return d.node("Prelu", [x, d.like(x, shape[d.integer(0, len(shape) - 1) :])])


def _select(op: str) -> Row:
    def row(d: Draw) -> FuzzNode:
        x = d.value(BOTH)
        y = d.like(x, d.known(x).shape) if op == "Select" else d.partner(x)
        shape = np.broadcast_shapes(d.known(x).shape, d.known(y).shape)
        found = d.fitting(("bool",), lambda a: a.shape == shape)
        return d.node(op, [d.pick(found) if found and d.chance(0.7) else d.new(d.array("bool", shape)), x, y])

    return row


def _add_n(d: Draw) -> FuzzNode:
    x = d.value(BOTH)
    names = [x, *(d.like(x, d.known(x).shape) for _ in range(d.integer(1, 2)))]
    return d.node("AddN", names, N=len(names))


def _bias(d: Draw) -> FuzzNode:
    x = d.value(REAL, 2, 4)
    return d.node("BiasAdd", [x, d.like(x, d.known(x).shape[-1:])])


_SIMPLE = (
    "Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Elu Erf Exp Expm1 Floor IsFinite IsInf IsNan Log Log1p Reciprocal "
    "Round Rsqrt Selu Sigmoid Sin Sinh Softplus Sqrt Tan Tanh"
).split()

ROWS: dict[str, Row] = {
    **{op: unary(op) for op in _SIMPLE},
    **{op: unary(op, BOTH) for op in ("Abs", "Neg", "Relu", "Relu6", "Sign", "Square")},
    **{
        op: unary(op, ALL)
        for op in ("Identity", "OnesLike", "Rank", "Shape", "Size", "Snapshot", "StopGradient", "ZerosLike")
    },
    "LeakyRelu": unary("LeakyRelu", alpha=(0.2, 0.01)),
    "LogicalNot": unary("LogicalNot", ("bool",)),
    **{
        op: binary(op)
        for op in (
            "Add AddV2 Sub Mul Div RealDiv FloorDiv FloorMod Mod Maximum Minimum Pow SquaredDifference Equal NotEqual "
            "Greater GreaterEqual Less LessEqual"
        ).split()
    },
    **{op: binary(op, REAL) for op in ("Atan2", "DivNoNan")},
    **{op: binary(op, ("bool",)) for op in ("LogicalAnd", "LogicalOr")},
    "BitwiseAnd": binary("BitwiseAnd", WHOLE),
    "AddN": _add_n,
    "BiasAdd": _bias,
    "Cast": _cast,
    "ClipByValue": _clip,
    "Prelu": _prelu,
    "Select": _select("Select"),
    "SelectV2": _select("SelectV2"),
}
