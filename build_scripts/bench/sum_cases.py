"""Cases of the kernel page whose sums a workgroup shares: with subgroups and with a tree in workgroup memory."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from build_scripts.bench.recorder import Recorder, constant, flops_of, recorded

# Input, weights, padding: layers that classifiers end with, and small maps with many channels.
PRODUCTS = (
    ((1, 1, 1, 1280), (1001, 1, 1, 1280), 0),
    ((1, 1, 1, 2048), (1000, 1, 1, 2048), 0),
    ((1, 1, 1, 4096), (4096, 1, 1, 4096), 0),
    ((1, 1, 1, 512), (128, 1, 1, 512), 0),
    ((1, 4, 4, 512), (512, 3, 3, 512), 1),
    ((1, 7, 7, 320), (1280, 1, 1, 320), 0),
    ((1, 7, 7, 960), (160, 1, 1, 960), 0),
    ((1, 8, 8, 96), (96, 1, 1, 96), 0),
    ((1, 8, 8, 96), (6, 1, 1, 96), 0),
)
ROWS = ((1, 1024), (1, 1 << 20), (64, 4096), (4096, 1024))  # rows and their length
LINES = ((1, 1001), (256, 1001), (4096, 512))
COLUMNS = ((1, 49, 1280), (1, 3136, 64))  # means of maps
TREE = frozenset({"timestamp-query"})  # a device without subgroups


def sum_cases(
    texts: dict[str, int],
    products: Sequence[tuple[tuple[int, ...], tuple[int, ...], int]] = PRODUCTS,
    rows: Sequence[tuple[int, ...]] = ROWS,
    lines: Sequence[tuple[int, ...]] = LINES,
    columns: Sequence[tuple[int, ...]] = COLUMNS,
) -> Iterator[dict[str, Any]]:
    """Every product with each of its candidates, every reduction both ways."""
    from webinfer.ops.conv import Conv2dAttrs
    from webinfer.ops.reduce import ArgAttrs, ReduceAttrs
    from webinfer.ops.softmax import SoftmaxAttrs

    for x, w, pad in products:
        node = _node("conv2d", x, Conv2dAttrs(pads=(pad,) * 4), constant(w), constant((w[0],)))
        yield _product(f"conv {_size(x)} by {_size(w)}", node, texts)
    for shape in rows:
        yield _case(f"sum of rows {_size(shape)}", _node("reduce_sum", shape, ReduceAttrs((1,))), texts)
    for shape in lines:
        yield _case(f"softmax {_size(shape)}", _node("softmax", shape, SoftmaxAttrs(1)), texts)
        yield _case(f"largest of lines {_size(shape)}", _node("arg_max", shape, ArgAttrs(1)), texts)
    for shape in columns:
        yield _case(f"mean of columns {_size(shape)}", _node("reduce_mean", shape, ReduceAttrs((1,))), texts)


def _size(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _node(op: str, x: tuple[int, ...], attrs: Any, *constants: Any) -> Any:
    from webinfer.graph.ir import TensorType, Value, apply
    from webinfer.ops import OPS

    return apply(OPS[op], [Value("x", TensorType(x)), *constants], attrs, op)


def _product(label: str, node: Any, texts: dict[str, int]) -> dict[str, Any]:
    from webinfer.backends.webgpu.dispatch import Target
    from webinfer.backends.webgpu.lowerings.variants import GEMVS, candidates, tuning_key

    key, recorder = tuning_key(node), Recorder({})
    names = candidates(node, Target(recorder.limits, recorder.features))
    variants = {name: _recorded(node, texts, {key: name}) for name in reversed(names)}  # the default comes last
    variants |= {f"{n}_tree": _recorded(node, texts, {key: n}, TREE) for n in names if n in GEMVS}
    return {"label": label, "key": key, "flops": flops_of([node]), "variants": variants}


def _case(label: str, node: Any, texts: dict[str, int]) -> dict[str, Any]:
    variants = {"tree": _recorded(node, texts, {}, TREE), "subgroups": _recorded(node, texts, {})}
    return {"label": label, "key": label, "flops": flops_of([node]), "variants": variants}


def _recorded(
    node: Any, texts: dict[str, int], tuned: Mapping[str, str], features: frozenset[str] = Recorder.features
) -> dict[str, Any]:
    from webinfer.graph.ir import Graph

    return recorded(Graph("sums", node.inputs[:1], node.outputs, [node]), texts, tuned, features)
