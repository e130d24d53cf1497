"""Drawn pages for the judge of OCR: languages by angles, with the lines that stand on each and where."""

import math
import textwrap
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from build_scripts.judge.rows import Row, edits

ANGLES = (0, 15, 30, 45, 60, 75, 90, 120, 135, 150, 180, 270)  # degrees, against the clock
SIZE, MARGIN = 26, 40  # pixels of a letter's height and of the margin
LETTERS = 34  # of a line; half as many wide ones
FONT, WIDE_FONT = "NotoSans[wdth,wght].ttf", "NotoSansCJKtc-Regular.otf"
INK, PAPER = (25, 25, 40), (243, 240, 232)

Point = tuple[float, float]


@dataclass(frozen=True)
class Page:
    """A page: the text and the middle of each of its lines, and the direction in which they run, in pixels, radians."""

    path: Path
    language: str
    angle: int
    lines: tuple[tuple[str, Point], ...]
    direction: float


def texts() -> dict[str, str]:
    """The text of each language's page."""
    return tomllib.loads(Path(__file__).with_name("page_texts.toml").read_text())


def lines_of(text: str) -> list[str]:
    """A text cut into the lines of a page."""
    if text.isascii() or " " in text:
        return textwrap.wrap(text, LETTERS)
    return [text[at : at + LETTERS // 2] for at in range(0, len(text), LETTERS // 2)]


def draw(folder: Path, fonts: Path, languages: Sequence[str], angles: Sequence[int] = ANGLES) -> list[Page]:
    """The pages of these languages at these angles, as PNG files in a folder."""
    return [_page(folder, fonts, language, angle) for language in languages for angle in angles]


def _page(folder: Path, fonts: Path, language: str, angle: int) -> Page:
    lines = lines_of(texts()[language])
    wide = any(ord(letter) > 0x2E80 for line in lines for letter in line)
    font = ImageFont.truetype(str(fonts / (WIDE_FONT if wide else FONT)), SIZE)
    boxes = [font.getbbox(line) for line in lines]
    width, height = int(max(box[2] for box in boxes)) + 2 * MARGIN, 2 * SIZE * len(lines) + 2 * MARGIN
    page = Image.new("RGB", (width, height), PAPER)
    pen, middles = ImageDraw.Draw(page), list[Point]()
    for number, (line, box) in enumerate(zip(lines, boxes, strict=True)):
        top = MARGIN + 2 * SIZE * number
        pen.text((MARGIN, top), line, fill=INK, font=font)
        middles.append((MARGIN + (box[0] + box[2]) / 2, top + (box[1] + box[3]) / 2))
    turned = page.rotate(angle, expand=True, fillcolor=PAPER, resample=Image.Resampling.BICUBIC)
    direction = -math.radians(angle)
    cos, sin = math.cos(direction), math.sin(direction)
    found = []
    for line, (x, y) in zip(lines, middles, strict=True):
        right, down = x - width / 2, y - height / 2
        place = (turned.width / 2 + cos * right - sin * down, turned.height / 2 + sin * right + cos * down)
        found.append((line, place))
    path = folder / f"{language}_{angle}.png"
    turned.save(path)
    return Page(path, language, angle, tuple(found), direction)


def wrong_letters(page: Page, read: Sequence[tuple[str, Sequence[Sequence[float]]]]) -> int:
    """The letters of a page to mend in what was read, texts with their corners.

    What was read belongs to the line that it is nearest to; parts of a line follow each other along it.
    """
    cos, sin = math.cos(page.direction), math.sin(page.direction)
    parts: list[list[tuple[float, str]]] = [[] for _ in page.lines]
    for text, quad in read:
        x, y = (sum(corner[i] for corner in quad) / len(quad) for i in (0, 1))
        gaps = [abs((y - at[1]) * cos - (x - at[0]) * sin) for _, at in page.lines]
        parts[gaps.index(min(gaps))].append((x * cos + y * sin, text))
    joined = [" ".join(text for _, text in sorted(line)) for line in parts]
    return sum(edits(one, other) for one, (other, _) in zip(joined, page.lines, strict=True))


def rows(task: str, pages: Sequence[Page], ours: Sequence[int], theirs: Sequence[int]) -> list[Row]:
    """A row for each angle and for each language: our wrong letters beside the judge's. No group may have more."""
    groups: dict[str, list[int]] = {}
    for place, page in enumerate(pages):
        for group in (f"{page.angle} degrees", page.language):
            groups.setdefault(group, []).append(place)
    found = []
    for group, places in groups.items():
        letters = sum(len(line) for i in places for line, _ in pages[i].lines)
        wrong, judge = (sum(counts[i] for i in places) for counts in (ours, theirs))
        told = f"wrong letters: {1000 * wrong / letters:.1f} and {1000 * judge / letters:.1f} of 1,000"
        found.append(Row(task, group, wrong, judge, told, wrong <= judge))
    return found
