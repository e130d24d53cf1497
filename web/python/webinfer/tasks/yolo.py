"""Models as Ultralytics exports them: what their files say of themselves, and their outputs as rows of one table.

Layouts are told apart by shapes and by the properties `task`, `names`, `kpt_shape` and `end2end` of the file. A row
begins as those of `object_models` do: left, top, right, bottom in 0..1 of the model's input, score, class. Behind these
stand coefficients of masks, key points, or the turn of a box.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import Pixels
from webinfer.tasks.pixels import picture_size, real, take_pixels

ROWS, PROTOTYPES = "objects", "prototypes"  # outputs
FILLING = 114.0  # grey of 0..255 around the picture, which all of these models are trained with
UNIT = Pixels(0.0, 1.0)
MOST, MOST_TURNED = 300, 1000  # rows of upright boxes behind suppression; of turned ones before it
LEAST = 0.001  # score of a row
APART = 8.0  # of boxes of two classes, which never suppress each other, in sizes of the input
TFLITE = "TensorFlow Lite"
TASKS = ("detect", "segment", "pose", "obb", "classify")


@dataclass(frozen=True, slots=True)
class Yolo:
    """What the file of such a model says: its task, the names of its classes, shape of its key points (count, numbers
    each), and whether its boxes are final, so that nothing is left to be suppressed."""

    task: str
    labels: tuple[str, ...]
    keypoints: tuple[int, int] = (17, 3)
    final: bool | None = None  # None: the shapes say it


def yolo_of(metadata: Mapping[str, str]) -> Yolo | None:
    """What the metadata of a model says; None if Ultralytics' exporter did not write it.

    Raises:  ModelFormatError if it is for a task that is not known
    """
    if "names" not in metadata or not {"task", "stride"} & metadata.keys():
        return None
    task = metadata.get("task", "detect")  # YOLOv5's own exporter, which wrote detectors, names none
    if task not in TASKS:
        raise ModelFormatError(f"the model's metadata names the task {task!r}; known: {', '.join(TASKS)}")
    names = _literal(metadata["names"])
    if isinstance(names, Mapping):
        names = [name for _, name in sorted((int(number), name) for number, name in names.items())]
    if not isinstance(names, Sequence) or not names:
        raise ModelFormatError("the model's metadata has no list of classes under `names`")
    count, each = _literal(metadata.get("kpt_shape", "[17, 3]"))
    final = {"true": True, "false": False}.get(metadata.get("end2end", "").lower())
    return Yolo(task, tuple(map(str, names)), (int(count), int(each)), final)


def _literal(words: str) -> Any:
    try:
        return ast.literal_eval(words)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise ModelFormatError(f"the model's metadata has {words[:80]!r} where a list is needed") from None


@dataclass(frozen=True, slots=True)
class _Head:
    """A detector's table [N, columns]; `classes` is the column of the first class, -1 in tables of final boxes."""

    table: Value
    classes: int
    extra: int  # columns behind the classes

    @property
    def is_final(self) -> bool:
        return self.classes < 0


def extend_with_rows(graph: Graph, yolo: Yolo, overlap: float) -> None:
    """Makes a detector's inputs PICTURE, ROWS_USED and COLUMNS_USED, its outputs the table ROWS, for masks PROTOTYPES.

    Raises:  ModelFormatError if its outputs are not those of a head that is known
    """
    builder = GraphBuilder(graph.name)
    height, width, planes = picture_size(graph.inputs[0].type)
    found = real(builder, graph.outputs)
    prototypes = next((v for v in found if v.type.rank == 4), None)
    head = _head(builder, found, yolo, 0 if prototypes is None else _channels(prototypes, planes))
    if head is None or (prototypes is None) is (yolo.task == "segment"):
        raise ModelFormatError(
            f"{graph.name!r}: its metadata names the task {yolo.task!r} and {len(yolo.labels)} classes, which does not "
            f"fit outputs of shapes {[v.type.shape for v in found]}; export it again"
        )
    # Exports for TensorFlow Lite tell places in parts of the input, but for final boxes of models that take planes.
    parts = graph.format == TFLITE and not (head.is_final and planes)
    size = (1.0, 1.0) if parts else (float(width), float(height))
    if yolo.task == "obb":
        rows = _turned_rows(builder, head, (width, height) if parts else (1, 1))
    elif head.is_final:
        rows = _final_rows(builder, head, yolo, size)
    else:
        rows = _best_rows(builder, head, yolo, size, overlap)
    take_pixels(graph, UNIT, FILLING)
    builder.output(rows, ROWS)
    if prototypes is not None:
        count = _channels(prototypes, planes)
        if prototypes.type.shape[1] == count:
            prototypes = builder.node("transpose", prototypes, perm=(0, 2, 3, 1))
        builder.output(prototypes, PROTOTYPES)
    builder.extend(graph)


def _channels(prototypes: Value, planes: bool) -> int:
    """How many prototypes of masks there are: the axis that is not a side of the map."""
    return prototypes.type.shape[1 if planes else 3]


def _head(builder: GraphBuilder, outputs: Sequence[Value], yolo: Yolo, masks: int) -> _Head | None:
    """The output with the boxes, a row each, by its shape; None if there is none that fits."""
    value = next((v for v in outputs if v.type.rank == 3 and v.type.shape[0] == 1), None)
    if value is None:
        return None
    _, first, second = value.type.shape
    extra = {"segment": masks, "pose": yolo.keypoints[0] * yolo.keypoints[1], "obb": 1}.get(yolo.task, 0)
    raw, final = 4 + len(yolo.labels) + extra, 6 + extra
    table = builder.node("reshape", value, shape=(first, second))
    if second == final and (yolo.final or (yolo.final is None and first <= MOST)):
        return _Head(table, -1, extra)
    if first == raw:
        return _Head(builder.node("transpose", table, perm=(1, 0)), 4, extra)
    if second == raw + 1:  # YOLOv5: how likely there is an object, before the classes
        return _Head(table, 5, extra)
    return _Head(table, 4, extra) if second == raw else None


def _columns(builder: GraphBuilder, table: Value, first: int, count: int) -> Value:
    places = builder.constant(list(range(first, first + count)), dtype="int32")
    taken: Value = builder.node("gather", table, places, axis=1)
    return taken


def _scores(builder: GraphBuilder, head: _Head) -> tuple[Value, Value]:
    """The score of each row's best class, and its number. Shapes:  [N, 1], [N, 1]"""
    node, columns = builder.node, head.table.type.shape[1]
    scores = _columns(builder, head.table, head.classes, columns - head.classes - head.extra)
    if head.classes == 5:
        scores = node("mul", scores, _columns(builder, head.table, 4, 1))
    best = node("reduce_max", scores, axes=(1,), keep_dims=True)
    return best, node("cast", node("arg_max", scores, axis=1, keep_dims=True), dtype="float32")


def _extras(builder: GraphBuilder, head: _Head, yolo: Yolo, size: tuple[float, float]) -> list[Value]:
    """The columns behind the classes, if there are any; key points in parts of the input."""
    if not head.extra:
        return []
    extras = _columns(builder, head.table, head.table.type.shape[1] - head.extra, head.extra)
    if yolo.task == "pose":
        extras = builder.node("mul", extras, [1 / size[0], 1 / size[1], 1.0][: yolo.keypoints[1]] * yolo.keypoints[0])
    return [extras]


def _final_rows(builder: GraphBuilder, head: _Head, yolo: Yolo, size: tuple[float, float]) -> Value:
    """Of boxes left, top, right, bottom, score, class, which the model itself has chosen."""
    width, height = size
    boxes = builder.node("mul", _columns(builder, head.table, 0, 6), [1 / width, 1 / height] * 2 + [1.0, 1.0])
    extras = _extras(builder, head, yolo, size)
    rows: Value = builder.node("concat", boxes, *extras, axis=1) if extras else boxes
    return rows


def _best_rows(builder: GraphBuilder, head: _Head, yolo: Yolo, size: tuple[float, float], overlap: float) -> Value:
    """Of boxes centre x, y, width, height and scores of classes: of those of a class that overlap only the best."""
    node, (width, height) = builder.node, size
    best, classes = _scores(builder, head)
    corners = [(1.0, 0.0, 1.0, 0.0), (0.0, 1.0, 0.0, 1.0), (-0.5, 0.0, 0.5, 0.0), (0.0, -0.5, 0.0, 0.5)]
    matrix = [n / (height if i % 2 else width) for row in corners for i, n in enumerate(row)]
    boxes = node("matmul", _columns(builder, head.table, 0, 4), builder.constant(matrix, (4, 4)))
    apart = node("add", boxes, node("mul", classes, APART))
    count = min(MOST, boxes.type.shape[0])
    places, kept, _ = node(
        "non_max_suppression", apart, node("reshape", best, shape=(boxes.type.shape[0],)),
        limit=count, overlap=overlap, least=LEAST,
    )  # fmt: skip
    extras = _extras(builder, head, yolo, size)
    table = node("gather", node("concat", boxes, classes, *extras, axis=1), places, axis=0)
    parts = [_columns(builder, table, 0, 4), node("reshape", kept, shape=(count, 1))]
    rows: Value = node("concat", *parts, _columns(builder, table, 4, 1 + head.extra), axis=1)
    return rows


def _turned_rows(builder: GraphBuilder, head: _Head, size: tuple[int, int]) -> Value:
    """Of turned boxes the best: centre x, y, width, height in pixels of the input, score, class, turn in radians."""
    node = builder.node
    stretched = [float(side) for side in size] * 2
    if head.is_final:
        return node("mul", head.table, [*stretched, 1.0, 1.0, 1.0])  # type: ignore[no-any-return]
    best, classes = _scores(builder, head)
    boxes = node("mul", _columns(builder, head.table, 0, 4), stretched)
    count = boxes.type.shape[0]
    turn = _columns(builder, head.table, head.table.type.shape[1] - 1, 1)
    table = node("concat", boxes, best, classes, turn, axis=1)
    _, places = node("top_k", node("reshape", best, shape=(1, count)), k=min(MOST_TURNED, count))
    rows: Value = node("gather", table, node("reshape", places, shape=(min(MOST_TURNED, count),)), axis=0)
    return rows
