"""Text in pictures: one model says where lines of text are, another reads each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.session.options import real_number, whole_number
from webinfer.session.session import Session
from webinfer.tasks.base import Box, ResultField, ResultSchema, Task
from webinfer.tasks.image import Picture, read_image
from webinfer.tasks.regions import box_of
from webinfer.tasks.text_lines import found_quads, reading_order, turned, upright
from webinfer.tasks.text_models import (
    CLASSES,
    IMAGENET,
    SCORES,
    SIGNED,
    UPSIDE_DOWN,
    bytes_of,
    letters_in,
    opened_model,
    seen_by,
    with_letters,
    with_map,
    with_turn,
)
from webinfer.tasks.text_pixels import Quad, TextPixels, padding
from webinfer.tasks.workspace import Workspace
from webinfer.tensor import Tensor

STEP, MOST_SIDE = 32, 960  # pixels: sides of the detector's input are multiples
LINE_HEIGHT, SHORTEST_LINE, LONGEST_LINE = 48, 320, 3200  # pixels of the reader's input
TURN_WIDTH, TURNED_FROM = 192, 0.9  # pixels of the classifier's input; probability of a line that is upside down
# Mean score of a line's letters from which it is told. Of 1,160 lines in 21 languages, 98.7 % of those in scripts that
# the model knows score more, and 2.4 % of what it makes of other scripts, which score up to 0.92.
MIN_SCORE = 0.9
SURE = 0.9  # score from which a line is not read the other way round as well
# Sizes that models meet at once; from the second one on sizes are bound.
FIRST_PAGES, FIRST_LINES = ((640, 480), (480, 640)), ((320, LINE_HEIGHT), (480, LINE_HEIGHT))
TURNS = ((TURN_WIDTH, LINE_HEIGHT),)


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
    """Reads text in pictures. Create one with `await TextReader.create()`. `session` is the detector's."""

    name = "text"
    takes = "picture"
    extension = CLASSES
    result = ResultSchema(
        "texts", "lines", "Lines of text", "Line",
        (ResultField("text", "text", ""), ResultField("score", "number", "0..1"), ResultField("quad", "points", "px"),
         ResultField("box", "box", "px")),
    )  # fmt: skip

    def __init__(
        self, detector: Session, reader: Session, letters: Sequence[str], classifier: Session | None, pixels: TextPixels
    ) -> None:
        super().__init__(detector)
        self.min_score, self.min_box_score, self.most_side = MIN_SCORE, 0.4, MOST_SIDE
        self._reader, self._classifier, self._pixels = reader, classifier, pixels
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
        """Creates a reader. `model`, which reads, `detector` and `classifier` are known names, bytes, paths or
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
        pixels, sessions = TextPixels(Workspace(await host.kernels())), list[Session]()
        try:
            sessions.append(await opened_model(with_map(places), FIRST_PAGES, order, progress, host))
            await sessions[0].autotune_done()  # the others run where this one does
            order = [sessions[0].backend]
            sessions.append(await opened_model(with_letters(data, len(known)), FIRST_LINES, order, progress, host))
            if turns is not None:
                sessions.append(await opened_model(with_turn(turns), TURNS, order, progress, host))
        except BaseException:
            pixels.close()
            for session in sessions:
                session.close()
            raise
        task = cls(sessions[0], sessions[1], known, sessions[2] if turns is not None else None, pixels)
        task.min_score, task.min_box_score, task.most_side = least, least_box, most_side
        return task

    async def read(self, image: Any) -> list[TextLine]:
        """The lines of text in an image in reading order, from the top of the page even if it is rotated.

        `image` is anything `webinfer.tasks.image.read_image` takes.

        Raises:  InputError if it is none of these or has no pixels
        """
        clock = self.session.host.now_ms
        start, picture = clock(), read_image(image, self.session.host)
        black = padding(picture.width, picture.height)
        page = picture.width, picture.height + 2 * black
        seen = self._pixels.page(picture, *_input_size(page, self.most_side), IMAGENET)
        prepare_ms = clock() - start
        outputs = await seen_by(self.session, seen)
        found = clock()
        quads = found_quads(outputs, page, self.min_box_score)
        decode_ms = clock() - found
        cut = clock()
        cuts, lines = self._pixels.lines(picture, [upright(quad) for quad in quads]), list[TextLine]()
        prepare_ms += clock() - cut
        for quad, pixels in zip(quads, cuts, strict=True):
            line, spent_ms = await self._line(pixels, quad)
            prepare_ms += spent_ms
            # of letters that they do not know, larger models see only the gaps and the points between
            if 2 * sum(map(len, line.text.split())) > len(line.text) and line.score >= self.min_score:
                lines.append(line)
        if black:
            lines = [_moved(line, -black, picture.height) for line in lines]
        self._took(start, start + prepare_ms, clock() - decode_ms)
        return [lines[place] for place in reading_order([line.quad for line in lines])]

    async def run(self, image: Any, /) -> list[TextLine]:
        """As `read`."""
        return await self.read(image)

    async def _line(self, pixels: Picture, quad: Quad) -> tuple[TextLine, float]:
        """The line of text that these pixels show, and the milliseconds that it took to stretch them.

        A line that reads badly is read upside down too: the better reading counts.
        """
        upside_down, spent_ms = await self._is_upside_down(pixels, quad)
        quad = turned(quad, 2) if upside_down else quad
        line, prepare_ms = await self._letters_along(pixels, quad)
        if line.score >= SURE:
            return line, spent_ms + prepare_ms
        other, other_ms = await self._letters_along(pixels, turned(quad, 2))
        return max(line, other, key=lambda read: read.score), spent_ms + prepare_ms + other_ms

    async def _is_upside_down(self, pixels: Picture, quad: Quad) -> tuple[bool, float]:
        if self._classifier is None:
            return False, 0.0
        outputs, prepare_ms = await self._seen(self._classifier, pixels, quad, TURN_WIDTH)
        return outputs[UPSIDE_DOWN].tolist()[0] > TURNED_FROM, prepare_ms

    async def _letters_along(self, pixels: Picture, quad: Quad) -> tuple[TextLine, float]:
        width = int(LINE_HEIGHT * max(SHORTEST_LINE / LINE_HEIGHT, _aspect(pixels, quad)))
        outputs, prepare_ms = await self._seen(self._reader, pixels, quad, min(width, LONGEST_LINE))
        classes, scores = outputs[CLASSES].tolist(), outputs[SCORES].tolist()
        places = [i for i, c in enumerate(classes) if c and (i == 0 or c != classes[i - 1])]
        words = "".join(self._letters[classes[i]] for i in places)
        score = sum(scores[i] for i in places) / max(len(places), 1)
        return TextLine(words, score, quad, box_of(quad)), prepare_ms

    async def _seen(self, model: Session, pixels: Picture, quad: Quad, width: int) -> tuple[dict[str, Tensor], float]:
        """A model's outputs for a line in an input of so many columns, and the milliseconds that these took."""
        clock = self.session.host.now_ms
        start, used = clock(), min(math.ceil(LINE_HEIGHT * _aspect(pixels, quad)), width)
        seen = self._pixels.line(pixels, _quarters(quad), LINE_HEIGHT, width, used, SIGNED)
        prepare_ms = clock() - start
        return await seen_by(model, seen), prepare_ms

    def close(self) -> None:
        """Frees the models and the kernels' memory; a second call does nothing."""
        self._pixels.close()
        self._reader.close()
        if self._classifier is not None:
            self._classifier.close()
        super().close()


def _input_size(page: tuple[int, int], most_side: int) -> tuple[int, int]:
    """Width and height of the detector's input for a page of this size."""
    scale = min(1.0, most_side / max(page))
    width, height = (max(round(int(side * scale) / STEP), 1) * STEP for side in page)
    return width, height


def _quarters(quad: Quad) -> int:
    """By how many quarters of a circle the text is turned with the clock in its cut, which is that of `upright`."""
    return upright(quad).index(quad[0])


def _aspect(pixels: Picture, quad: Quad) -> float:
    """Width over height of a line's cut, as the text runs."""
    sides = (pixels.width, pixels.height)
    return sides[_quarters(quad) % 2] / sides[1 - _quarters(quad) % 2]


def _moved(line: TextLine, down: float, height: int) -> TextLine:
    """The line in a picture of this height that begins further up on the page."""
    a, b, c, d = ((x, min(max(y + down, 0.0), float(height))) for x, y in line.quad)
    return replace(line, quad=(a, b, c, d), box=box_of((a, b, c, d)))
