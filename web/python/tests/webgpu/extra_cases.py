"""Cases that reach the shaders which no operator's own case reaches."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Case, Op, Quantization, TensorType
from webinfer.ops import OPS
from webinfer.ops.elementwise import CastAttrs, UnaryAttrs
from webinfer.ops.matmul import MatmulAttrs
from webinfer.ops.reduce import ReduceAttrs
from webinfer.ops.softmax import SoftmaxAttrs

_LONG = TensorType((3, 1024))
_WIDE = (2.0**40, -(2.0**40), 5.0, -5.0, 2.0**33, -1.0, 0.0)
_SHORTS = TensorType((3, 21), DType.INT16, Quantization((0.01,), (0,)))


def _reduced(name: str, type: TensorType = _LONG, low: float = -3.0, high: float = 3.0) -> tuple[Op, Case]:
    return OPS[name], Case(f"a workgroup a row, {type.dtype}", (type,), ReduceAttrs((1,)), low=low, high=high)


_SHORTS_OUT = CastAttrs(DType.INT16, Quantization((0.03,), (7,)))
_HALVES = (TensorType((3, 8), DType.FLOAT16), TensorType((8, 5), DType.FLOAT16))


def _clamped(label: str, dtype: DType, low: float, values: tuple[float, ...]) -> tuple[Op, Case]:
    attrs = UnaryAttrs(low, 2.0**34)
    return OPS["clamp"], Case(label, (TensorType((len(values),), dtype),), attrs, values={0: values})


EXTRA: tuple[tuple[Op, Case], ...] = (
    _reduced("reduce_sum"),
    _reduced("reduce_mean"),
    _reduced("reduce_max", low=-9, high=-1),
    _reduced("reduce_min", low=1, high=9),
    _reduced("reduce_product", low=0.99, high=1.01),
    _reduced("reduce_log_sum_exp"),
    _reduced("reduce_l2"),
    _reduced("reduce_sum", TensorType((2, 4096), DType.INT32), -99, 99),
    _clamped("int64, both words", DType.INT64, -(2.0**35), _WIDE),
    _clamped("uint64, both words", DType.UINT64, 6.0, (0, 2.0**40, 7, 2.0**34)),
    (OPS["quantize"], Case("int16 to another scale", (_SHORTS,), _SHORTS_OUT, low=-32768, high=32767)),
    (OPS["softmax"], Case("long middle axis", (TensorType((2, 300, 3)),), SoftmaxAttrs(1))),
    (OPS["softmax"], Case("float16", (TensorType((3, 9), DType.FLOAT16),), SoftmaxAttrs(1))),
    (OPS["matmul"], Case("float16, odd columns", _HALVES, MatmulAttrs(), constant=(1,), low=-1, high=1)),
)
