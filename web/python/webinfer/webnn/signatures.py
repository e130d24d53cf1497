"""The builder's methods: arguments, options, and the element types and ranks of operands.

The one declaration of all three: JavaScript converts arguments by it, `opSupportLimits` shows it, and calls are checked
by it. What else a call must fulfil, its operator's own declaration says.

    "method": "operand:types:ranks argument:kind | option:kind … -> types"

Types are a name of TYPES, types joined by "/", or "=x" for those of operand x. Ranks are "4", "1-8", or left out for
any. Operands whose name ends in "*" are lists. Other kinds are those of static/webnn_idl.js; words joined by "/" are an
enumeration. The result has the types of the first operand unless "->" says others; "*" behind them says that it is a
list.
"""

from __future__ import annotations

import functools

from webinfer.lazy_dataclass import dataclass

MAX_RANK = 8
FLOAT = ("float32", "float16")
SIGNED = (*FLOAT, "int32", "int64", "int8")
ANY = (*FLOAT, "int32", "uint32", "int64", "uint64", "int8", "uint8")
WORDS = (*ANY, "int4", "uint4")
TYPES: dict[str, tuple[str, ...]] = {
    "float": FLOAT,
    "signed": SIGNED,
    "any": ANY,
    "ordered": tuple(name for name in ANY if name != "uint64"),  # no kernel compares or divides uint64
    "scan": (*FLOAT, "int32", "uint32", "int64", "uint64"),
    "sum": (*FLOAT, "int32", "uint32", "int64"),
    "index": ("int32", "uint32", "int64"),
    "fact": ("uint8",),
    "quantized": ("int8", "uint8", "int32", "uint32", "int4", "uint4"),
    "cast": WORDS,
}
_POOL = "windowDimensions:u32s padding:u32s strides:u32s dilations:u32s layout:nchw/nhwc roundingType:floor/ceil "
_POOL += "outputShapeRounding:floor/ceil outputSizes:u32s"
_REDUCE = "| axes:u32s keepDimensions:bool"
_CONV = "padding:u32s strides:u32s dilations:u32s groups:u32 inputLayout:nchw/nhwc bias:=input:1"
_CELL = "activations:relu/sigmoid/tanh*"
_SEQUENCE = "returnSequence:bool direction:forward/backward/both " + _CELL

_REAL = "ceil cos erf exp floor gelu hardSwish log reciprocal roundEven sigmoid sin softplus softsign sqrt tan tanh"

METHODS: dict[str, str] = {
    **dict.fromkeys(
        ("argMax", "argMin"), "input:ordered axis:u32 | keepDimensions:bool outputDataType:type -> int32/int64"
    ),
    "batchNormalization": "input:float:1-8 mean:=input:1 variance:=input:1 | scale:=input:1 bias:=input:1 axis:u32 "
    "epsilon:f64",
    "cast": "input:cast type:type -> cast",
    "clamp": "input:any | minValue:number maxValue:number",
    "concat": "inputs*:any:1-8 axis:u32",
    "conv2d": f"input:float:4 filter:=input:4 | {_CONV} filterLayout:oihw/hwio/ohwi/ihwo",
    "convTranspose2d": f"input:float:4 filter:=input:4 | {_CONV} filterLayout:iohw/hwoi/ohwi outputPadding:u32s "
    "outputSizes:u32s",
    "cumulativeSum": "input:scan:1-8 axis:u32 | exclusive:bool reversed:bool",
    **dict.fromkeys(("add", "sub", "mul"), "a:any b:=a"),
    **dict.fromkeys(("div", "max", "min", "pow"), "a:ordered b:=a"),
    **dict.fromkeys(("equal", "notEqual"), "a:any b:=a -> fact"),
    **dict.fromkeys(("greater", "greaterOrEqual", "lesser", "lesserOrEqual"), "a:ordered b:=a -> fact"),
    "logicalNot": "a:fact",
    **dict.fromkeys(("logicalAnd", "logicalOr", "logicalXor"), "a:fact b:=a"),
    **dict.fromkeys(("isNaN", "isInfinite"), "a:float -> fact"),
    **dict.fromkeys(("abs", "neg", "sign", "relu"), "input:signed"),
    **dict.fromkeys(_REAL.split(), "input:float"),
    "identity": "input:any",
    "dequantizeLinear": "input:quantized scale:float zeroPoint:=input -> =scale",
    "quantizeLinear": "input:float scale:=input zeroPoint:quantized -> =zeroPoint",
    "elu": "input:float | alpha:f64",
    "expand": "input:any newShape:u32s",
    "gather": "input:any:1-8 indices:index | axis:u32",
    "gatherElements": "input:any:1-8 indices:index:1-8 | axis:u32",
    "gatherND": "input:any:1-8 indices:index:1-8",
    "gemm": "a:float:2 b:=a:2 | c:=a:0-2 alpha:f64 beta:f64 aTranspose:bool bTranspose:bool",
    "gru": "input:float:3 weight:=input:3 recurrentWeight:=input:3 steps:u32 hiddenSize:u32 | bias:=input:2 "
    f"recurrentBias:=input:2 initialHiddenState:=input:3 resetAfter:bool layout:zrn/rzn {_SEQUENCE} -> =input*",
    "gruCell": "input:float:2 weight:=input:2 recurrentWeight:=input:2 hiddenState:=input:2 hiddenSize:u32 | "
    f"bias:=input:1 recurrentBias:=input:1 resetAfter:bool layout:zrn/rzn {_CELL}",
    "hardSigmoid": "input:float | alpha:f64 beta:f64",
    "instanceNormalization": "input:float:4 | scale:=input:1 bias:=input:1 epsilon:f64 layout:nchw/nhwc",
    "layerNormalization": "input:float | scale:=input bias:=input axes:u32s epsilon:f64",
    "leakyRelu": "input:float | alpha:f64",
    "linear": "input:float | alpha:f64 beta:f64",
    "lstm": "input:float:3 weight:=input:3 recurrentWeight:=input:3 steps:u32 hiddenSize:u32 | bias:=input:2 "
    "recurrentBias:=input:2 peepholeWeight:=input:2 initialHiddenState:=input:3 initialCellState:=input:3 "
    f"layout:iofg/ifgo {_SEQUENCE} -> =input*",
    "lstmCell": "input:float:2 weight:=input:2 recurrentWeight:=input:2 hiddenState:=input:2 cellState:=input:2 "
    f"hiddenSize:u32 | bias:=input:1 recurrentBias:=input:1 peepholeWeight:=input:1 layout:iofg/ifgo {_CELL} "
    "-> =input*",
    "matmul": "a:float:2-8 b:=a:2-8",
    "pad": "input:any:1-8 beginningPadding:u32s endingPadding:u32s | "
    "mode:constant/edge/reflection/symmetric value:number",
    **dict.fromkeys(("averagePool2d", "l2Pool2d"), f"input:float:4 | {_POOL}"),
    "maxPool2d": f"input:any:4 | {_POOL}",
    "prelu": "input:signed slope:=input",
    **dict.fromkeys(("reduceL2", "reduceLogSum", "reduceLogSumExp", "reduceMean"), f"input:float {_REDUCE}"),
    **dict.fromkeys(("reduceL1", "reduceProduct", "reduceSum", "reduceSumSquare"), f"input:sum {_REDUCE}"),
    **dict.fromkeys(("reduceMax", "reduceMin"), f"input:ordered {_REDUCE}"),
    "resample2d": "input:float:4 | mode:nearest-neighbor/linear scales:f32s sizes:u32s axes:u32s",
    "reshape": "input:any newShape:u32s",
    "reverse": "input:any | axes:u32s",
    "scatterElements": "input:any:1-8 indices:index:1-8 updates:=input:1-8 | axis:u32",
    "scatterND": "input:any:1-8 indices:index:1-8 updates:=input",
    "slice": "input:any starts:u32s sizes:u32s | strides:u32s",
    "softmax": "input:float:1-8 axis:u32",
    "split": "input:any:1-8 splits:u32|u32s | axis:u32 -> =input*",
    "tile": "input:any repetitions:u32s",
    "transpose": "input:any | permutation:u32s",
    "triangular": "input:any:2-8 | upper:bool diagonal:i32",
    "where": "condition:fact trueValue:any falseValue:=trueValue -> =trueValue",
}


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a method: its types, or the operand whose type it has; its ranks; whether it is a list."""

    name: str
    types: tuple[str, ...]
    like: str
    ranks: tuple[int, int]
    listed: bool
    required: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """A method: its operands, its other arguments (name, kind) in order with operands among them, its result."""

    operands: tuple[Operand, ...]
    arguments: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]
    result: str
    result_types: tuple[str, ...]


def _types(kind: str, operands: dict[str, Operand]) -> tuple[tuple[str, ...], str]:
    if kind.startswith("="):
        return operands[kind[1:]].types, kind[1:]
    return TYPES.get(kind) or tuple(kind.split("/")), ""


def _is_operand(kind: str) -> bool:
    return kind.startswith("=") or kind in TYPES


@functools.cache
def signature(name: str) -> Signature:
    """The declaration of a method."""
    text, _, result = METHODS[name].partition(" -> ")
    required, _, optional = text.partition(" | ")
    operands, rows = dict[str, Operand](), list[list[tuple[str, str]]]()
    for words, needed in ((required, True), (optional, False)):
        row = list[tuple[str, str]]()
        for word in words.split():
            key, kind, *ranks = word.split(":")
            if _is_operand(kind):
                listed, key = key.endswith("*"), key.rstrip("*")
                low, _, high = (ranks[0] if ranks else f"0-{MAX_RANK}").partition("-")
                types, like = _types(kind, operands)
                operands[key] = Operand(key, types, like, (int(low), int(high or low)), listed, needed)
                kind = "operands" if listed else "operand"
            row.append((key, kind))
        rows.append(row)
    first = next(iter(operands.values()))
    types = _types(result.rstrip("*"), operands)[0] if result else first.types
    kind = "outputs" if result.endswith("*") else "output"
    return Signature(tuple(operands.values()), tuple(rows[0]), tuple(rows[1]), kind, types)


def table() -> dict[str, list[list[list[str]]]]:
    """What JavaScript is told: for each method its arguments and its options, each a name and a kind."""
    found = {}
    for name in sorted(METHODS):
        own = signature(name)
        found[name] = [[list(pair) for pair in row] for row in (own.arguments, own.options)]
    return found
