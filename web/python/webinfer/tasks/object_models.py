"""Object detectors by what they put out: each kind's outputs become rows of one table, in the plan.

A row is left, top, right, bottom in 0..1 of the model's input, the score, and the number of the class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.models.layouts import PictureInput, Pixels
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.tasks.crop import InputSpec
from webinfer.tasks.pixels import is_picture, picture_size, real, take_pixels
from webinfer.tasks.yolo import ROWS, extend_with_rows, yolo_of

OBJECTS = ROWS
FITTED = "objects_of_fitted_pictures"  # the same of models whose makers keep a picture's aspect
WARPED = "objects_of_warped_pictures"  # and lay it in by OpenCV's warpPerspective
ROW = 6
MOST = 100  # rows of detectors that suppress nothing themselves
LEAST = 0.05  # score of a row of these
SSD_OVERLAP, NANODET_OVERLAP, YOLO_OVERLAP = 0.6, 0.6, 0.7  # of boxes of one class, above which the worse is dropped
SSD_SCALE = (10.0, 10.0, 5.0, 5.0)  # of centres and sizes, as detectors of TensorFlow's are trained
SSD_ASPECTS = (1.0, 2.0, 1 / 2, 3.0, 1 / 3)
SSD_SIZES = (0.2, 0.95)  # of the anchors of the finest and the coarsest grid
SSD_GRIDS = 6
NANODET_BINS = (8, 11)  # of the distribution of a distance, in the published models
Shapes = Sequence[tuple[int, ...]]


def with_objects(model: Any, pixels: Pixels, overlap: float = YOLO_OVERLAP) -> WithPostprocessing:
    """The model with pixels of 0..255 as its input and the table as its only output, called as pictures are laid in.

    Models that Ultralytics exported have the inputs and outputs of `yolo.extend_with_rows`; `overlap` is for these.
    """

    def extend(graph: Graph) -> None:
        if (yolo := yolo_of(graph.metadata)) is not None:
            if yolo.task == "classify":
                raise ModelFormatError(f"{graph.name!r} classifies pictures by its metadata; make an ImageClassifier")
            extend_with_rows(graph, yolo, overlap)
            return
        builder = GraphBuilder(graph.name)
        shapes = [v.type.shape for v in graph.outputs]
        picture = len(graph.inputs) == 1 and is_picture(graph.inputs[0].type)
        name, rows = _rows(builder, graph) if picture else (OBJECTS, None)
        if rows is None:
            raise ModelFormatError(
                f"{graph.name!r} is not an object detector that is known: inputs "
                f"{[v.type.shape for v in graph.inputs]}, outputs {shapes}; known are SSD (with its post-processing, "
                "or boxes and scores), CenterNet with a table of boxes, NanoDet, and YOLO with Ultralytics' metadata"
            )
        take_pixels(graph, pixels)
        builder.output(rows, name)
        builder.extend(graph)

    return WithPostprocessing(model, f"{OBJECTS}of{pixels}at{overlap}", extend, reads_metadata=True)


def input_spec(output: str, shape: Sequence[int], keep_aspect: bool | None) -> InputSpec:
    """How a model `with_objects` wants its pictures laid in; `keep_aspect` if it is given, else as its makers do.

    `output` is the name of its table, `shape` that of its picture.

    Source:  RangiLyu/nanodet, nanodet/data/transform/warp.py (keep_ratio); 610265158/mobilenetv3_centernet,
             lib/core/api/face_detector.py (preprocess); TensorFlow's SSDs have a fixed_shape_resizer, which stretches
    """
    _, height, width, _ = shape
    picture, keep = PictureInput(width, height, 1.0, 0.0), output != OBJECTS if keep_aspect is None else keep_aspect
    return InputSpec.of_mediapipe(picture, keep_aspect=keep) if output == WARPED else InputSpec(picture, keep)


def _rows(builder: GraphBuilder, graph: Graph) -> tuple[str, Value | None]:
    """The rows of the first kind whose outputs fit, and what they are called."""
    height, width, _ = picture_size(graph.inputs[0].type)
    found = real(builder, graph.outputs)
    shapes = [v.type.shape for v in found]
    if len(shapes) == 4 and shapes[0][2:] == (4,) and shapes[1] == shapes[2] == shapes[0][:2]:
        return OBJECTS, _post_processed(builder, found)
    for value, shape in zip(found, shapes, strict=True):
        if shape[:1] == (1,) and shape[2:] == (ROW,):
            return FITTED, _in_pixels(builder, value, width, height)
    if len(shapes) == 2 and (boxes := next((v for v in found if v.type.shape[2:] == (4,)), None)):
        scores = next(v for v in found if v is not boxes)
        return OBJECTS, _ssd(builder, boxes, scores, width)
    return WARPED, _nanodet(builder, found, width)


def _table(builder: GraphBuilder, boxes: Value, scores: Value, classes: Value) -> Value:
    count = boxes.type.shape[0]
    columns = [builder.node("reshape", v, shape=(count, 1)) for v in (scores, classes)]
    table: Value = builder.node("concat", boxes, *columns, axis=1)
    return table


def _chosen(builder: GraphBuilder, table: Value, columns: Sequence[int]) -> Value:
    picked: Value = builder.node("gather", table, builder.constant(list(columns), dtype="int32"), axis=1)
    return picked


def _post_processed(builder: GraphBuilder, outputs: Sequence[Value]) -> Value:
    """Of TFLite_Detection_PostProcess: boxes (top, left, bottom, right), classes, scores, count."""
    boxes = builder.node("reshape", outputs[0], shape=(outputs[1].type.size, 4))
    return _table(builder, _chosen(builder, boxes, (1, 0, 3, 2)), outputs[2], outputs[1])


def _in_pixels(builder: GraphBuilder, table: Value, width: int, height: int) -> Value:
    """Of a table [1, N, 6] that lacks only that its boxes are in pixels."""
    table = builder.node("reshape", table, shape=table.type.shape[1:])
    rows: Value = builder.node("mul", table, [1 / width, 1 / height] * 2 + [1.0, 1.0])
    return rows


def _ssd(builder: GraphBuilder, boxes: Value, scores: Value, side: int) -> Value | None:
    """Of raw boxes [1, A, 4] and scores [1, A, 1 + classes] of TensorFlow's SSD MobileNets: background comes first."""
    anchors = ssd_anchors(side)
    if boxes.type.shape[1] != len(anchors) or scores.type.shape[1:2] != (len(anchors),):
        return None
    table = builder.constant([n for anchor in anchors for n in anchor], (len(anchors), 4))
    found = builder.node(
        "detection_postprocess", boxes, scores, table,
        limit=MOST, classes=scores.type.shape[2] - 1, per_box=1, per_class=MOST, regular=False, least=LEAST,
        overlap=SSD_OVERLAP, scale=SSD_SCALE,
    )  # fmt: skip
    return _post_processed(builder, found)


def ssd_anchors(side: int) -> list[tuple[float, float, float, float]]:
    """Centre y and x, height and width of the anchors of an SSD MobileNet, in 0..1 of a square input of this side.

    Source:  tensorflow/models, object_detection/anchor_generators/multiple_grid_anchor_generator.py
             (create_ssd_anchors, reduce_boxes_in_lowest_layer)
    """
    low, high = SSD_SIZES
    sizes = [low + (high - low) * i / (SSD_GRIDS - 1) for i in range(SSD_GRIDS)] + [1.0]
    anchors = []
    for layer in range(SSD_GRIDS):
        cells = math.ceil(side / 2 ** (4 + layer))
        shapes = [(sizes[layer], aspect) for aspect in SSD_ASPECTS]
        shapes = (
            [(0.1, 1.0), *shapes[1:3]] if layer == 0 else [*shapes, (math.sqrt(sizes[layer] * sizes[layer + 1]), 1)]
        )
        for cell in range(cells * cells):
            y, x = (cell // cells + 0.5) / cells, (cell % cells + 0.5) / cells
            anchors += [(y, x, size / math.sqrt(aspect), size * math.sqrt(aspect)) for size, aspect in shapes]
    return anchors


def _nanodet(builder: GraphBuilder, outputs: Sequence[Value], side: int) -> Value | None:
    """Of probabilities [1, A, classes] and distributions [1, A, 4 * bins] of the distances to a box's four edges.

    Source:  RangiLyu/nanodet, nanodet/model/head/gfl_head.py (get_bboxes, Integral)
    """
    node = builder.node
    levels = sorted({v.type.shape[1] for v in outputs if v.type.rank == 3}, reverse=True)
    pairs = [[v for v in outputs if v.type.rank == 3 and v.type.shape[1] == level] for level in levels]
    wide = next((4 * bins for bins in NANODET_BINS if pairs and any(v.type.shape[2] == 4 * bins for v in pairs[0])), 0)
    square = all(math.isqrt(level) ** 2 == level for level in levels)
    if not square or any(sorted(v.type.shape[2] == wide for v in pair) != [False, True] for pair in pairs) or not wide:
        return None
    raw = node("concat", *(next(v for v in pair if v.type.shape[2] == wide) for pair in pairs), axis=1)
    scores = node("concat", *(next(v for v in pair if v.type.shape[2] != wide) for pair in pairs), axis=1)
    count, bins = sum(levels), wide // 4
    steps = node("softmax", node("reshape", raw, shape=(4 * count, bins)), axis=1)
    steps = node("matmul", steps, builder.constant([float(i) for i in range(bins)], (bins, 1)))
    cells = [(math.isqrt(level), i) for level in levels for i in range(level)]
    centres = [((i % n + 0.5) / n, (i // n + 0.5) / n) for n, i in cells]
    away = [(-1 / n, -1 / n, 1 / n, 1 / n) for n, _ in cells]
    boxes = node("mul", node("reshape", steps, shape=(count, 4)), _constant(builder, away))
    boxes = node("add", boxes, _constant(builder, [c + c for c in centres]))
    return _suppressed(builder, boxes, node("reshape", scores, shape=(count, scores.type.shape[2])))


def _constant(builder: GraphBuilder, rows: Sequence[Sequence[float]]) -> Value:
    return builder.constant([n for row in rows for n in row], (len(rows), len(rows[0])))


def _suppressed(builder: GraphBuilder, boxes: Value, scores: Value) -> Value:
    """The best boxes; of those of one class that overlap only the best. Shapes:  [A, 4], [A, classes] -> [MOST, 6]"""
    node, count = builder.node, boxes.type.shape[0]
    best = node("reduce_max", scores, axes=(1,), keep_dims=True)
    classes = node("cast", node("arg_max", scores, axis=1, keep_dims=True), dtype="float32")
    apart = node("add", boxes, node("mul", classes, 4.0))  # boxes of two classes never meet
    places, kept, _ = node(
        "non_max_suppression", apart, node("reshape", best, shape=(count,)),
        limit=MOST, overlap=NANODET_OVERLAP, least=LEAST,
    )  # fmt: skip
    table = node("gather", node("concat", boxes, classes, axis=1), places, axis=0)
    return _table(builder, _chosen(builder, table, range(4)), kept, _chosen(builder, table, (4,)))
