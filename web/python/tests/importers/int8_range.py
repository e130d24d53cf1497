"""Which 8-bit weights ONNX Runtime multiplies exactly on this processor."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper


@cache
def int8_ends() -> tuple[int, int]:
    """The least and the largest weight: -128 and 127, or -64 and 63 where sums of two products stop at 16 bits.

    Processors with AVX2 and without VNNI add such a pair, of a byte and a signed byte each, in 16 bits.
    """
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    ends = [helper.make_tensor_value_info("x", 2, (4, 64))], [helper.make_tensor_value_info("y", 6, (4, 8))]
    held = [numpy_helper.from_array(np.full((64, 8), 127, np.int8), "w")]
    graph = helper.make_graph([node], "pairs", *ends, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": np.full((4, 64), 255, np.uint8)})
    return (-128, 127) if (found == 64 * 255 * 127).all() else (-64, 63)
