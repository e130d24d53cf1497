"""How many elements each shader writes, and the check that they are those of the tensor that it writes to.

A GPU keeps stores inside the buffer and says nothing, so that numbers would be wrong without an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from webinfer.backends.webgpu.dispatch import Dispatch, Literal, Source, Stored
from webinfer.codegen.elements import Element, storage_bytes
from webinfer.codegen.prelude import Access
from webinfer.errors import KernelError
from webinfer.graph.dims import whole
from webinfer.graph.ir import Value

Numbers = Mapping[str, Any]  # parameters and template variables of a dispatch, by name
Extent = Callable[[Numbers], int]


def _count(p: Numbers) -> int:
    return whole(p["count"])  # type: ignore[no-any-return]


def _lines(p: Numbers) -> int:
    return whole(p["lines"] * p["depth"])  # type: ignore[no-any-return]


def _pixels(p: Numbers) -> int:
    if p.get("split", 1) > 1 and {"rows", "down"} & set(p):  # the parts of sums
        return whole(p["split"] * p["pixels"] * 4 * p["co4"])  # type: ignore[no-any-return]
    return whole(p["pixels"] * (p["co"] if "co" in p else 4 * p["co4"]))  # type: ignore[no-any-return]


def _rows(p: Numbers) -> int:
    return whole(p["rows"] * p["ow"] * (p["co"] if "co" in p else 4 * p["co4"]))  # type: ignore[no-any-return]


def _groups(p: Numbers) -> int:
    return whole(p["pixels"] * p["groups"] * p["og"])  # type: ignore[no-any-return]


def _box(p: Numbers) -> int:
    """Whole quads up to the last one of the box."""
    walk = zip(p["size"][: p["rank"]], p["target_stride"], strict=False)
    return whole(4 * (p["target_offset"] + 1 + sum((size - 1) * stride for size, stride in walk)))  # type: ignore[no-any-return]


def _states(p: Numbers) -> int:
    return whole(p["batch"] * p["size"])  # type: ignore[no-any-return]


def _columns(i: int, p: Numbers) -> int:
    """Those of all matrices, or of matrix i where their results lie apart."""
    ends = [0, *(p[f"first{m}"] for m in range(1, p["matrices"])), p["n"]] if p["apart"] else [0, p["n"]]
    return whole(ends[i + 1] - ends[i])  # type: ignore[no-any-return]


IN_PARTS = ("concat_parts", "strided_copy_vec4")  # a tensor is what several dispatches have written
# Elements that a shader writes to each binding, or to one; a shader that is not listed writes `count` elements.
EXTENTS: dict[str, Extent] = {
    **dict.fromkeys(
        (
            "conv2d_1x1_4x8", "conv2d_1x1_matrices", "conv2d_1x1_packed_4x4", "conv2d_1x1_packed_gemv",
            "conv2d_1x1_packed_split_k", "conv2d_1x1_vec4", "conv2d_gemv", "conv2d_rows", "conv2d_split_k",
            "conv2d_tiled", "conv2d_vec4", "conv_transpose2d_rows", "depthwise_pointwise", "matmul_packed",
            "product_parts",
        ),
        _pixels,
    ),
    **dict.fromkeys(("conv2d_dot_4x1", "conv2d_image_4x4", "depthwise_4x1", "depthwise_vec4"), _rows),
    "conv2d_any": _groups,
    **dict.fromkeys(("cumulative_sum", "softmax_lines", "softmax_workgroup"), _lines),
    **dict.fromkeys(("layer_norm", "round_rows", "short_softmax"), lambda p: p["rows"] * p["depth"]),
    **dict.fromkeys(("attention", "attention_wide"), lambda p: p["heads"] * p["queries"] * p["e"]),
    "block_product": lambda p: p["rows"] * _columns(0, p),
    "block_product.y1": lambda p: p["rows"] * _columns(1, p),
    "block_product.y2": lambda p: p["rows"] * _columns(2, p),
    "block_product_row": partial(_columns, 0),
    "block_product_row.y1": partial(_columns, 1),
    "block_product_row.y2": partial(_columns, 2),
    **dict.fromkeys(("cache_rows", "cached_attention"), lambda p: p["groups"] * p["capacity"] * p["width"]),
    **dict.fromkeys(("cache_rows.turned_q", "cached_attention.y"), lambda p: p["rows"] * p["heads"] * p["width"]),
    "concat_parts": _count,
    "densify": lambda p: p["dense"],
    "detection_decode": lambda p: p["n"],
    "detection_decode.boxes": lambda p: 4 * p["n"],
    "detection_list": lambda p: p["limit"],
    "detection_list.y": lambda p: 4 * p["limit"],
    "group_moments": lambda p: p["images"] * p["channels"],
    "group_norm": lambda p: 4 * p["count"],
    "landmarks_to_transform_matrix": lambda p: 16,
    "moments": lambda p: p["count"] // -(-p["inner"] // 4) * p["inner"],
    "nms": lambda p: p["lists"] * p["limit"],
    "nms.count": lambda p: p["lists"],
    "nms.work": lambda p: p["lists"] * p["n"],
    "posenet_masks": lambda p: p["max_detections"] * p["h"] * p["w"],
    "posenet_rank.found": lambda p: 1,
    "posenet_rank.keypoints": lambda p: 2 * p["max_detections"] * p["keypoints"],
    "posenet_rank.pose_scores": lambda p: p["max_detections"],
    "posenet_rank.scores": lambda p: p["max_detections"] * p["keypoints"],
    "posenet_search": lambda p: p["max_detections"] * p["record"],
    "recurrent_product": lambda p: p["batch"] * 4 * p["quads"],
    "recurrent_sequence": _states,
    "recurrent_sequence.y": lambda p: p["steps"] * _states(p),
    "recurrent_step": _states,
    "recurrent_step.y": lambda p: _states(p) * (1 if p["stage"] == "reset" else p["steps"]),
    "reduce_part": lambda p: p["count"] // -(-p["inner"] // 4) * p["inner"],
    "reduce_workgroup": lambda p: p["rows"],
    "sample": lambda p: 2,
    "squeeze": lambda p: p["images"] * p["co"],
    "ssd_detections": lambda p: p["most"] * (p["raw"] + 1),
    "strided_copy": lambda p: 4 * (p["first_quad"] + p["quads"]),
    "strided_copy_vec4": _box,
    "top_k": lambda p: p["count"] // p["depth"] * p["parts"] * p["k"],
}  # fmt: skip


def written(dispatch: Dispatch) -> dict[str, int]:
    """The elements that a dispatch writes, counted from the start of the tensor, by binding.

    Raises:  KernelError if a shader says nothing of a binding
    """
    numbers = dict(dispatch.variables)
    for param in dispatch.params:
        numbers[param.name] = param.value  # type: ignore[assignment]
    shader, found = dispatch.shader, {}
    for name in (b.slot.name for b in dispatch.bindings if b.slot.access is not Access.READ):
        try:
            found[name] = EXTENTS.get(f"{shader}.{name}", EXTENTS.get(shader, _count))(numbers)
        except KeyError as error:
            raise KernelError(
                f"shader {shader} does not tell how many elements of {name!r} it writes: it has no parameter {error}; "
                "give it a row in backends/webgpu/writes.py"
            ) from None
    return found


_ITEMSIZES = {
    element: 1 if element is Element.BOOL else int("".join(filter(str.isdigit, element))) // 8 for element in Element
}


def itemsize(element: Element) -> int:
    """Bytes of an element as it lies in memory."""
    return _ITEMSIZES[element]


def nbytes_of(source: Source) -> int:
    """Bytes of a source's elements."""
    if isinstance(source, Stored):
        assert source.value.constant is not None
        return source.value.constant.data.nbytes
    if isinstance(source, Literal):
        return len(source.data)
    if isinstance(source, Value):
        return source.type.nbytes
    shape = getattr(source, "shape", ())
    return math.prod(shape) * source.dtype.itemsize


def check_writes(dispatch: Dispatch) -> None:
    """Nothing, if the dispatch writes exactly the tensors that it says; an updated one it may write in part.

    Raises:  KernelError naming shader, tensor and sizes
    """
    if dispatch.text:
        return  # a user's own shader: its bounds are its own
    counts = written(dispatch)
    for binding in dispatch.bindings:
        if (count := counts.get(binding.slot.name)) is None:
            continue
        size = itemsize(binding.slot.element)
        needed = nbytes_of(binding.source)
        room = storage_bytes(needed, size)
        in_parts = dispatch.shader in IN_PARTS or binding.slot.access is Access.UPDATE
        if count * size > room or (not in_parts and count * size < needed):
            name = binding.source.name if isinstance(binding.source, Value) else "scratch"
            raise KernelError(
                f"shader {dispatch.name} would write {count} elements of {size} bytes to {name!r}, "
                f"which has {needed} bytes"
            )
