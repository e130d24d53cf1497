"""The tables of the site's pages: demos.toml and pages.toml."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

INPUTS = frozenset({"picture", "camera", "video", "audio", "text", "file"})
SOURCES = {"audio": "sound", "text": "text", "file": "file"}
RESERVED = frozenset({"assets", "api", "docs", "healthz"})  # first parts of other addresses

Row = TypeVar("Row")


class StudioError(Exception):
    """A row of demos.toml or pages.toml cannot become a page; the message names it."""


@dataclass(frozen=True)
class Option:
    """A number that can be set for a task: `name` is an option of the task's `create`."""

    name: str
    title: str
    least: float
    most: float
    step: float
    value: float


@dataclass(frozen=True)
class OwnFile:
    """A file of the user's own that a task is made of: `name` is an option of its `create` that takes bytes."""

    name: str
    title: str
    says: str  # which files fit
    accept: str  # of the file dialogue
    usual: str = ""  # a file of the manifest or of a package that stands in for it
    optional: bool = False  # lines of Python on the page leave it out


@dataclass(frozen=True)
class Demo:
    """One demo: a task with a model and a sample, and the page that shows it."""

    slug: str
    task: str
    title: str
    summary: str
    group: str
    inputs: tuple[str, ...]
    sample_says: str
    model: str = ""  # "": no package has one, the user opens a file
    files: tuple[OwnFile, ...] = ()  # that the user may open
    labels: str = ""  # the option of the task's `create` by which the user names classes, where there is one
    usual_labels: tuple[str, ...] = ()  # that the page opens with
    sample: str = ""  # in the site's manifest, or in a package that is fetched when it is asked for; "" of texts
    line_says: str = ""  # what the line over a recording's waveform is
    examples: Mapping[str, str] = field(default_factory=dict)  # further files of the manifest, and what each shows
    close: float | None = None  # its card shows what was found from close by, with so many times its size beside it
    parts: tuple[str, ...] = ()  # of what was found, by which its card looks from closer than by the whole
    room: int = 18  # rem, of the room that is kept for the sample's results: 18, 22, 28, 31 (demo.css)
    texts: tuple[str, ...] = ()  # that a page of texts opens with: one, and those that it is compared with
    models: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)  # of models, where the page offers a choice
    also: tuple[str, ...] = ()
    effect: str = ""  # of masks: what becomes of the background at first
    fixed: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[Option, ...] = ()

    @property
    def source(self) -> str:
        """What it is given in the first place: "picture", "sound", "text" or "file"."""
        return next((SOURCES[one] for one in self.inputs if one in SOURCES), "picture")

    @property
    def address(self) -> str:
        """The page's path on the server."""
        return f"/{self.slug}"


@dataclass(frozen=True)
class Page:
    """A page that is not a demo: template <slug>.html, script static/<slug>.js."""

    slug: str
    menu: str
    title: str
    summary: str
    address: str = ""
    lab: bool = False  # whether only a server with a lab has it
    developers: bool = False  # whether the navigation has it in the menu for developers
    fetches: bool = False  # whether it may read files of other sites: models under addresses that its user names


@dataclass(frozen=True)
class Studio:
    """All pages that are applications; the documentation's are in docs.py."""

    demos: tuple[Demo, ...]
    pages: tuple[Page, ...]
    documented: bool = True  # whether the navigation leads to the documentation
    model_bytes: Mapping[str, int] = field(default_factory=dict)  # of files of models, which a site may not have yet


def read_studio(folder: Path, lab: bool = False) -> Studio:
    """The pages that the tables of a folder describe; with those of a lab if there is one.

    Raises: StudioError if a row lacks a field, has one too many, or shares its address
    """
    demos = tuple(_demo(row) for row in _rows(folder / "demos.toml", "demo"))
    pages = tuple(_page(row) for row in _rows(folder / "pages.toml", "page"))
    taken = {f"/{name}" for name in RESERVED}
    for address in (*(demo.address for demo in demos), *(page.address for page in pages)):
        if address in taken:
            raise StudioError(f"the address {address} is taken by another page; choose another slug")
        taken.add(address)
    sizes: dict[str, int] = json.loads((folder / "model_bytes.json").read_text())
    return Studio(demos, tuple(page for page in pages if lab or not page.lab), model_bytes=sizes)


def lab_alone(folder: Path) -> Studio:
    """The lab's page and no other, by the table of a folder.

    Raises: StudioError if a row lacks a field, or has one too many
    """
    pages = (_page(row) for row in _rows(folder / "pages.toml", "page"))
    return Studio((), tuple(page for page in pages if page.lab), documented=False)


def _rows(file: Path, name: str) -> Sequence[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(file.read_text()).get(name, [])
    return rows


def _demo(row: dict[str, Any]) -> Demo:
    options = tuple(_made(Option, one) for one in row.get("options", ()))
    lists = {name: tuple(row.get(name, ())) for name in ("inputs", "models", "also", "parts", "texts")}
    files = tuple(_made(OwnFile, one) for one in row.get("files", ()))
    demo = _made(Demo, {**row, **lists, "options": options, "files": files})
    if not demo.model and "model" not in {file.name for file in files}:
        raise StudioError(f"{demo.slug!r} has neither a model nor a file to open as one")
    if unknown := set(demo.inputs) - INPUTS:
        raise StudioError(f"{demo.slug!r} takes {', '.join(unknown)}; inputs are {', '.join(sorted(INPUTS))}")
    return demo


def _page(row: dict[str, Any]) -> Page:
    return _made(Page, {**row, "address": row.get("address", f"/{row.get('slug')}")})


def _made(kind: type[Row], row: dict[str, Any]) -> Row:
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    if unknown := set(row) - known:
        raise StudioError(f"{row.get('slug', row)!r} has fields that nobody reads: {', '.join(sorted(unknown))}")
    try:
        return kind(**row)
    except TypeError as error:
        raise StudioError(f"{row.get('slug', row)!r}: {error}") from error
