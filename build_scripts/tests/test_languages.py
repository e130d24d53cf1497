"""The catalogue of the pages' second language: no text of templates, tables and scripts is missing from it."""

import json
import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from build_scripts.paths import ROOT, STATIC

CATALOGUES = sorted((STATIC / "languages").glob("*.json"))
ATTRIBUTES = ("aria-label", "title", "placeholder", "alt", "data-hint")
FOREIGN = ("code", "pre", "script", "style", "textarea", "title")
FOLDERS = ("engine", "media", "pages", "results", "sources", "ui")
# What is not a text of a page: selectors, styles, addresses, code, and what names a thing in every language.
NO_TEXT = re.compile(
    r"[\w.#:/*\[\]=>,?+-]*|[a-z][\w-]*( [a-z][\w-]*)*|.*(\$\{|=>|\?\.|var[<(]|import webinfer|device name).*|"
    r".*(\.cm-|::).*|"
    r".*(rgb\(|light-dark\(|color-mix\(|blur\(|rotate\(|url\(|px|rem\b|prefers-|monospace|system-ui|assets/|\\n|\\x).*|"
    r"(&|#|\[|\.g|\.hero|\.shot|input|M\{|VP8|WAVEfmt|Bearer |pre\.|thead|result=|static/|token\.).*|"
    r"(class |colour-|bar-of|save-).*|"
    r"webinfer (ran|site) |webinfer .*\{\}|\{'descr.*|image/.*|[^a-zA-Z]*|\{\}[-./]?[\w./{}-]*|.*api/.*|\{\} input.*",
    re.DOTALL,
)
NAMES = frozenset(
    (
        "8 MB",
        "CSV",
        "CenterNet",
        "JSON",
        "MobileNet v2",
        "PNG",
        "SVG",
        "Silero v6",
        "Top-p",
        "webinfer",
        "{} file",
        "Open a {} file",
        # what stands before a word that an expression gives: each whole is an entry
        "Download {}",
        "Similarity of the sentence to each of the others",
        "Labels of the text",
        "{}; the table lists them",
        "I love you",  # a gesture of MediaPipe's: names of classes are English
    )
)
UNITS = re.compile(
    r"\W*(\{\}[;,:]? ?)*( ?(MB|ms|bytes|[kMG]?FLOP(/s)?|webinfer|to|on|in|at|of|the same|and)[,:;]? ?(\{\})?)*"
    r"\W*(\{\}\W*)*"
)
# Pieces that scripts put together; the whole is an entry.
PIECES = (
    "added", "changed", "removed", "differ", "the same", "Check the address.", "no GPU", "of its range.",
    "stored in this browser", "faster than the default{}", "read its files,", "timed{}",
    "which needs the header", "The sample photo {} from", "differ first at ", "{} {} of {} …", "of peak",
    "Measuring, round", "known before", "async for piece",
)  # fmt: skip
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
SENTENCE = re.compile(r"(?<=[.!?…”)]) (?=[A-Z“(\d{])")


class Texts(HTMLParser):
    """Collects what a template shows."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ATTRIBUTES and value]
        foreign = tag in FOREIGN or any(name == "lang" and tag != "html" for name, _ in attrs)
        if (self._inside or foreign) and tag not in ("img", "input", "link", "meta", "br"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.found.append(data)


def of_templates() -> Iterator[str]:
    for path in sorted((ROOT / "server" / "templates").glob("*.html")):
        text = re.sub(
            r"\{#.*?#\}|\{% block (title|description|root|head|first|icons) %\}.*?\{%-? endblock %\}",
            "",
            path.read_text(),
            flags=re.DOTALL,
        )
        texts = Texts()
        texts.feed(re.sub(r"\{\{(.*?)\}\}", "{}", re.sub(r"\{%.*?%\}", "", text, flags=re.DOTALL), flags=re.DOTALL))
        yield from texts.found
        for expression in re.findall(r"\{\{(.*?)\}\}", text, re.DOTALL):
            yield from re.findall(r'"([A-Z][^"]*)"', expression)  # of macros and choices


def of_tables() -> Iterator[str]:
    demos = tomllib.loads((ROOT / "server" / "demos.toml").read_text())["demo"]
    for demo in demos:
        yield from (demo["title"], demo["summary"], f"{demo['summary']}.", demo["group"])
        yield from (demo["sample_says"], demo.get("line_says", ""))
        yield from (*demo.get("examples", {}).values(), *demo.get("titles", {}).values())
        yield from (option["title"] for option in demo.get("options", ()))
        yield from (file["says"] for file in demo.get("files", ()))
    for page in tomllib.loads((ROOT / "server" / "pages.toml").read_text())["page"]:
        yield from (page["menu"], page["title"], f"{page['summary'].removesuffix('.')}.")


def of_scripts() -> Iterator[str]:
    for path in sorted(path for folder in FOLDERS for path in (STATIC / folder).rglob("*.js")):
        if path.stem in ("language", "closed_doors") or path.stem.endswith(("worker", "tests", "threads")):
            continue
        text = re.sub(r"/\*\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        text = re.sub(r"^(import .*|\s*//.*)$| // .*$", "", text, flags=re.MULTILINE)
        for found in LITERAL.finditer(text):
            literal = found[1] if found[1] is not None else found[2]
            yield re.sub(r"\$\{[^{}]*\}", "{}", literal)


def known(catalogue: dict[str, str]) -> Any:
    """Whether a text is in the catalogue: as a whole, or each of its sentences."""
    patterns = [re.compile("(.+?)".join(map(re.escape, key.split("{}")))) for key in catalogue if "{}" in key]

    def one(text: str) -> bool:
        if text in catalogue or not re.search(r"[A-Za-z]{2}", text.replace("{}", "")):
            return True
        return any(pattern.fullmatch(text) for pattern in patterns)

    def whole(text: str) -> bool:
        if one(" ".join(text.split())):
            return True
        text = re.sub(r"(?<=[.!?])(\{\})+$", "", " ".join(text.split()))
        text = re.sub(r"^\{\} (?=[A-Z])", "", text)
        if text in NAMES or UNITS.fullmatch(text) or any(piece in text for piece in PIECES):
            return True
        return one(text) or all(map(one, SENTENCE.split(text)))

    return whole


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)
def test_every_text_of_the_pages_is_in_the_catalogue(path: Path) -> None:
    catalogue = json.loads(path.read_text())
    covers = known(catalogue)
    missing = {text.strip() for text in (*of_templates(), *of_tables()) if not covers(text)}
    missing |= {text for text in of_scripts() if not NO_TEXT.fullmatch(text) and not covers(text)}
    assert sorted(missing) == []


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)
def test_translations_hold_what_their_texts_hold(path: Path) -> None:
    wrong = {
        text: translation
        for text, translation in json.loads(path.read_text()).items()
        if text.count("{}") != len(re.findall(r"\{\d*\}", translation)) or not translation.strip()
    }
    assert wrong == {}
