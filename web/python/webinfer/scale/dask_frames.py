"""Dask: data frames by `map_partitions`, bags of files or of other things."""

from __future__ import annotations

from typing import Any

from webinfer.scale.predictor import Predictor


def predict_frame(frame: Any, predictor: Predictor) -> Any:
    """The frame with results, partition by partition."""
    return frame.map_partitions(predictor, meta=predictor(frame._meta))


def predict_bag(bag: Any, predictor: Predictor) -> Any:
    """A bag with a mapping of results for each thing of the other one: a path, a picture, an array."""
    return bag.map_partitions(_listed, predictor)


def _listed(things: Any, predictor: Predictor) -> Any:
    return predictor(list(things))
