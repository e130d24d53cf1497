"""The player in production builds of Vite, webpack and esbuild, and imported by Node: as apps use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from build_scripts.setup.node import BUNDLERS, node_commands
from build_scripts.site.player import write_player
from e2e_tests.models import classifier, compiled
from e2e_tests.static_host import served

BUILDS = ("vite", "webpack", "esbuild-esm", "esbuild-iife")
APP = """
import { capabilities, load } from "webinfer-player";

globalThis.starts = (globalThis.starts ?? 0) + 1;
globalThis.tried = async (options) => {
  const canvas = new OffscreenCanvas(16, 16);
  canvas.getContext("2d").fillRect(0, 0, 8, 8);
  const model = await load("model.webinfer", { backend: "wasm", ...options });
  const found = await model.run(await createImageBitmap(canvas));
  const told = { threads: model.threads, choice: model.choice, found: found.length, remote: Boolean(model.worker) };
  model.close();
  return { ...told, able: (await capabilities()).wasm, starts: globalThis.starts };
};
"""
PAGE = '<!doctype html><title>app</title><link rel="icon" href="data:,"><script type="module" src="./main.js"></script>'
TYPED = """
import { type Detection, load, type Model, PlayerError, type Tensor } from "webinfer-player";

const model: Model = await load("faces.webinfer", { backend: ["webgpu", "wasm"], threads: 2, workerUrl: "worker.js" });
const faces: Detection[] = await model.run<Detection>(new ImageData(1, 1), { min_score: 0.5 });
const outputs: Record<string, Tensor> = await model.run({ x: new Float32Array(4) });
await model.run(new Float32Array(4), { into: outputs });
const problem: PlayerError = new PlayerError("input", "no picture");
if (problem.code === "input") console.log(faces[0]?.box.left, model.threads);
// @ts-expect-error: there is no such backend
await load("faces.webinfer", { backend: "cuda" });
"""
IN_NODE = """
for (const name of ["navigator", "crypto"]) delete globalThis[name]; // as in Node 18
const { capabilities, load } = await import("webinfer-player");
const codes = {};
const tried = async (name, ...given) => {
  codes[name] = await load(...given).then(() => "loads", (error) => `${error.name} ${error.code}`);
};
const { readFileSync } = await import("node:fs");
const bytes = readFileSync(process.argv[1]);
for (const [name, options] of [["default", {}], ["threads", { threads: 2 }], ["wasm", { backend: "wasm" }]]) {
  await tried(name, bytes, options);
}
await tried("worker", bytes, { worker: true });
await tried("webgpu", bytes, { backend: "webgpu" });
await tried("address", "/nowhere.webinfer");
await tried("nothing", undefined);
await tried("options", bytes, { backend: Symbol("x") });
const model = await load(bytes, { threads: 2 });
const outputs = await model.run(new Float32Array(3 * 16 * 16));
console.log(JSON.stringify({ codes, able: await capabilities(), outputs: Object.keys(outputs), choice: model.choice }));
model.close();
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An app that has the player from npm, and a compiled model."""
    folder = tmp_path_factory.mktemp("app")
    write_player(folder / "node_modules" / "webinfer-player")
    (folder / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
    (folder / "main.js").write_text(APP)
    (folder / "index.html").write_text(PAGE)
    (folder / "small.onnx").write_bytes(classifier())
    compiled(str(folder / "small.onnx"), "image-classifier", folder / "model.webinfer", "--backend", "wasm")
    return folder


@pytest.fixture(scope="module")
def site(app: Path) -> Iterator[str]:
    """The address of an isolated host of the app's builds."""
    if missing := [name for name in ("vite", "webpack", "esbuild") if not (BUNDLERS / "node_modules" / name).is_dir()]:
        _skip(f"npm has not installed {', '.join(missing)}: python3 -m build_scripts test")
    _node(str(BUNDLERS / "build.mjs"), str(app))
    for build in BUILDS:
        shutil.copyfile(app / "model.webinfer", app / build / "model.webinfer")
    shutil.rmtree(app / "node_modules" / ".vite", ignore_errors=True)
    with served(app, isolated=True) as address:
        yield address


def _skip(why: str) -> None:
    if os.environ.get("WEBINFER_CI") == "1":
        pytest.fail(why)
    pytest.skip(why)


def _node(*arguments: str, cwd: Path | None = None, limit: float = 120) -> str:
    command = [next(node_commands()), *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tried(page: Page, address: str, options: dict[str, Any]) -> Any:
    """What a build of the app tells of one load and run."""
    page.goto(address)
    page.wait_for_function("globalThis.tried")
    return page.evaluate("(options) => tried(options).catch(({ code, message }) => ({ code, message }))", options)


@pytest.mark.parametrize("build", BUILDS)
def test_a_bundled_player_runs_on_the_page_in_a_worker_and_with_threads(build: str, page: Page, site: str) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{site}/{build}/")
    for options, threads in (({}, 1), ({"worker": True}, 1), ({"threads": 2}, 2)):
        found = tried(page, f"{site}/{build}/", options)
        assert found == {
            "threads": threads, "choice": "wasm was asked for", "found": 4, "remote": bool(options), "able": True,
            "starts": 1,
        }  # fmt: skip
    assert not errors


def test_an_app_below_a_policy_that_refuses_the_worker_hears_why(page: Page, app: Path, site: str) -> None:
    with served(app, isolated=True, headers={"Content-Security-Policy": "worker-src 'none'"}) as address:
        found = tried(page, f"{address}/esbuild-iife/", {"worker": True})
    assert found["code"] == "unavailable", found
    assert "workerUrl" in found["message"]


def test_an_address_of_the_worker_can_be_given(page: Page, app: Path, site: str) -> None:
    shutil.copyfile(app / "node_modules/webinfer-player/player_worker.js", app / "esbuild-esm/other.js")
    found = tried(page, f"{site}/esbuild-esm/", {"threads": 2, "workerUrl": "other.js"})
    assert found["threads"] == 2, found
    found = tried(page, f"{site}/esbuild-esm/", {"worker": True, "workerUrl": "nowhere.js"})
    assert found["code"] == "unavailable", found


def test_node_imports_the_player_runs_a_model_and_ends(app: Path) -> None:
    told = json.loads(_node("--input-type=module", "-e", IN_NODE, str(app / "model.webinfer"), cwd=app, limit=20))
    unavailable = "PlayerError unavailable"
    assert told["codes"] == {
        "default": "loads", "threads": "loads", "wasm": "loads", "worker": unavailable, "webgpu": unavailable,
        "address": "PlayerError network", "nothing": "PlayerError input", "options": "PlayerError input",
    }  # fmt: skip
    assert told["able"]["wasm"]
    assert not told["able"]["webgpu"]
    assert len(told["outputs"]) == 2, told
    assert "one thread" in told["choice"]


def test_types_say_what_the_player_takes(app: Path) -> None:
    compiler = BUNDLERS / "node_modules" / "typescript" / "lib" / "tsc.js"
    if not compiler.is_file():
        _skip("npm has not installed typescript: python3 -m build_scripts test")
    (app / "typed.mts").write_text(TYPED)
    options = "--noEmit --strict --lib es2022,dom --target es2022 --module nodenext"
    _node(str(compiler), *options.split(), str(app / "typed.mts"), cwd=app)
