"""Float products whose weights are stored as integers: the weights become floats once, at load."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.quantized import dequantize_steps
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, TensorType
from webinfer.lowering.affine import is_stored


def with_float_weights(lower: Lower) -> Lower:
    """The lowering of a float product, its second operand turned into float32 first."""

    def lower_product(node: Node, builder: Builder) -> None:
        w = node.required_input(1)
        if not is_stored(w.type):
            lower(node, builder)
            return
        if not builder.is_fixed(w):
            raise UnsupportedOpError([f"weights {w.name!r} are {w.type} and computed; only constants become float32"])
        real, is_new = builder.derived(("float weights", w), TensorType(w.type.shape), w.name)
        if is_new:
            dequantize_steps(builder, builder.prepare, w, builder.ref(w), builder.ref(real))
        lower(Node(node.op, [node.inputs[0], real, *node.inputs[2:]], node.outputs, node.attrs, node.label), builder)

    return lower_product
