"""Models with random weights that end as those which Ultralytics exports: one for each of its heads and layouts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEIGHT, CELL = 192, 160, 16  # of the input, and of a cell of its only grid, pixels
COLUMNS, ROWS = WIDTH // CELL, HEIGHT // CELL
CLASSES, COEFFICIENTS, POINTS, FINAL = 4, 8, 5, 60
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Head:
    """A task of such a model, and how it tells its boxes: "rows" [1, N, columns] with an objectness as YOLOv5,
    "columns" [1, columns, N] as YOLOv8 and YOLO11, or "final" [1, count, columns] as YOLO26."""

    task: str
    layout: str

    @property
    def extra(self) -> int:
        """Numbers of a box behind its classes."""
        return {"segment": COEFFICIENTS, "pose": 3 * POINTS, "obb": 1}.get(self.task, 0)


HEADS = (
    Head("detect", "rows"), Head("detect", "columns"), Head("detect", "final"), Head("segment", "columns"),
    Head("segment", "final"), Head("pose", "columns"), Head("pose", "final"), Head("obb", "columns"),
)  # fmt: skip


class _Nodes:
    """Nodes and constants of a model that is being written."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def part(self, x: str, first: int, count: int) -> str:
        ends = [self.constant([n], np.int64) for n in (first, first + count, 0)]
        return str(self.node("Slice", x, *ends))


def exported(head: Head, seed: int) -> bytes:
    """An ONNX file of that head: a random convolution of the picture, whose numbers are places, scores and the rest.

    Boxes lie around the cells of a grid and are one to four cells large; a sixth of the scores is above a half.
    """
    random, write = np.random.default_rng(seed), _Nodes()
    objectness = head.layout == "rows"
    count = 4 + objectness + CLASSES + head.extra
    weights = write.constant(random.normal(0, 1, (count, 3, CELL, CELL)) / CELL)
    raw = write.node("Conv", "images", weights, strides=[CELL, CELL])
    raw = write.node("Reshape", raw, write.constant([count, ROWS * COLUMNS], np.int64))
    cells = np.stack(np.meshgrid(np.arange(COLUMNS), np.arange(ROWS)), 0).reshape(2, -1)
    places = [write.node("Sigmoid", write.part(raw, 2 * i, 2)) for i in range(2)]
    centres = write.node("Mul", write.node("Add", places[0], write.constant(cells)), write.constant(CELL))
    sides = write.node("Add", write.node("Mul", places[1], write.constant(3 * CELL)), write.constant(CELL))
    sure = write.node("Sub", write.part(raw, 4, objectness + CLASSES), write.constant(0.3))
    parts = [centres, sides, write.node("Sigmoid", write.node("Mul", sure, write.constant(4)))]
    if head.extra:
        parts.append(_extra(write, head, write.part(raw, count - head.extra, head.extra), centres))
    table = write.node("Concat", *parts, axis=0)
    outputs = [_laid_out(write, head, table)]
    if head.task == "segment":
        kernel = write.constant(random.normal(0, 1, (COEFFICIENTS, 3, 4, 4)) / 4)
        outputs.append(write.node("Conv", "images", kernel, strides=[4, 4]))
    return _saved(write, head, outputs)


def _extra(write: _Nodes, head: Head, raw: str, centres: str) -> str:
    if head.task == "segment":
        return raw
    if head.task == "obb":  # a turn of -pi / 4 to 3 pi / 4
        sure = write.node("Sigmoid", raw)
        return str(write.node("Mul", write.node("Sub", sure, write.constant(0.25)), write.constant(np.pi)))
    points = []
    for i in range(POINTS):
        away = write.node("Mul", write.part(raw, 3 * i, 2), write.constant(CELL))
        points += [write.node("Add", centres, away), write.node("Sigmoid", write.part(raw, 3 * i + 2, 1))]
    return str(write.node("Concat", *points, axis=0))


def _laid_out(write: _Nodes, head: Head, table: str) -> str:
    if head.layout == "columns":
        return str(write.node("Unsqueeze", table, write.constant([0], np.int64)))
    rows = write.node("Transpose", table, perm=[1, 0])
    if head.layout == "final":
        rows = _best(write, head, table, rows)
    return str(write.node("Unsqueeze", rows, write.constant([0], np.int64)))


def _best(write: _Nodes, head: Head, table: str, rows: str) -> str:
    """Of the table the best rows: corners, score, class, and the rest."""
    scores = write.part(table, 4, CLASSES)
    best, kind = write.node("ReduceMax", scores, axes=[0], keepdims=1), write.node("ArgMax", scores, axis=0, keepdims=1)
    half = write.node("Mul", write.part(table, 2, 2), write.constant(0.5))
    centre = write.part(table, 0, 2)
    corners = [write.node("Sub", centre, half), write.node("Add", centre, half)]
    rest = [write.part(table, 4 + CLASSES, head.extra)] if head.extra else []
    whole = [*corners, best, write.node("Cast", kind, to=TensorProto.FLOAT), *rest]
    flat = write.node("Transpose", write.node("Concat", *whole, axis=0), perm=[1, 0])
    line = write.node("Reshape", best, write.constant([-1], np.int64))
    _, order = write.node("TopK", line, write.constant([FINAL], np.int64), outputs=2)
    return str(write.node("Gather", flat, order, axis=0))


def _saved(write: _Nodes, head: Head, outputs: list[str]) -> bytes:
    def info(name: str, shape: Any) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        write.nodes, "random", [info("images", [1, 3, HEIGHT, WIDTH])], [info(name, None) for name in outputs],
        write.constants,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    names = {i: f"kind {i}" for i in range(CLASSES)}
    facts = {"stride": "32", "names": str(names), "kpt_shape": f"[{POINTS}, 3]"}
    if head.layout != "rows":
        facts |= {"task": head.task, "end2end": str(head.layout == "final")}
    helper.set_model_props(model, facts)
    return bytes(model.SerializeToString())
