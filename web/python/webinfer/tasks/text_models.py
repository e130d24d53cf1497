"""The models behind `TextReader`: what is put behind each in its plan, and which letters a reader knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.dtypes import DType
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host, Progress
from webinfer.importers import metadata
from webinfer.session.loading import load, opened
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.picture_input import closed_on_error
from webinfer.tasks.text_pixels import Normalisation
from webinfer.tensor import Tensor

MASK, SUMS, SCORES, CLASSES, UPSIDE_DOWN = "mask", "sums", "scores", "classes", "upside_down"
TEXT_FROM = 0.2  # probability of a pixel that is text
IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # of blue, green, red: as the models were taught
SIGNED = Normalisation((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


def with_map(model: Any) -> WithPostprocessing:
    """A detector whose outputs are a mask of text, and its map summed along rows."""

    def extend(graph: Graph) -> None:
        tail, (found,) = GraphBuilder(graph.name), graph.outputs
        pixels = tail.node("reshape", found, shape=found.type.shape[2:])
        tail.output(tail.node("greater", pixels, TEXT_FROM), MASK)
        tail.output(tail.node("cumulative_sum", pixels, axis=1), SUMS)
        tail.extend(graph)

    return WithPostprocessing(model, MASK, extend)


def with_letters(model: Any, letters: int) -> WithPostprocessing:
    """A reader of so many letters; its outputs are each place's best class and its score."""

    def extend(graph: Graph) -> None:
        tail, (found,) = GraphBuilder(graph.name), graph.outputs
        if (classes := found.type.shape[-1]) != letters + 2:  # nothing, the letters, a space
            raise ModelFormatError(
                f"the reader {graph.name!r} tells {classes} classes apart; {letters} letters are known"
            )
        for value, name in zip(tail.node("top_k", found, k=1), (SCORES, CLASSES), strict=True):
            tail.output(value, name)
        tail.extend(graph)

    return WithPostprocessing(model, CLASSES, extend)


def with_turn(model: Any) -> WithPostprocessing:
    """A classifier of lines; its output is the probability that the line is upside down."""

    def extend(graph: Graph) -> None:
        tail, (found,) = GraphBuilder(graph.name), graph.outputs
        if found.type.size != 2:
            raise ModelFormatError(
                f"the classifier {graph.name!r} has an output {found.type.shape}; needed are two probabilities, "
                "[1, 2]: upright and upside down"
            )
        pair = tail.node("reshape", found, shape=(2,))
        tail.output(tail.node("gather", pair, tail.constant([1], dtype="int32"), axis=0), UPSIDE_DOWN)
        tail.extend(graph)

    return WithPostprocessing(model, UPSIDE_DOWN, extend)


async def bytes_of(model: Any, host: Host, progress: Progress | None) -> Any:
    """The bytes of a model: letters are read from them, and they are compiled for several sizes."""
    if not isinstance(model, (str, PurePath)):
        return model
    return (await opened(model, host, progress)).data


async def opened_model(
    source: WithPostprocessing, sizes: Sequence[tuple[int, int]], backend: Sequence[str], progress: Progress | None,
    host: Host,
) -> Session:  # fmt: skip
    """The model with what is put behind it, on the first of these backends, after runs on pictures of these sizes.

    Sizes, width and height, stay open: from a second one on they are bound, not planned.

    Raises:  ModelFormatError if its only input is not planes of pixels of any width, or its outputs are of another
             kind; what `webinfer.load` raises
    """
    session = await load(source, backend=backend, progress=progress, host=host)
    with closed_on_error(session):
        shapes = [info.shape for info in session.inputs]
        if len(shapes) != 1 or len(shapes[0]) != 4 or shapes[0][1] != 3 or isinstance(shapes[0][3], int):
            raise ModelFormatError(f"a model of text takes pictures [1, 3, height, width] of any width, not {shapes}")
        for width, height in sizes:
            try:
                await seen_by(session, Tensor(bytes(12 * width * height), (1, 3, height, width), DType.FLOAT32))
            except InputError as error:
                raise error.__cause__ if isinstance(error.__cause__, ModelFormatError) else error from None
    return session


async def seen_by(session: Session, planes: Tensor) -> dict[str, Tensor]:
    """The model's outputs for planes of pixels."""
    return await session.run({session.inputs[0].name: planes})


def letters_in(data: Any) -> tuple[str, ...]:
    """The letters that an ONNX file says its classes are."""
    found = {} if isinstance(data, (GraphBuilder, Mapping)) else metadata(data, "the reader")
    if "character" not in found:
        raise InputError("the model's file does not say which letters it can read; pass letters=…")
    return tuple(found["character"].splitlines())
