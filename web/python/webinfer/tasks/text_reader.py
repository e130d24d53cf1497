"""Text in pictures: one model says where lines of text are, another reads each of them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.importers.readers.protobuf import BYTES, fields, text
from webinfer.models.layouts import PictureInput
from webinfer.session.loading import load, opened
from webinfer.session.options import real_number, whole_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import Box, Keypoint, ResultField, ResultSchema, Task
from webinfer.tasks.crop import Border, Crop, InputSpec, Region
from webinfer.tasks.image import Picture, read_image
from webinfer.tasks.picture_input import MoreInputs, Outputs, PictureFeeder, closed_on_error
from webinfer.tasks.regions import box_of
from webinfer.tasks.text_regions import components, corners_of, hull, in_reading_order, mean_inside, smallest_rectangle
from webinfer.tensor import Tensor

PICTURE, USED = "picture", "used"  # inputs: pixels of 0..255; a 1 for each column that is not filling
MASK, SUMS, SCORES, CLASSES = "mask", "sums", "scores", "classes"
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation of blue, green, red, of 0..1
SIGNED = ((0.5,) * 3, (0.5,) * 3)
STEP, MOST_SIDE = 32, 960  # pixels: sides of the detector's input are multiples
TEXT_FROM = 0.2  # probability of a pixel that is text
GROWTH, SMALLEST = 1.4, 3  # of a rectangle by its area over its girth; pixels of its shorter side
UPRIGHT = 1.5  # a rectangle so much higher than wide holds text that runs downwards
LINE_HEIGHT, LINE_STEP, LONGEST_LINE = 48, 160, 3200  # pixels of the reader's input: widths are multiples
FLATTEST, LOWEST = 8, 30  # a picture that is wider than this many times its height, or lower, is seen with black around
KEPT = 8  # sizes of input whose plans are kept
FIRST_PICTURE, FIRST_LINE = (640, 480), 320
METADATA = 14  # the number of an ONNX file's fields with pairs of words
Quad = tuple[Keypoint, Keypoint, Keypoint, Keypoint]


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text. `quad` are its corners from where the text begins: upper left, upper right, lower right and left.

    Units:  pixels of the picture
    """

    text: str
    score: float  # mean probability of its letters
    quad: Quad
    box: Box  # upright, around the quad


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


class _Sized:
    """A model that takes pictures of several sizes: a plan for each, those used last are kept."""

    def __init__(self, make: Callable[[int, int], Awaitable[Session]]) -> None:
        self._make = make
        self._found: dict[tuple[int, int], tuple[Session, PictureFeeder]] = {}

    async def at(self, width: int, height: int) -> tuple[Session, PictureFeeder]:
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
        _, feeder = await self.at(spec.picture.width, spec.picture.height)
        return await feeder.run(image, region, spec, more)

    def close(self) -> None:
        while self._found:
            _close(self._found.popitem()[1])


def _close(found: tuple[Session, PictureFeeder]) -> None:
    for part in found:
        part.close()


class TextReader(Task[TextLine]):
    """Reads text in pictures. Make one with `await TextReader.create()`. `session` is that of the last picture."""

    name = "text"
    takes = "picture"
    extension = CLASSES
    result = ResultSchema(
        "texts", "lines", "Lines of text", "Line",
        (ResultField("text", "text", ""), ResultField("score", "number", "0..1"), ResultField("quad", "points", "px"),
         ResultField("box", "box", "px")),
    )  # fmt: skip

    def __init__(self, session: Session, detector: _Sized, reader: _Sized, letters: Sequence[str]) -> None:
        super().__init__(session)
        self.min_score, self.min_box_score, self.most_side = 0.5, 0.4, MOST_SIDE
        self._detector, self._reader, self._letters = detector, reader, ("", *letters, " ")

    @classmethod
    async def create(
        cls,
        model: Any = "ppocr_v6_rec_tiny_int8w",
        *,
        detector: Any = "ppocr_v6_det_tiny",
        min_score: float = 0.5,
        min_box_score: float = 0.4,
        most_side: int = MOST_SIDE,
        letters: Sequence[str] | None = None,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> TextReader:
        """A reader that is ready. `model`, which reads, and `detector` are known names, bytes, paths or URLs of PP-OCR.

        Lines that score less than `min_score` are not told, places less likely than `min_box_score` are not read. The
        detector sees pictures with sides of `most_side` pixels or less. `letters` are those that the model knows, where
        its file does not say it.

        Raises:  InputError if an option is out of range; ModelFormatError if a model is not of the task's kind; what
                 `webinfer.load` raises
        """
        least, least_box = real_number("min_score", min_score, 1), real_number("min_box_score", min_box_score, 1)
        most_side, host = whole_number("most_side", most_side, STEP, 4096), host or current()
        data, places = await _bytes_of(model, host, progress), await _bytes_of(detector, host, progress)
        known = _letters_in(data) if letters is None else tuple(letters)
        order = [backend] if isinstance(backend, str) else list(backend)

        finders = await _sized(places, with_map, order, progress, host)
        readers = await _sized(data, lambda source: with_letters(source, len(known)), order, progress, host)
        try:
            session, _ = await finders.at(*FIRST_PICTURE)
            await session.settled()  # all sizes run where this one does
            order[:] = [session.backend]
            await session.warmup()
            await (await readers.at(FIRST_LINE, LINE_HEIGHT))[0].warmup()
        except BaseException:
            finders.close()
            readers.close()
            raise
        task = cls(session, finders, readers, known)
        task.min_score, task.min_box_score, task.most_side = least, least_box, most_side
        return task

    async def read(self, image: Any) -> list[TextLine]:
        """The lines of text in an image, as they are read: rows from the top, each from the left.

        `image` is anything `webinfer.tasks.image.read_image` takes.

        Raises:  InputError if it is none of these or has no pixels
        """
        clock = self.session.host.now_ms
        start, picture = clock(), read_image(image, self.session.host)
        seen = Region.whole(picture.width, picture.height)
        if picture.height <= LOWEST or picture.width > FLATTEST * picture.height:
            seen = replace(seen, height=2 * max(picture.width / FLATTEST, LOWEST))
        scale = min(1.0, self.most_side / max(seen.width, seen.height))
        width, height = (max(round(side * scale / STEP), 1) * STEP for side in (seen.width, seen.height))
        outputs, crop, prepare_ms = await self._detector.run(picture, seen, _spec(width, height), lambda crop: {})
        self.session = (await self._detector.at(width, height))[0]
        found = clock()
        quads = self._places(outputs, crop)
        decode_ms, lines = clock() - found, list[TextLine]()
        for quad in quads:
            line, spent_ms = await self._line(picture, quad)
            prepare_ms += spent_ms
            if line.text.strip() and line.score >= self.min_score:
                lines.append(line)
        self._took(start, start + prepare_ms, clock() - decode_ms)
        return lines

    async def run(self, image: Any, /) -> list[TextLine]:
        """As `read`."""
        return await self.read(image)

    def _places(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[Quad]:
        """The corners of the lines of text, in the order in which these are read."""
        width, height = crop.width, crop.height
        sums, quads = outputs[SUMS].flat(), list[Quad]()
        for runs in components(outputs[MASK].tobytes(), width):
            region = smallest_rectangle(hull(runs))
            if min(region.width, region.height) < SMALLEST:
                continue
            if mean_inside(corners_of(region), sums, width, height) < self.min_box_score:
                continue
            grown = GROWTH * region.width * region.height / (region.width + region.height)
            region = replace(region, width=region.width + grown, height=region.height + grown)
            corners = [crop.to_image(x / width, y / height) for x, y in corners_of(region)]
            down = math.dist(corners[0], corners[3]) >= UPRIGHT * math.dist(corners[0], corners[1])
            a, b, c, d = corners[1:] + corners[:1] if down else corners
            quads.append((a, b, c, d))
        boxes = [box_of(quad) for quad in quads]
        order = in_reading_order([(b.left, b.top, b.left + b.width, b.top + b.height) for b in boxes])
        return [quads[place] for place in order]

    async def _line(self, picture: Picture, quad: Quad) -> tuple[TextLine, float]:
        """The line of text inside these corners, and the milliseconds that its pixels took."""
        (x0, y0), (x1, y1), _, corner = quad
        along, across = math.dist(quad[0], quad[1]), math.dist(quad[0], corner)
        used = min(math.ceil(LINE_HEIGHT * along / across), LONGEST_LINE)
        width = max(FIRST_LINE, -(-used // LINE_STEP) * LINE_STEP)
        whole = width / used  # of what the model sees, as a part of the line
        middle = whole / 2 * (x1 - x0) + (x0 + corner[0]) / 2, whole / 2 * (y1 - y0) + (y0 + corner[1]) / 2
        region = Region(*middle, whole * along, across, math.atan2(y1 - y0, x1 - x0))
        columns = array("f", [1.0]) * used + array("f", [0.0]) * (width - used)
        spec = _spec(width, LINE_HEIGHT, Border.EDGE)
        outputs, _, prepare_ms = await self._reader.run(picture, region, spec, lambda crop: {USED: columns})
        classes, scores = outputs[CLASSES].tolist(), outputs[SCORES].tolist()
        places = [i for i, c in enumerate(classes) if c and (i == 0 or c != classes[i - 1])]
        words = "".join(self._letters[classes[i]] for i in places)
        score = sum(scores[i] for i in places) / max(len(places), 1)
        return TextLine(words, score, quad, box_of(quad)), prepare_ms

    def close(self) -> None:
        """Frees both models and the kernels' memory; a second call does nothing."""
        self._detector.close()
        self._reader.close()
        super().close()


def _spec(width: int, height: int, border: Border = Border.BLACK) -> InputSpec:
    return InputSpec(PictureInput(width, height, 1.0, 0.0), keep_aspect=False, border=border)


async def _bytes_of(model: Any, host: Host, progress: Progress | None) -> Any:
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


async def _sized(
    source: Any, more: Callable[[Any], WithPostprocessing], order: Sequence[str], progress: Progress | None, host: Host
) -> _Sized:
    """The model with what is put around it, on the first of these backends when a size is asked for."""
    name = await _input_of(source, order, host)

    async def make(width: int, height: int) -> Session:
        shapes = {name: (1, 3, height, width)}
        return await load(more(source), shapes=shapes, backend=order, progress=progress, host=host)

    return _Sized(make)


def _letters_in(data: Any) -> tuple[str, ...]:
    """The letters that an ONNX file says its classes are."""
    for number, wire, _, entry in fields(memoryview(data), "the reader"):
        if number == METADATA and wire == BYTES:
            pair = {key: text(value) for key, _, _, value in fields(entry, "its metadata")}
            if pair.get(1) == "character":
                return tuple(pair.get(2, "").splitlines())
    raise InputError("the file of the reader does not say which letters it knows; give letters=…")
