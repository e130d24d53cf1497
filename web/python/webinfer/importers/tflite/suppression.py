"""TFLite's non-maximum suppression. Limits and thresholds are constants: they say how large results are."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.core.limits import MAX_READ, within
from webinfer.importers.tflite.operation import Convert, Operation, Row
from webinfer.ops import suppression


def _suppression(soft: bool) -> Convert:
    def convert(op: Operation) -> list[Value]:
        limit = op.integer(2)
        within(f"{op.what}: boxes to keep", limit, MAX_READ, "ask for fewer")
        overlap, least = (
            op.finite(name, float(op.scalar(key))) for key, name in ((3, "overlap"), (4, "score threshold"))
        )
        sigma = op.finite("sigma", float(op.scalar(5))) if soft else 0.0
        attrs = suppression.NonMaxSuppressionAttrs(limit, overlap, least, sigma)
        inputs = [op.as_float(op.value(0)), op.as_float(op.value(1))]
        if inputs[1].type.rank != 1:
            op.fail(f"scores {inputs[1].type.shape} must have one axis")
        positions, scores, count = op.emit_all(suppression.NON_MAX_SUPPRESSION, inputs, attrs)
        return [positions, scores, count] if soft else [positions, count]

    return convert


CONVERTERS: dict[str, Row] = {
    "NON_MAX_SUPPRESSION_V4": (_suppression(soft=False), ""),
    "NON_MAX_SUPPRESSION_V5": (_suppression(soft=True), ""),
}
