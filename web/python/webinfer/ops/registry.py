"""The table of all operators, filled by the family files."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Cost, Op, Quantization, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass

LARGEST = 3.4028234663852886e38  # finite float32
OPS: dict[str, Op] = {}

EXACT = Tolerance(reason="moves or compares values, computes none")
ONE_ROUNDING = Tolerance(absolute=1e-6, relative=1e-6, reason="one or two float32 roundings")
DOT_PRODUCT = Tolerance(2e-5, 2e-5, "the order of a float32 sum is free", summed=True)
TRANSCENDENTAL = Tolerance(absolute=4e-6, relative=4e-6, reason="polynomials of about 1e-7, WGSL allows more")


Inputs = Sequence[TensorType | None]


def is_stored(type: TensorType) -> bool:
    """Whether integers stand for real numbers."""
    return type.quant is not None and not type.dtype.is_float


def result_alike(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    """Type rule: the first result is stored with a scale just where the first input is, else of the input's type."""
    x, y = inputs[0], outputs[0]
    assert x is not None
    if is_stored(x) is is_stored(y) and (is_stored(x) or x.dtype is y.dtype):
        return far_scales(inputs, outputs) if is_stored(x) else ""
    needed = "quantised integers with a scale" if is_stored(x) else f"{x.dtype} without a scale"
    return f"the result is {y}, needs {needed} beside x {x}"


def far_scales(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    """Type rule: scales are positive, and none is more than the largest float32 times the result's."""
    product = 1.0
    for t in inputs:
        if t is not None and t.quant is not None and t.dtype.itemsize < 4:
            product *= max(t.quant.scales)
    scales = [s for t in (*inputs, *outputs) if t is not None and t.quant is not None for s in t.quant.scales]
    y = outputs[0]
    assert y.quant is not None
    largest = max(product, *scales)
    if min(scales) > 0 and largest < LARGEST * min(y.quant.scales) and largest < LARGEST:
        return ""
    return f"the scales {min(scales)} to {largest} are out of range or too far from the result's {y}"


def numbers(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    """Type rule: no input is of truth values, which nobody adds or negates."""
    wrong = next((t for t in inputs if t is not None and t.dtype is DType.BOOL), None)
    return "" if wrong is None else f"an operand is {wrong}, needs numbers; cast it first"


def same_elements(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    """Type rule: the first result holds elements of the first input, so their element types are the same."""
    x, y = inputs[0], outputs[0]
    assert x is not None
    return "" if x.dtype is y.dtype else f"the result is {y}, needs {x.dtype}, as x is {x}"


def operands_alike(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    """Type rule: all inputs are stored with a scale, or none is and all have one type."""
    x, *others = (t for t in inputs if t is not None)
    for t in others:
        if is_stored(t) is not is_stored(x) or (not is_stored(x) and t.dtype is not x.dtype):
            needed = "quantised integers with a scale" if is_stored(x) else f"{x.dtype} without a scale"
            return f"one operand is {t}, needs {needed} beside {x}"
    return ""


def all_whole(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    """Type rule: every input is of integers."""
    wrong = next((t for t in inputs if t is not None and t.dtype.is_float), None)
    return "" if wrong is None else f"an input is {wrong}, needs integers"


def real_or_stored(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    """Type rule: the first input is of floats, or of integers with a scale."""
    x = inputs[0]
    return "" if x is None or x.dtype.is_float or is_stored(x) else f"x is {x}, needs floats or integers with a scale"


def all_real(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    """Type rule: every input is of floats."""
    wrong = next((t for t in inputs if t is not None and not t.dtype.is_float), None)
    return "" if wrong is None else f"an input is {wrong}, needs floats"


def product_operands(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    """Type rule: weights, bias, residual and slope fit x.

    Beside floats all are floats, but weights may be stored with a scale. Beside integers with a scale, so are the
    others, and the bias is int32 or int64.
    """
    x, w, bias, *others = [*inputs, None][: max(3, len(inputs))]
    assert x is not None
    assert w is not None
    if x.dtype.is_float:
        if not w.dtype.is_float and not is_stored(w):
            return f"weights are {w}, need floats or integers with a scale beside x {x}"
        wrong = next((t for t in (bias, *others) if t is not None and not t.dtype.is_float), None)
        return "" if wrong is None else f"bias, residual or slope is {wrong}, needs floats beside x {x}"
    if not is_stored(w):
        return f"weights are {w}, need integers with a scale beside x {x}"
    if bias is not None and bias.dtype not in (DType.INT32, DType.INT64):
        return f"bias is {bias}, needs int32 or int64 beside x {x}"
    wrong = next((t for t in others if t is not None and not is_stored(t)), None)
    return "" if wrong is None else f"residual or slope is {wrong}, needs integers with a scale beside x {x}"


def real_result(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    """Type rule: the result is of floats."""
    return "" if outputs[0].dtype.is_float else f"the result is {outputs[0]}, needs floats"


def stored_result(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    """Type rule: the result is of integers with a scale."""
    return "" if is_stored(outputs[0]) else f"the result is {outputs[0]}, needs integers with a scale"


PRODUCT = (real_or_stored, product_operands, result_alike)  # of convolutions and matrix products


@dataclass(frozen=True, slots=True)
class NoAttrs:
    """An operator without attributes."""


def declare(op: Op) -> Op:
    """Enters an operator into `OPS` and returns it."""
    if op.name in OPS:
        raise ValueError(f"operator {op.name} is declared twice")
    OPS[op.name] = op
    return op


def need(op: str, name: str, tensor: TensorType | None, rank: int | None = None) -> TensorType:
    """The type of a required input, its rank checked."""
    if tensor is None:
        raise ShapeError(f"{op}: input {name} is missing")
    if rank is not None and tensor.rank != rank:
        raise ShapeError(f"{op}: {name} has shape {tensor.shape}, needs rank {rank}")
    return tensor


def moved_bytes(inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> int:
    """Bytes read once from each input and written once to each output."""
    return sum(t.nbytes for t in inputs if t is not None) + sum(t.nbytes for t in outputs)


def move_cost(inputs: Sequence[TensorType | None], outputs: Sequence[TensorType], attrs: object) -> Cost:
    """No arithmetic, every element moved."""
    return Cost(0, moved_bytes(inputs, outputs))


def elementwise_cost(inputs: Sequence[TensorType | None], outputs: Sequence[TensorType], attrs: object) -> Cost:
    """One operation an output element."""
    return Cost(sum(t.size for t in outputs), moved_bytes(inputs, outputs))


def broadcast(op: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcast of the shapes.

    Raises:  ShapeError naming the operator and all shapes.
    """
    rank = max(len(s) for s in shapes)
    out = []
    for dims in zip(*((1,) * (rank - len(s)) + s for s in shapes), strict=True):
        size = 1
        for d in dims:
            if d != 1 and size not in (1, d):
                raise ShapeError(f"{op}: shapes {', '.join(map(str, shapes))} do not broadcast")
            size = size if d == 1 else d
        out.append(size)
    return tuple(out)


def eight_bit(shape: tuple[int, ...], scale: float, zero: int = 0, dtype: DType = DType.INT8) -> TensorType:
    """The type of a quantised tensor; `zero` counts from the middle of the element type's range."""
    middle = 128 if dtype is DType.UINT8 else 0
    return TensorType(shape, dtype, Quantization((scale,), (middle + zero,)))
