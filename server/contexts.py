"""One dataclass per page: the whole vocabulary of its template."""

import json
from dataclasses import dataclass

from markupsafe import Markup

from server.manifest import Manifest
from server.settings import Settings


@dataclass(frozen=True)
class DemoPage:
    """What demo.html may name."""

    title: str
    version: str  # of the engine
    isolated: bool  # whether the server sends the isolation headers
    assets: dict[str, str]  # logical name -> URL
    folders: dict[str, str]  # "pyodide", "python", "static", "kernels" -> URL that ends in /
    manifest: Markup  # JSON text for the script's data island


def demo_page(manifest: Manifest, settings: Settings) -> DemoPage:
    """The context of the demo page."""
    text = json.dumps({**manifest.public, "isolated": settings.isolated}, sort_keys=True)
    # Inside <script> only these could end the element or start a comment; in JSON they occur in strings only.
    island = Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
    return DemoPage("webinfer", manifest.engine, settings.isolated, manifest.urls, manifest.folders, island)
