"""The player's words on how it runs, and its calls to a model in a worker: in Node, with a worker of the test's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from build_scripts.site.player import SOURCE
from build_scripts.tests.in_node import answer_of, node
from build_scripts.tests.test_player_hostile import package, sealed
from webinfer.package.container import Package

__all__ = ["node", "package"]  # fixtures
SRC = SOURCE / "src"
CHOICES = """
import { readFileSync } from "node:fs";
const [player, file] = process.argv.slice(2);
const { load } = await import(player);
const bytes = readFileSync(file);
const found = [];
for (const options of JSON.parse(process.argv[4])) {
  try {
    const model = await load(new Uint8Array(bytes), options);
    found.push([model.backend, model.threads, model.choice]);
    model.close();
  } catch (error) {
    found.push([error.name, error.code, error.message]);
  }
}
process.stdout.write(JSON.stringify(found));
"""
CALLS = """
const [remote, errors] = process.argv.slice(2);
const { RemoteModel, serve } = await import(remote);
const { PlayerError } = await import(errors);
const heard = [], sent = [];
class Here { // a worker whose script answers in this thread, the later call first
  onmessage = null;
  held = [];
  postMessage(data) {
    sent.push([data.id, data.method]);
    if (data.method === "load") return serve_.onmessage({ data });
    this.held.push(data);
    if (this.held.length === 2) for (const one of this.held.reverse()) serve_.onmessage({ data: one });
  }
  terminate() { heard.push(["terminated"]); }
}
const serve_ = globalThis.self = { postMessage: (data) => setTimeout(() => worker.onmessage?.({ data })) };
const model = { name: "m", task: "", inputs: [1], outputs: [2], backend: "wasm", threads: 1, choice: "c" };
model.run = async (given) => {
  if (given === "bad") throw new PlayerError("input", "no such input");
  if (given === "broken") throw new TypeError("a fault");
  if (given === "lost") { options_.onLost("gone"); model.backend = "other"; }
  return [given];
};
let options_ = null;
serve((bytes, options) => {
  options_ = options;
  options.onProgress({ stage: "weights", done: 1, total: 2 });
  return model;
});
const worker = new Here();
const greeting = () => {
  setTimeout(() => worker.onmessage({ data: "webinfer-player" }));
  return worker;
};
const told = { onProgress: (value) => heard.push(["progress", value]), onLost: (value) => heard.push(["lost", value]) };
const one = await RemoteModel.open([greeting], new Uint8Array(4), { ...told, backend: "wasm", threads: 2 });
const asked = { backend: options_.backend, threads: options_.threads };
const facts = [one.name, one.inputs, one.outputs, one.backend, one.threads, one.choice];
const pair = async (...given) => {
  worker.held = [];
  const calls = await Promise.allSettled(given.map((value) => one.call("run", [value], [])));
  return calls.map(({ value, reason }) => value ?? [reason.name, reason.code, reason.message]);
};
const both = [await pair("a", "b"), await pair("bad", "broken"), await pair("lost", "c")];
const after = one.backend;
worker.held = [];
const open = [one.call("run", ["x"], [])];
worker.onerror({ message: "out of memory" });
const last = await Promise.allSettled([...open, one.call("run", ["y"], [])]);
const ended = last.map(({ reason }) => [reason.name, reason.code, reason.message]);
const distinct = new Set(sent.map(([id]) => id)).size === sent.length;
process.stdout.write(JSON.stringify({ asked, facts, both, after, ended, heard, distinct }));
"""


def said(node: str, tmp_path: Path, text: str, *arguments: str) -> Any:
    """What a module that was given these arguments prints."""
    (tmp_path / "said.mjs").write_text(text)
    return answer_of([node, tmp_path / "said.mjs", *arguments])


def test_the_choice_says_what_was_asked_for_and_why_another_runs(node: str, package: Package, tmp_path: Path) -> None:
    (tmp_path / "both.webinfer").write_bytes(sealed(package))
    gpu_alone = {key: value for key, value in package.header.items() if key != "wasm"}
    (tmp_path / "gpu.webinfer").write_bytes(sealed(package, header=gpu_alone))
    options = [
        {"backend": "wasm"}, {"backend": "auto"}, {"backend": ["webgpu", "wasm"]}, {"backend": "wasm", "threads": 2},
        {"backend": "webgpu"},
    ]  # fmt: skip
    arguments = (SRC / "player.js").as_uri(), str(tmp_path / "both.webinfer"), json.dumps(options)
    named, auto, listed, threaded, refused = said(node, tmp_path, CHOICES, *arguments)
    assert named == ["wasm", 1, "wasm was asked for"]
    assert auto[:2] == ["wasm", 1]
    assert auto[2].startswith("wasm; not webgpu: "), "auto asks for nothing"
    assert listed[2].startswith("wasm was asked for; not webgpu: ")
    assert threaded[:2] == ["wasm", 1]
    assert threaded[2].startswith("wasm was asked for; one thread: ")
    assert refused[:2] == ["PlayerError", "unavailable"]
    arguments = (SRC / "player.js").as_uri(), str(tmp_path / "gpu.webinfer"), json.dumps([{"backend": "wasm"}])
    (gone,) = said(node, tmp_path, CHOICES, *arguments)
    assert gone == ["PlayerError", "unavailable", "package small is not for wasm"]


def test_calls_to_a_worker_are_answered_each_by_its_own_and_none_is_left_waiting(node: str, tmp_path: Path) -> None:
    found = said(node, tmp_path, CALLS, (SRC / "remote.js").as_uri(), (SRC / "errors.js").as_uri())
    assert found["asked"] == {"backend": "wasm", "threads": 2}
    assert found["facts"] == ["m", [1], [2], "wasm", 1, "c"]
    assert found["both"] == [
        [["a"], ["b"]],
        [["PlayerError", "input", "no such input"], ["PlayerError", "kernel", "a fault"]],
        [["lost"], ["c"]],
    ]
    assert found["after"] == "other", "facts come with each answer"
    assert found["heard"] == [
        ["progress", {"stage": "weights", "done": 1, "total": 2}],
        ["lost", "gone"],
        ["terminated"],
    ]
    assert found["distinct"]
    assert found["ended"] == [
        ["PlayerError", "unavailable", "the player's worker failed: out of memory"],
        ["PlayerError", "closed", "this package is closed; load it again"],
    ]
