"""One dataclass per kind of page: the whole vocabulary of its template."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from server.demo_code import code_of, script_of
from server.integrity import import_map, inline_script, integrity_of
from server.manifest import Manifest
from server.settings import Settings
from server.studio import Demo, Page, Studio

if TYPE_CHECKING:  # a server of the lab alone has no documentation, and not what renders it
    from server.docs import DocsPage, Section

FIRST = "static/first.js"
LANGUAGE = "static/chosen_language.js"
ABSENT = "this site does not have its model"


@dataclass(frozen=True)
class Link:
    """A link of the navigation."""

    address: str
    title: str
    here: bool  # whether it leads to the page that it is on
    developers: bool = False  # whether it stands in the menu for developers


@dataclass(frozen=True)
class Frame:
    """What every page shows around its own contents."""

    version: str  # of the engine
    assets: dict[str, str]  # logical name -> URL
    integrity: dict[str, str]  # logical name of a script or style sheet -> value of its integrity attribute
    import_map: Markup  # JSON text with the integrity of scripts that scripts import
    navigation: tuple[Link, ...]
    first: Markup  # the script that pages with an engine begin with
    language: Markup  # the script that shows the page in the visitor's language; "" on sites with English only


@dataclass(frozen=True)
class ModelChoice:
    """A model that a demo offers."""

    name: str
    title: str
    size: str  # of all that a visitor downloads with it, or that it is not available


@dataclass(frozen=True)
class TaskView:
    """What task.html may name."""

    frame: Frame
    demo: Demo
    models: tuple[ModelChoice, ...]
    late: tuple[str, ...]  # packages that are fetched when the page is first opened
    backends: Sequence[Mapping[str, str]]  # that the page offers: name, title, hint; the first is chosen
    options: str  # of the task, as JSON
    schema: str  # how the task's results are shown, as JSON
    drawer: str  # URL of the script that draws them
    code: str  # the Python that the demo is
    script: str  # the same for a script of one's own
    manifest: Markup  # JSON text for the script's data island


@dataclass(frozen=True)
class PageView:
    """What the template of a page that is not a demo may name."""

    frame: Frame
    page: Page
    groups: Mapping[str, Sequence[TaskView]]  # all demos, in the order of their table
    backends: Sequence[Mapping[str, str]]
    rivals: str  # address of what is known of runtimes of others, or ""
    wheel: str  # address of the wheel of users
    models: str  # JSON: what demos call the models, {name: [title of the demo, title there or ""]}
    manifest: Markup


@dataclass(frozen=True)
class ProblemView:
    """What problem.html may name."""

    frame: Frame
    title: str
    documented: bool


def frame_of(manifest: Manifest, studio: Studio, here: str) -> Frame:
    """The frame of the page at this address."""
    links = [(page.address, page.menu, page.developers) for page in studio.pages]
    links += [("/docs", "Docs", False)] * studio.documented
    shown = tuple(Link(address, title, address == here, developers) for address, title, developers in links)
    files = {name: manifest.assets[url] for name, url in manifest.urls.items() if name.endswith((".js", ".css"))}
    hashes = {name: integrity_of(asset.sha256) for name, asset in files.items()}
    first, language = (inline_script(manifest, name) for name in (FIRST, LANGUAGE))
    return Frame(manifest.engine, manifest.urls, hashes, import_map(manifest), shown, first, language)


def task_view(manifest: Manifest, studio: Studio, demo: Demo, data: Markup, fetches: bool) -> TaskView:
    """The context of a demo's page, with the site's island; `fetches`: whether packages of models can be asked for."""
    offered = demo.models or ((demo.model,) if demo.model else ())
    models = tuple(
        ModelChoice(name, demo.titles.get(name, name), _size(manifest, studio, (name, *demo.also), fetches))
        for name in offered
    )
    options = {**demo.fixed, **{option.name: option.value for option in demo.options}}
    frame, backends = frame_of(manifest, studio, demo.address), manifest.public["page"]["backends"]
    schema = manifest.public["page"]["tasks"][demo.task]
    drawer = manifest.urls[f"static/results/{schema['kind']}.js"]
    code, script = code_of(demo, options), script_of(demo, options)
    _, late = _missing(manifest, tuple(filter(None, (demo.model, *demo.also))))
    return TaskView(
        frame,
        demo,
        models,
        tuple(sorted(late)),
        backends,
        json.dumps(options),
        json.dumps(schema),
        drawer,
        code,
        script,
        data,
    )


def _size(manifest: Manifest, studio: Studio, models: Sequence[str], fetches: bool) -> str:
    """The megabytes of these models together, which a visitor downloads; the server may have to fetch them first."""
    page, assets = manifest.public["page"], manifest.public["assets"]
    files = {file for name in models for file in page["models"].get(name, ())}
    missing, late = _missing(manifest, models)
    if missing and not (fetches and missing <= set(page["late"])):
        return ABSENT
    known = {**studio.model_bytes, **{file: assets[file]["bytes"] for file in files & set(assets)}}
    if files <= set(known):
        return f"{sum(known[file] for file in files) / 1e6:.1f} MB"
    return f"at most {sum(page['packages'][name] for name in late)} MB"  # of whole packages


def _missing(manifest: Manifest, models: Sequence[str]) -> tuple[set[str], set[str]]:
    """The files of these models that the site lacks, and the packages that have some of them."""
    page = manifest.public["page"]
    missing = {file for name in models for file in page["models"].get(name, ())} - set(manifest.public["assets"])
    return missing, {page["late"][file] for file in missing if file in page["late"]}


def page_view(
    manifest: Manifest, studio: Studio, page: Page, views: Sequence[TaskView], rivals: str, data: Markup
) -> PageView:
    """The context of a page that is not a demo, with those of all demos and the site's island."""
    groups = dict[str, list[TaskView]]()
    for view in views:
        groups.setdefault(view.demo.group, []).append(view)
    frame = frame_of(manifest, studio, page.address)
    backends, models = manifest.public["page"]["backends"], json.dumps(_titles(studio.demos))
    return PageView(frame, page, groups, backends, rivals, wheel_of(manifest), models, data)


def _titles(demos: Iterable[Demo]) -> dict[str, tuple[str, str]]:
    """What the first demo of each model calls it: the demo's title, and the model's there or ""."""
    found = dict[str, tuple[str, str]]()
    for demo in demos:
        for name in filter(None, (*demo.models, demo.model, *demo.also)):
            found.setdefault(name, (demo.title, demo.titles.get(name, "")))
    return found


def wheel_of(manifest: Manifest) -> str:
    """The address of the wheel of users, whose name pip and micropip read the version from; "" on sites without."""
    return next((name.removeprefix("wheel") for name in manifest.urls if name.startswith("wheel/")), "")


def island(manifest: Manifest, settings: Settings) -> Markup:
    """The site's manifest as JSON that can stand inside a script element."""
    known = {name: fact for name, fact in manifest.public["page"].items() if name != "tasks"}  # the engine says it
    facts: dict[str, Any] = {**manifest.public, "page": known, "isolated": settings.isolated}
    text = json.dumps(facts, sort_keys=True)
    # Inside <script> only these could end the element or start a comment; in JSON they occur in strings only.
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


@dataclass(frozen=True)
class DocsView:
    """What docs.html may name."""

    frame: Frame
    sections: tuple[Section, ...]  # of the navigation
    page: DocsPage
    previous: DocsPage | None  # in the order of the navigation
    following: DocsPage | None


def docs_pages(manifest: Manifest, studio: Studio, sections: tuple[Section, ...]) -> list[DocsView]:
    """The contexts of all pages of the documentation."""
    pages = [page for section in sections for page in section.pages]
    around = zip([None, *pages], pages, [*pages[1:], None], strict=False)
    frame = frame_of(manifest, studio, "/docs")
    return [DocsView(frame, sections, page, before, after) for before, page, after in around]
