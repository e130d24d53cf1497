"""The messages between page and engine: one definition, generated files that are current, answers that keep to it."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.ops.case_graphs import run
from tests.tasks.photos import photo

from build_scripts.paths import STATIC, page_script
from build_scripts.site.messages import read_messages, stale_files
from webinfer import errors
from webinfer.backends import registry
from webinfer.errors import WebinferError
from webinfer.host import current
from webinfer.page.messages import FROM_ENGINE, TO_ENGINE, VERSION
from webinfer.page.worker import EngineWorker

GENERIC = [
    path
    for path in [
        *(path for path in STATIC.rglob("*.js") if path.parent.name != "results" and path.stem != "live_faces"),
        *Path(__file__).parents[2].glob("webinfer/page/*.*"),
    ]
    if path.is_file()
]
PYTHON_TYPES = {"text": str, "number": (int, float), "flag": bool, "list": list, "object": dict, "any": object}


def test_the_generated_files_are_current() -> None:
    assert not stale_files()
    assert read_messages()["version"] == VERSION


def test_both_sides_use_messages_that_there_are() -> None:
    names = ("engine_client", "engine_worker", "page_thread")
    client, worker, thread = (page_script(name).read_text() for name in names)
    sent = set(re.findall(r'\bpost\("(\w+)"', client)) | set(re.findall(r'v: VERSION, type: "(\w+)"', client))
    assert (
        sent
        == {"start", "detect", "select", "paint", "plan", "profile", "ping", "runCode", "threadFailed"}
        <= {*TO_ENGINE}
    )
    assert (
        set(re.findall(r'\bpost\("(\w+)"', worker + thread))
        == {"thread", "endThread", "alive", "error", "kept", "progress", "pong", "result"}
        <= {*FROM_ENGINE}
    )
    handlers = worker[worker.index("const HANDLERS") : worker.index("\n};", worker.index("const HANDLERS"))]
    assert {*re.findall(r"^  (\w+)[,:]", handlers, re.MULTILINE)} == {*TO_ENGINE} - {
        "ping",
        "runtime",
        "stop",
        "threadFailed",
    }
    assert {"ask", "stop"} == set(re.findall(r'#engine\.ask\("(\w+)"', page_script("engine_calls").read_text()))
    always, controller = {"progress", "error", "moving", "quiet", "restarting"}, {"started", "answer", "piece", "step"}
    heard = {name: _heard(page_script(name).read_text()) for name in ("page", "engine_page")}
    assert heard == {
        "page": {*FROM_ENGINE} - {"alive", "kept", "pong", "thread", "endThread"} - controller | always | {"started"},
        "engine_page": controller | always,
    }


def _heard(script: str) -> set[str]:
    """The messages that a page's script gives a function for."""
    table = re.search(r"new EngineClient\((.*?)\n( *)\}\);", script, re.DOTALL)
    assert table is not None
    return {*re.findall(rf"^{table[2]}  (\w+):", table[1], re.MULTILINE)}


@pytest.mark.parametrize("path", GENERIC, ids=lambda path: path.name)
def test_no_generic_file_names_a_task_s_results(path: Path) -> None:
    assert not re.search(r"\bfaces?\b|(?<!Hugging )Face|detector", path.read_text())


def test_the_page_has_a_title_for_every_error() -> None:
    page = page_script("troubles").read_text()
    table = page[page.index("const TITLES") : page.index("\n};")]
    titles = re.findall(r'^  "?([\w-]+)"?: "[^"]+",$', table, re.MULTILINE)
    assert len(titles) == len({*titles}) == table.count("\n")
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, WebinferError)]
    codes = {kind.code for kind in kinds if kind is not WebinferError}
    assert "integrity" in codes
    assert codes <= {*titles}
    texts = [path.read_text().replace(table, "") for path in GENERIC if path.stem != "messages"]
    sent = {code for text in texts for code in re.findall(r'\bcode(?: = |: |=)[^"\n]*"([\w-]+)"', text)}
    assert {"internal", "protocol", "engine-start"} <= sent
    assert sent - {*titles} == {"page"}  # an exception that nobody foresaw
    texts += [path.read_text() for path in (STATIC.parents[1] / "server").rglob("*.py")]
    assert [title for title in titles if title not in codes and not any(f'"{title}"' in text for text in texts)] == []


def fits(message: dict[str, Any]) -> None:
    declared = FROM_ENGINE[message["type"]]
    assert message["v"] == VERSION
    assert {*message} <= {"v", "type", *declared}
    for name, rule in declared.items():
        value = message.get(name)
        assert rule.endswith("?") if value is None else isinstance(value, PYTHON_TYPES[rule.removesuffix("?")]), name


def test_the_task_of_the_page_answers_as_declared() -> None:
    heard: list[dict[str, Any]] = []
    worker = EngineWorker(lambda text: heard.append(json.loads(text)))
    run(worker.start("face-detection", "blazeface_short_range", "wasm", "{}", 0, "{}"))
    run(worker.detect(7, photo("astronaut.png"), False))
    run(worker.detect(8, "no picture", False))
    worker.plan()
    run(worker.profile())
    run(worker.tune(1.0))
    worker.close()
    for message in heard:
        fits(message)
    ready, result = (next(m for m in heard if m["type"] == kind) for kind in ("ready", "result"))
    assert (result["id"], len(result["found"])) == (7, 1)
    assert {*result["found"][0]} == {field["name"] for field in ready["result"]["fields"]}
    assert (STATIC / "results" / f"{ready['result']['kind']}.js").is_file()
    kinds = [m["type"] for m in heard if m["type"] not in ("progress", "profiling")]
    assert kinds == ["ready", "result", "error", "plan", "profile", "error"]


def test_a_page_hears_which_backend_is_the_fastest_behind_its_first_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, auto in (("webgpu", False), ("reference", True)):
        monkeypatch.setitem(registry.ROWS, name, replace(registry.ROWS[name], auto=auto))
    monkeypatch.setattr(type(current()), "settles_later", True)
    heard: list[dict[str, Any]] = []
    worker = EngineWorker(lambda text: heard.append(json.loads(text)))

    async def visit() -> None:
        await worker.start("face-detection", "blazeface_short_range", "auto", "{}", 0, "{}")
        await worker.detect(1, photo("astronaut.png"), False)
        while heard[-1]["type"] != "settled":
            await asyncio.sleep(0.01)
        await worker.detect(2, photo("astronaut.png"), False)
        worker.close()

    run(visit())
    for message in heard:
        fits(message)
    told = [m for m in heard if m["type"] != "progress"]
    assert [(m["type"], m["backend"]) for m in told] == [
        ("ready", "reference"),
        ("result", "reference"),
        ("settled", "wasm"),
        ("result", "wasm"),
    ]
    assert "reference" in told[2]["reason"]
    assert [len(m["found"]) for m in told if m["type"] == "result"] == [1, 1]


@pytest.mark.parametrize("model", ["", "blazeface_short_range"])  # a page without a task opens its model by itself
def test_without_a_task_the_engine_starts_and_says_what_it_can_do(model: str) -> None:
    heard: list[dict[str, Any]] = []
    run(EngineWorker(lambda text: heard.append(json.loads(text))).start("", model, "auto", "{}", 0, "{}"))
    (started,) = heard
    fits(started)
    assert started["type"] == "started"
    assert started["capabilities"]


def test_an_unknown_model_ends_the_start_with_the_names_there_are() -> None:
    heard: list[dict[str, Any]] = []
    worker = EngineWorker(lambda text: heard.append(json.loads(text)))
    run(worker.start("face-detection", "nobody", "wasm", "{}", 0, json.dumps({"models/other.tflite": "/x"})))
    fits(heard[-1])
    assert (heard[-1]["code"], heard[-1]["fatal"]) == ("model-unknown", True)
    assert "blazeface_short_range" in heard[-1]["message"]
    assert "other" in heard[-1]["message"]
