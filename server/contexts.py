"""One dataclass per page: the whole vocabulary of its template."""

import json
from dataclasses import dataclass

from markupsafe import Markup

from server.docs import DocsPage, Section
from server.manifest import Manifest
from server.settings import Settings


@dataclass(frozen=True)
class DemoPage:
    """What demo.html may name."""

    title: str
    version: str  # of the engine
    isolated: bool  # whether the server sends the isolation headers
    assets: dict[str, str]  # logical name -> URL
    backends: list[dict[str, str]]  # that the page offers: name, title, hint; the first is chosen
    manifest: Markup  # JSON text for the script's data island


def demo_page(manifest: Manifest, settings: Settings) -> DemoPage:
    """The context of the demo page."""
    text = json.dumps({**manifest.public, "isolated": settings.isolated}, sort_keys=True)
    # Inside <script> only these could end the element or start a comment; in JSON they occur in strings only.
    island = Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
    backends = manifest.public["page"]["backends"]
    return DemoPage("webinfer", manifest.engine, settings.isolated, manifest.urls, backends, island)


@dataclass(frozen=True)
class DocsView:
    """What docs.html may name."""

    version: str  # of the engine
    assets: dict[str, str]  # logical name -> URL
    sections: tuple[Section, ...]  # of the navigation
    page: DocsPage
    previous: DocsPage | None  # in the order of the navigation
    following: DocsPage | None


def docs_pages(manifest: Manifest, sections: tuple[Section, ...]) -> list[DocsView]:
    """The contexts of all pages of the documentation."""
    pages = [page for section in sections for page in section.pages]
    around = zip([None, *pages], pages, [*pages[1:], None], strict=False)
    return [DocsView(manifest.engine, manifest.urls, sections, page, before, after) for before, page, after in around]
