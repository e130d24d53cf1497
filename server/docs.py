"""Converts the Markdown of the documentation to HTML, once, when the server starts.

The Markdown is ours, but raw HTML in it is still escaped: one rule for every page is easier to trust
than a look at each. Pictures are SVG files beside the pages; they become part of the HTML, so that
the style sheet colours them for light and dark and screen readers can read their text.
"""

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from server.reference import MissingNameError, Sources, reference_page

LINK = re.compile(r"(?P<page>[a-z-]*)(\.md)?(?P<anchor>#[a-z0-9-]+)?")
NOTEBOOK = "notebook.ipynb"  # made of the page of this name
GENERATED = re.compile(r"^<!-- (table: \w+|end) -->\n", re.MULTILINE)  # marks around tables that are generated
SVG_TAGS = {"svg", "title", "desc", "g", "rect", "path", "line", "text", "tspan", "circle", "polygon"}
STYLE = re.compile(
    r"\s*<style>.*?</style>", re.DOTALL
)  # of a picture that is shown elsewhere, too; docs.css has its own
SVG = "{http://www.w3.org/2000/svg}"


class DocsError(Exception):
    """A page of the documentation cannot be shown; the message names the file and what is wrong."""


@dataclass(frozen=True)
class Heading:
    """A heading of the second level and the anchor that leads to it."""

    text: str
    anchor: str


@dataclass(frozen=True)
class Passage:
    """What stands below one heading, as plain text: a result of the search."""

    heading: str
    anchor: str  # "" of what stands below the title
    text: str


@dataclass(frozen=True)
class DocsPage:
    """One page of the documentation, ready to be put into the template."""

    name: str  # the file's name without .md; "index" is the first page
    title: str  # its first-level heading
    summary: str  # its first paragraph as plain text
    headings: tuple[Heading, ...]
    anchors: frozenset[str]  # of headings of every level
    passages: tuple[Passage, ...]  # in their order
    html: Markup

    @property
    def address(self) -> str:
        """The page's path on the server."""
        return address_of(self.name)


@dataclass(frozen=True)
class Section:
    """A titled group of pages in the navigation."""

    title: str
    pages: tuple[DocsPage, ...]


def address_of(name: str) -> str:
    """The path of the page with this name."""
    return "/docs" if name == "index" else f"/docs/{name}"


def read_docs(folder: Path, engine: Path) -> tuple[Section, ...]:
    """Every page of the folder and of the API reference, in the sections and the order that contents.toml gives.

    `engine` is the folder that the engine's package lies in; its sources are read for the reference.

    Raises: DocsError if a page is missing, is not listed, or cannot be rendered
    """
    contents = folder / "contents.toml"
    if not contents.is_file():
        raise DocsError(f"{contents} is missing; it lists the pages of the documentation")
    rows = tomllib.loads(contents.read_text(encoding="utf-8"))
    written = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    made = _reference_pages(rows.get("reference", ()), engine)
    listed = [name for row in rows["section"] for name in row["pages"]]
    if sorted(listed) != sorted({**written, **made}):
        raise DocsError(f"{contents} lists {sorted(listed)}; there are {sorted({**written, **made})}")
    texts = written | made
    return tuple(
        Section(row["title"], tuple(read_page(folder / f"{name}.md", texts[name]) for name in row["pages"]))
        for row in rows["section"]
    )


def _reference_pages(rows: Sequence[Mapping[str, Any]], engine: Path) -> dict[str, str]:
    """The pages of the API reference as Markdown, by name."""
    sources = Sources(engine)
    try:
        return {row["page"]: reference_page(row["title"], row["text"], row["names"], sources) for row in rows}
    except MissingNameError as error:
        raise DocsError(f"the API reference: {error}") from error


def read_page(file: Path, text: str) -> DocsPage:
    """One page, rendered from its Markdown; `file` is where the text lies, or would lie.

    Raises: DocsError if it has no title, or if a picture or a link in it has the wrong form
    """
    markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")
    tokens = markdown.parse(GENERATED.sub("", text))
    pairs = list(itertools.pairwise(tokens))
    if not tokens or (tokens[0].type, tokens[0].tag) != ("heading_open", "h1"):
        raise DocsError(f"{file} must begin with a heading of the first level: its title")
    headings, anchors = [], set()
    for opening, inline in pairs:
        if opening.type != "heading_open":
            continue
        text = plain_text(inline)
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")  # the same that GitHub makes
        if anchor in anchors:
            raise DocsError(f"{file} has two headings {text!r}; links could not tell them apart")
        anchors.add(anchor)
        opening.attrSet("id", anchor)
        if opening.tag == "h2":
            headings.append(Heading(text, anchor))
    paragraphs = (plain_text(inline) for opening, inline in pairs if opening.type == "paragraph_open")
    html = markdown.renderer.render(tokens, markdown.options, {"folder": file.parent, "file": file})
    title = plain_text(tokens[1])
    return DocsPage(
        file.stem,
        title,
        next(paragraphs, title),
        tuple(headings),
        frozenset(anchors),
        tuple(_passages(tokens)),
        Markup(html),
    )


def _passages(tokens: Sequence[Token]) -> Iterator[Passage]:
    """The text of a page, cut at its headings."""
    heading, anchor, parts = "", "", list[str]()
    for before, token in itertools.pairwise(tokens):
        if before.type == "heading_open":
            if parts:
                yield Passage(heading, anchor, " ".join(parts))
            heading, parts = plain_text(token), []
            anchor = str(before.attrGet("id")) if before.tag != "h1" else ""
        elif token.type == "inline":
            parts.append(plain_text(token))
        elif token.type == "fence":
            parts.append(token.content)
    yield Passage(heading, anchor, " ".join(parts))


def search_index(sections: Sequence[Section]) -> list[dict[str, str | int]]:
    """What the search of the documentation looks through: {id, address, page, heading, text} of each passage."""
    pairs = [(page, passage) for section in sections for page in section.pages for passage in page.passages]
    return [
        {
            "id": i,
            "address": page.address + (f"#{passage.anchor}" if passage.anchor else ""),
            "page": page.title,
            "heading": passage.heading,
            "text": passage.text,
        }
        for i, (page, passage) in enumerate(pairs)
    ]


def outline(sections: Sequence[Section]) -> str:
    """llms.txt: the pages with a sentence each, for programs that look for what to read."""
    parts = ["# webinfer", "> Run machine-learning models in the browser, from Python, at the speed of the hardware."]
    for section in sections:
        rows = (f"- [{page.title}]({page.address.lstrip('/')}): {page.summary}" for page in section.pages)
        parts += [f"## {section.title}", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def plain_text(inline: Token) -> str:
    """The text of a heading or paragraph without its marks."""
    parts = (" " if child.type == "softbreak" else child.content for child in inline.children or ())
    return "".join(parts)


def link_address(href: str, file: Path) -> str:
    """The server's address for a link as the Markdown writes it: `page.md#anchor` becomes `/docs/page#anchor`.

    Raises: DocsError if it is a link to something else
    """
    if href == NOTEBOOK:
        return f"/docs/{NOTEBOOK}"
    found = LINK.fullmatch(href)
    if not found or (found["page"] and not href.startswith(f"{found['page']}.md")):
        raise DocsError(f"{file}: the link {href!r} is none to a page here, such as `glossary.md#plan`")
    page = address_of(found["page"]) if found["page"] else ""
    return page + (found["anchor"] or "")


def code_html(code: str, language: str) -> str:
    """Code as HTML whose spans carry Pygments' class names; plain text where no lexer has this name."""
    try:
        lexer = get_lexer_by_name(language or "text", stripnl=False)
    except ClassNotFound:
        return str(escape(code))
    marked: str = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return marked


def picture_html(file: Path) -> str:
    """The text of an SVG file, for use inside of HTML.

    Raises: DocsError if it is missing, is not well formed, or holds more than shapes and text
    """
    try:
        text = STYLE.sub("", file.read_text(encoding="utf-8"))
        root = ElementTree.fromstring(text)
    except (OSError, ElementTree.ParseError) as error:
        raise DocsError(f"{file} is not a picture: {error}") from error
    for node in root.iter():
        if node.tag.removeprefix(SVG) not in SVG_TAGS or any(name.startswith("on") for name in node.attrib):
            raise DocsError(f"{file} holds <{node.tag.removeprefix(SVG)}>; pictures are shapes and text only")
    if root.find(f"{SVG}title") is None:
        raise DocsError(f"{file} has no <title>, so a screen reader could not name it")
    return text


class _Renderer(RendererHTML):
    """Markdown-it's renderer, with our links, code blocks, tables and pictures."""

    def link_open(self, tokens: Sequence[Token], at: int, options: object, env: Mapping[str, Path]) -> str:
        token = tokens[at]
        token.attrSet("href", link_address(str(token.attrGet("href")), env["file"]))
        return self.renderToken(tokens, at, options, env)  # type: ignore[arg-type]

    def heading_close(self, tokens: Sequence[Token], at: int, options: object, env: Mapping[str, Path]) -> str:
        opening, text = tokens[at - 2], plain_text(tokens[at - 1])
        anchor = escape(str(opening.attrGet("id")))
        link = (
            ""
            if opening.tag == "h1"
            else f' <a class="anchor" href="#{anchor}" aria-label="Link to {escape(text)}">#</a>'
        )
        return f"{link}</{opening.tag}>\n"

    def fence(self, tokens: Sequence[Token], at: int, options: object, env: Mapping[str, Path]) -> str:
        token = tokens[at]
        language, *marks = token.info.split() or [""]
        kind = "code output" if "output" in marks else "code"
        # A long line scrolls inside of its block, and what scrolls must be reachable by keyboard.
        return f'<pre class="{kind}" tabindex="0"><code>{code_html(token.content, language)}</code></pre>\n'

    def table_open(self, tokens: Sequence[Token], at: int, options: object, env: Mapping[str, Path]) -> str:
        number = 1 + sum(token.type == "table_open" for token in tokens[:at])
        return f'<div class="table" tabindex="0" role="region" aria-label="Table {number}"><table>\n'

    def table_close(self, tokens: Sequence[Token], at: int, options: object, env: Mapping[str, Path]) -> str:
        return "</table></div>\n"

    def image(self, tokens: Sequence[Token], at: int, options: object, env: Mapping[str, Path]) -> str:
        source = str(tokens[at].attrGet("src"))
        if not re.fullmatch(r"[a-z0-9-]+\.svg", source):
            raise DocsError(f"{env['file']}: the picture {source!r} is not an SVG file beside the page")
        return f'<span class="picture" tabindex="0">{picture_html(env["folder"] / source)}</span>'
