"""Text in pictures: one model says where lines of text are, another reads each of them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.models.layouts import PictureInput
from webinfer.session.options import real_number, whole_number
from webinfer.session.session import Session
from webinfer.tasks.base import Box, ResultField, ResultSchema, Task
from webinfer.tasks.crop import Border, InputSpec, Region
from webinfer.tasks.image import Picture, read_image
from webinfer.tasks.regions import box_of
from webinfer.tasks.text_lines import Quad, found_quads, reading_order, turned
from webinfer.tasks.text_models import (
    CLASSES,
    SCORES,
    UPSIDE_DOWN,
    USED,
    Sized,
    bytes_of,
    letters_in,
    sized,
    with_letters,
    with_map,
    with_turn,
)
from webinfer.tensor import Tensor

STEP, MOST_SIDE = 32, 960  # pixels: sides of the detector's input are multiples
LINE_HEIGHT, LINE_STEP, LONGEST_LINE = 48, 160, 3200  # pixels of the reader's input: widths are multiples
TURN_WIDTH, TURNED_FROM = 192, 0.9  # pixels of the classifier's input; probability of a line that is upside down
# Mean score of a line's letters from which it is told. Of 1,160 lines in 21 languages, 98.7 % of those in scripts that
# the model knows score more, and 2.4 % of what it makes of other scripts, which score up to 0.92.
MIN_SCORE = 0.9
SURE = 0.9  # score from which a line is not read the other way round as well
FLATTEST, LOWEST = 8, 30  # a picture that is wider than this many times its height, or lower, is seen with black around
FIRST_PICTURE, FIRST_LINE = (640, 480), 320


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text. `quad` are its corners from where the text begins: upper left, upper right, lower right and left.

    Units:  pixels of the picture
    """

    text: str
    score: float  # mean probability of its letters
    quad: Quad
    box: Box  # upright, around the quad


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

    def __init__(
        self, session: Session, detector: Sized, reader: Sized, letters: Sequence[str], classifier: Sized | None = None
    ) -> None:
        super().__init__(session)
        self.min_score, self.min_box_score, self.most_side = MIN_SCORE, 0.4, MOST_SIDE
        self._detector, self._reader, self._classifier = detector, reader, classifier
        self._letters = ("", *letters, " ")

    @classmethod
    async def create(
        cls,
        model: Any = "ppocr_v6_rec_tiny_int8w",
        *,
        detector: Any = "ppocr_v6_det_tiny",
        classifier: Any = "ppocr_v2_cls",
        min_score: float = MIN_SCORE,
        min_box_score: float = 0.4,
        most_side: int = MOST_SIDE,
        letters: Sequence[str] | None = None,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> TextReader:
        """A reader that is ready. `model`, which reads, `detector` and `classifier` are known names, bytes, paths or
        URLs of PP-OCR's models.

        The classifier says of a line whether it is upside down; lines that read badly are read both ways, without a
        classifier (None) too. Lines that score less than `min_score` are left out: most of those in scripts that the
        model does not know score 0.4 to 0.9, lines that it reads right 0.9 to 1. Places less likely than
        `min_box_score` are not read. The detector sees pictures with sides of `most_side` pixels or less. `letters` are
        those that the model knows, where its file does not say it.

        Raises:  InputError if an option is out of range; ModelFormatError if a model is not of the task's kind; what
                 `webinfer.load` raises
        """
        least, least_box = real_number("min_score", min_score, 1), real_number("min_box_score", min_box_score, 1)
        most_side, host = whole_number("most_side", most_side, STEP, 4096), host or current()
        data, places = await bytes_of(model, host, progress), await bytes_of(detector, host, progress)
        turns = None if classifier is None else await bytes_of(classifier, host, progress)
        known = letters_in(data) if letters is None else tuple(letters)
        order = [backend] if isinstance(backend, str) else list(backend)
        finders = await sized(places, with_map, order, progress, host)
        readers = await sized(data, lambda source: with_letters(source, len(known)), order, progress, host)
        turners = None if turns is None else await sized(turns, with_turn, order, progress, host)
        try:
            session, _ = await finders.at(*FIRST_PICTURE)
            await session.autotune_done()  # all sizes run where this one does
            order[:] = [session.backend]
            await session.warmup()
            await (await readers.at(FIRST_LINE, LINE_HEIGHT))[0].warmup()
            if turners is not None:
                await (await turners.at(TURN_WIDTH, LINE_HEIGHT))[0].warmup()
        except BaseException:
            for models in filter(None, (finders, readers, turners)):
                models.close()
            raise
        task = cls(session, finders, readers, known, turners)
        task.min_score, task.min_box_score, task.most_side = least, least_box, most_side
        return task

    async def read(self, image: Any) -> list[TextLine]:
        """The lines of text in an image in reading order: rows from the top of the page, however it is turned.

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
        quads = found_quads(outputs, crop, self.min_box_score)
        decode_ms, lines = clock() - found, list[TextLine]()
        for quad in quads:
            line, spent_ms = await self._line(picture, quad)
            prepare_ms += spent_ms
            # of letters that they do not know, larger models see only the gaps and the points between
            if 2 * sum(map(len, line.text.split())) > len(line.text) and line.score >= self.min_score:
                lines.append(line)
        self._took(start, start + prepare_ms, clock() - decode_ms)
        return [lines[place] for place in reading_order([line.quad for line in lines])]

    async def run(self, image: Any, /) -> list[TextLine]:
        """As `read`."""
        return await self.read(image)

    async def _line(self, picture: Picture, quad: Quad) -> tuple[TextLine, float]:
        """The line of text inside these corners, and the milliseconds that its pixels took.

        A line that reads badly is read upside down too: the better reading counts.
        """
        upside_down, spent_ms = await self._is_upside_down(picture, quad)
        quad = turned(quad, 2) if upside_down else quad
        line, prepare_ms = await self._letters_along(picture, quad)
        if line.score >= SURE:
            return line, spent_ms + prepare_ms
        other, other_ms = await self._letters_along(picture, turned(quad, 2))
        return max(line, other, key=lambda read: read.score), spent_ms + prepare_ms + other_ms

    async def _is_upside_down(self, picture: Picture, quad: Quad) -> tuple[bool, float]:
        if self._classifier is None:
            return False, 0.0
        used = min(math.ceil(LINE_HEIGHT * math.dist(quad[0], quad[1]) / math.dist(quad[0], quad[3])), TURN_WIDTH)
        outputs, prepare_ms = await self._seen(self._classifier, picture, quad, used, TURN_WIDTH)
        return outputs[UPSIDE_DOWN].tolist()[0] > TURNED_FROM, prepare_ms

    async def _letters_along(self, picture: Picture, quad: Quad) -> tuple[TextLine, float]:
        used = math.ceil(LINE_HEIGHT * math.dist(quad[0], quad[1]) / math.dist(quad[0], quad[3]))
        used = min(used, LONGEST_LINE)
        width = max(FIRST_LINE, -(-used // LINE_STEP) * LINE_STEP)
        outputs, prepare_ms = await self._seen(self._reader, picture, quad, used, width)
        classes, scores = outputs[CLASSES].tolist(), outputs[SCORES].tolist()
        places = [i for i, c in enumerate(classes) if c and (i == 0 or c != classes[i - 1])]
        words = "".join(self._letters[classes[i]] for i in places)
        score = sum(scores[i] for i in places) / max(len(places), 1)
        return TextLine(words, score, quad, box_of(quad)), prepare_ms

    async def _seen(
        self, model: Sized, picture: Picture, quad: Quad, used: int, width: int
    ) -> tuple[dict[str, Tensor], float]:
        """A model's outputs for a line that fills the first `used` of `width` columns of its input."""
        (x0, y0), (x1, y1), _, corner = quad
        along, across = math.dist(quad[0], quad[1]), math.dist(quad[0], corner)
        whole = width / used  # of what the model sees, as a part of the line
        middle = whole / 2 * (x1 - x0) + (x0 + corner[0]) / 2, whole / 2 * (y1 - y0) + (y0 + corner[1]) / 2
        region = Region(*middle, whole * along, across, math.atan2(y1 - y0, x1 - x0))
        columns = array("f", [1.0]) * used + array("f", [0.0]) * (width - used)
        spec = _spec(width, LINE_HEIGHT, Border.EDGE)
        outputs, _, prepare_ms = await model.run(picture, region, spec, lambda crop: {USED: columns})
        return outputs, prepare_ms

    def close(self) -> None:
        """Frees the models and the kernels' memory; a second call does nothing."""
        self._detector.close()
        self._reader.close()
        if self._classifier is not None:
            self._classifier.close()
        super().close()


def _spec(width: int, height: int, border: Border = Border.BLACK) -> InputSpec:
    return InputSpec(PictureInput(width, height, 1.0, 0.0), keep_aspect=False, border=border)
