"""The models behind `TextReader`: what is put around each in its plan, and plans for the sizes of pictures it meets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.host.interface import Host, Progress
from webinfer.importers import metadata
from webinfer.session.loading import load, opened
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.crop import InputSpec, Region
from webinfer.tasks.picture_input import MoreInputs, Outputs, PictureFeeder, closed_on_error

PICTURE, USED = "picture", "used"  # inputs: pixels of 0..255; a 1 for each column that is not filling
MASK, SUMS, SCORES, CLASSES, UPSIDE_DOWN = "mask", "sums", "scores", "classes", "upside_down"
TEXT_FROM = 0.2  # probability of a pixel that is text
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation of blue, green, red, of 0..1
SIGNED = ((0.5,) * 3, (0.5,) * 3)
KEPT = 8  # sizes of input whose plans are kept


def _normalised(graph: Graph, numbers: tuple[Sequence[float], Sequence[float]], mask: bool) -> None:
    """Puts before a graph what makes its input, planes of blue, green and red, from pixels; `mask`: filling is 0."""
    head, (given,) = GraphBuilder(graph.name), graph.inputs
    _, _, height, width = given.type.shape
    weights = [1 / (255 * numbers[1][to]) if to + at == 2 else 0.0 for to in range(3) for at in range(3)]
    bias = [-mean / deviation for mean, deviation in zip(*numbers, strict=True)]
    pixels = head.input(PICTURE, (1, height, width, 3))
    made: Value = head.node("conv2d", pixels, head.constant(weights, (3, 1, 1, 3)), head.constant(bias, (3,)))
    made = head.node("mul", made, head.input(USED, (1, 1, width, 1))) if mask else made
    graph.replace(given, head.node("transpose", made, perm=(0, 3, 1, 2)))
    head.precede(graph)


def with_map(model: Any) -> WithPostprocessing:
    """A detector with pixels as its input; its outputs are a mask of text, and its map summed along rows."""

    def extend(graph: Graph) -> None:
        _normalised(graph, IMAGENET, mask=False)
        tail, (found,) = GraphBuilder(graph.name), graph.outputs
        pixels = tail.node("reshape", found, shape=found.type.shape[2:])
        tail.output(tail.node("greater", pixels, TEXT_FROM), MASK)
        tail.output(tail.node("cumulative_sum", pixels, axis=1), SUMS)
        tail.extend(graph)

    return WithPostprocessing(model, MASK, extend)


def with_letters(model: Any, letters: int) -> WithPostprocessing:
    """A reader of so many letters, with pixels as its input; its outputs are each place's best class and its score."""

    def extend(graph: Graph) -> None:
        _normalised(graph, SIGNED, mask=True)
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
    """A classifier of lines with pixels as its input; its output is the probability that the line is upside down."""

    def extend(graph: Graph) -> None:
        _normalised(graph, SIGNED, mask=True)
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


class Sized:
    """A model that takes pictures of several sizes: a plan for each, those used last are kept."""

    def __init__(self, make: Callable[[int, int], Awaitable[Session]]) -> None:
        self._make = make
        self._found: dict[tuple[int, int], tuple[Session, PictureFeeder]] = {}

    async def at(self, width: int, height: int) -> tuple[Session, PictureFeeder]:
        """The session for pictures of this size, and what brings these to it."""
        size = (width, height)
        found = self._found.pop(size, None)
        if found is None:
            session = await self._make(width, height)
            with closed_on_error(session):
                found = session, await PictureFeeder.create(session)
            if len(self._found) >= KEPT:
                _close(self._found.pop(next(iter(self._found))))
        self._found[size] = found
        return found

    async def run(self, image: Any, region: Region | None, spec: InputSpec, more: MoreInputs) -> Outputs:
        """As `PictureFeeder.run`, on the session for the size that `spec` asks for."""
        _, feeder = await self.at(spec.picture.width, spec.picture.height)
        return await feeder.run(image, region, spec, more)

    def close(self) -> None:
        """Frees all sessions; a second call does nothing."""
        while self._found:
            _close(self._found.popitem()[1])


def _close(found: tuple[Session, PictureFeeder]) -> None:
    for part in found:
        part.close()


async def bytes_of(model: Any, host: Host, progress: Progress | None) -> Any:
    """The bytes of a model: letters are read from them, and they are compiled for several sizes."""
    if not isinstance(model, (str, PurePath)):
        return model
    return (await opened(model, host, progress)).data


async def _input_of(model: Any, backend: Sequence[str], host: Host) -> str:
    """The name of the model's only input, planes of pixels of any size."""
    with await load(model, backend=backend, host=host) as session:
        shapes = [info.shape for info in session.inputs]
        if len(shapes) != 1 or len(shapes[0]) != 4 or shapes[0][1] != 3 or isinstance(shapes[0][3], int):
            raise ModelFormatError(f"a model of text takes pictures [1, 3, height, width] of any width, not {shapes}")
        return session.inputs[0].name


async def sized(
    source: Any, more: Callable[[Any], WithPostprocessing], order: Sequence[str], progress: Progress | None, host: Host
) -> Sized:
    """The model with what is put around it, on the first of these backends when a size is asked for."""
    name = await _input_of(source, order, host)

    async def make(width: int, height: int) -> Session:
        shapes = {name: (1, 3, height, width)}
        return await load(more(source), shapes=shapes, backend=order, progress=progress, host=host)

    return Sized(make)


def letters_in(data: Any) -> tuple[str, ...]:
    """The letters that an ONNX file says its classes are."""
    found = {} if isinstance(data, (GraphBuilder, Mapping)) else metadata(data, "the reader")
    if "character" not in found:
        raise InputError("the file of the reader does not say which letters it knows; give letters=…")
    return tuple(found["character"].splitlines())
