"""The player runs compiled models in pages without Python: the engine's numbers, and words for trouble."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page

import webinfer
from build_scripts.judge.open_models import HEADS, WIDTH, decoder
from build_scripts.places.browsers import Firefox, WebKit
from build_scripts.site.player import SOURCE, write_player
from e2e_tests.beside import in_cpython
from e2e_tests.models import classifier, compiled
from webinfer.package import compile_model


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; addresses below /isolated/ are isolated."""

    isolated = False

    def end_headers(self) -> None:
        if self.isolated:
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


class Isolated(Handler):
    isolated = True


@pytest.fixture(scope="session")
def folder(photo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A static site: the player, its demo, a package and the sample photo."""
    place = write_player(tmp_path_factory.mktemp("player"))
    for file in (SOURCE / "demo").iterdir():
        shutil.copyfile(file, place / file.name)
    shutil.copyfile(photo, place / "photo.png")
    (place / "small.onnx").write_bytes(classifier())
    compiled("blazeface_short_range", "face-detector", place / "model.webinfer")
    compiled(str(place / "small.onnx"), "image-classifier", place / "small.webinfer")
    compiled(str(place / "small.onnx"), "image-classifier", place / "gpu_only.webinfer", "--backend", "webgpu")
    return place


@pytest.fixture(scope="session")
def site(folder: Path) -> Iterator[str]:
    """The address of a static host."""
    yield from _served(folder, Handler)


@pytest.fixture(scope="session")
def isolated_site(folder: Path) -> Iterator[str]:
    """The address of a static host that isolates its pages."""
    yield from _served(folder, Isolated)


def _served(folder: Path, handler: type[Handler]) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def wanted(photo: Path) -> Any:
    """What the engine finds."""

    async def faces() -> Any:
        with await webinfer.tasks.FaceDetector.create(backend="wasm") as detector:
            return await detector.detect(Image.open(photo))

    return in_cpython(faces())


def shown(page: Page, address: str) -> Any:
    """What the demo page tells when it has a result or a problem."""
    page.goto(address)
    page.wait_for_function("globalThis.result ?? globalThis.problem")
    return page.evaluate("globalThis.problem ?? globalThis.result")


def check(found: Any, wanted: Any, tolerance: float) -> None:
    assert len(found["found"]) == len(wanted) == 1
    face, want = found["found"][0], wanted[0]
    for side in ("left", "top", "width", "height"):
        assert abs(face["box"][side] - getattr(want.box, side)) <= tolerance
    assert abs(face["score"] - want.score) < 1e-3
    assert set(face["keypoints"]) == set(want.keypoints)
    for name, point in want.keypoints.items():
        assert max(abs(a - b) for a, b in zip(face["keypoints"][name], point, strict=True)) <= tolerance


def test_faces_are_those_that_the_engine_finds_on_wasm(page: Page, site: str, wanted: Any) -> None:
    found = shown(page, f"{site}/index.html?backend=wasm")
    assert (found["backend"], found["threads"]) == ("wasm", 1)
    check(found, wanted, 1e-3)


def test_the_memory_of_an_earlier_runs_outputs_is_used_again_where_that_is_asked_for(page: Page, site: str) -> None:
    page.goto(f"{site}/demo.css")
    found = page.evaluate("""async () => {
      const { load } = await import("./player.js");
      const told = [];
      for (const backend of ["wasm", "webgpu"]) {
        const model = await load("small.webinfer", { backend });
        const length = model.inputs[0].shape.reduce((product, size) => product * size, 1);
        const [x, y] = [0.1, 0.8].map((value) => new Float32Array(length).fill(value));
        const name = model.outputs[0].name;
        const first = await model.run(x);
        const before = Array.from(first[name].data);
        const own = await model.run(y);
        const over = await model.run(y, { into: first });
        const wrong = { [name]: { data: new Float32Array(first[name].data.length + 1) } };
        const error = await model.run(x, { into: wrong }).catch(({ code }) => code);
        const [old, fresh, again] = [first, own, over].map((outputs) => outputs[name].data);
        const same = again.buffer === old.buffer && fresh.buffer !== old.buffer;
        told.push([same, String(again) === String(fresh), String(before) === String(fresh), error]);
        model.close();
      }
      return told;
    }""")
    assert found == [[True, True, False, "input"]] * 2


def test_a_gpu_sees_what_the_processor_sees(page: Page, site: str) -> None:
    page.goto(f"{site}/demo.css")
    found = page.evaluate("""async () => {
      const { load } = await import("./player.js");
      const picture = await createImageBitmap(await (await fetch("photo.png")).blob());
      const told = {};
      const stages = new Set();
      for (const backend of ["wasm", "webgpu"]) {
        const model = await load("small.webinfer", { backend, onProgress: ({ stage }) => stages.add(stage) });
        told[model.backend] = (await model.run(picture)).sort((a, b) => a.index - b.index);
        model.close();
      }
      return { told, stages: [...stages] };
    }""")
    wasm, webgpu = (found["told"][name] for name in ("wasm", "webgpu"))
    assert [row["index"] for row in wasm] == [row["index"] for row in webgpu] == [0, 1, 2, 3]
    assert sum(row["score"] for row in webgpu) == pytest.approx(1, abs=1e-5)
    assert [row["score"] for row in webgpu] == pytest.approx([row["score"] for row in wasm], abs=1e-3)
    assert found["stages"] == ["download", "shaders"]


def test_threads_are_used_where_the_page_is_isolated(page: Page, isolated_site: str, wanted: Any) -> None:
    found = shown(page, f"{isolated_site}/index.html?backend=wasm&threads=2")
    assert (found["backend"], found["threads"]) == ("wasm", 2)
    check(found, wanted, 1e-3)


def test_one_thread_does_it_where_the_page_is_not_isolated(page: Page, site: str, wanted: Any) -> None:
    found = shown(page, f"{site}/index.html?backend=wasm&threads=2")
    assert found["threads"] == 1
    assert "not cross-origin isolated" in found["choice"]
    check(found, wanted, 1e-3)


def test_a_lost_gpu_is_replaced_once_and_then_the_processor_goes_on(page: Page, site: str) -> None:
    page.goto(f"{site}/demo.css")
    found = page.evaluate("""async () => {
      const { load } = await import("./player.js");
      const picture = await createImageBitmap(await (await fetch("photo.png")).blob());
      const lost = [], told = [];
      const model = await load("small.webinfer", { backend: "webgpu", onLost: (reason) => lost.push(reason) });
      for (let round = 0; round < 3; round++) {
        const [best] = await model.run(picture);
        told.push([model.backend, best.index, best.score]);
        const gpu = model.plan.device?.gpu;
        gpu?.destroy();
        await gpu?.lost; // the model heard of it first
      }
      model.close();
      return { told, lost, choice: model.choice };
    }""")
    assert [row[0] for row in found["told"]] == ["webgpu", "webgpu", "wasm"]
    assert len({row[1] for row in found["told"]}) == 1
    assert [row[2] for row in found["told"]] == pytest.approx([found["told"][0][2]] * 3, abs=1e-3)
    assert len(found["lost"]) == 2
    assert "was lost" in found["choice"]


def test_a_package_without_kernels_says_that_its_gpu_was_lost(page: Page, site: str) -> None:
    page.goto(f"{site}/demo.css")
    found = page.evaluate("""async () => {
      const { load } = await import("./player.js");
      const numbers = new Float32Array(3 * 16 * 16).fill(0.5);
      const told = [];
      const model = await load("gpu_only.webinfer", { backend: ["wasm", "webgpu"] });
      told.push(model.choice);
      for (let round = 0; round < 4; round++) {
        const failed = ({ code, message }) => told.push([code, message]);
        await model.run(numbers).then(() => told.push(model.backend), failed);
        const gpu = model.plan.device?.gpu;
        gpu?.destroy();
        await gpu?.lost; // the model heard of it first
      }
      model.close();
      const alone = await load("gpu_only.webinfer", { backend: "wasm" }).catch(({ code, message }) => [code, message]);
      return { told, alone };
    }""")
    assert found["told"][0] == "webgpu was asked for; not wasm: the package is not for it"
    assert found["told"][1:3] == ["webgpu", "webgpu"]
    for code, message in found["told"][3:]:
        assert (code, "the GPU was lost" in message, "--backend wasm,webgpu" in message) == ("device-lost", True, True)
    assert found["alone"] == ["unavailable", "package small is not for wasm"]


def test_tensors_and_pictures_of_every_kind_go_in(page: Page, site: str) -> None:
    page.goto(f"{site}/demo.css")
    found = page.evaluate("""async () => {
      const { load, capabilities } = await import("./player.js");
      const blob = await (await fetch("photo.png")).blob();
      const bitmap = await createImageBitmap(blob);
      const image = Object.assign(new Image(), { src: "photo.png" });
      await image.decode();
      const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
      const context = canvas.getContext("2d");
      context.drawImage(bitmap, 0, 0);
      const pixels = context.getImageData(0, 0, bitmap.width, bitmap.height);
      const frame = new VideoFrame(bitmap, { timestamp: 0 });
      const scores = {};
      const stages = new Set();
      for (const worker of [false, true]) {
        const onProgress = ({ stage }) => stages.add(stage);
        const model = await load("model.webinfer", { backend: "wasm", worker, onProgress });
        const all = { bitmap, image, canvas, pixels, frame };
        for (const name in all) scores[`${name} ${worker}`] = (await model.run(all[name]))[0].score;
        const tensors = await model.run({ input: new Float32Array(128 * 128 * 3), min_score: [0.5] });
        scores[`tensors ${worker}`] = [tensors.detections.shape, tensors.detections.data.length];
        scores[`none ${worker}`] = (await model.run(bitmap, { min_score: 1 })).length;
        model.close();
      }
      return { scores, stages: [...stages], able: await capabilities() };
    }""")
    scores = found["scores"]
    pictures = [score for name, score in scores.items() if name.split()[0] not in ("tensors", "none")]
    assert len(pictures) == 10
    assert max(pictures) - min(pictures) < 0.02
    assert scores["tensors false"] == scores["tensors true"] == [[1, 100, 17], 1700]
    assert scores["none false"] == scores["none true"] == 0
    assert found["stages"] == ["download"]
    assert found["able"]["wasm"]


@pytest.mark.parametrize("name", ["firefox", "webkit"])
def test_other_browsers_find_what_the_engine_finds(
    name: str, request: pytest.FixtureRequest, site: str, wanted: Any
) -> None:
    browser: Firefox | WebKit = request.getfixturevalue(name)
    with browser.tab() as tab:
        tab.open(f"{site}/index.html?backend=wasm")
        found = tab.wait_for("result", lambda: tab.evaluate("globalThis.problem ?? globalThis.result ?? null"))
    assert found.get("backend") == "wasm", found
    check(found, wanted, 0.5)  # pictures are decoded by other code


TROUBLE = """async () => {
  const { load } = await import("./player.js");
  const whole = new Uint8Array(await (await fetch("model.webinfer")).arrayBuffer());
  const changed = (at) => whole.map((byte, i) => (i === at ? byte ^ 1 : byte));
  const codes = {};
  const tried = async (name, act) => {
    codes[name] = await act().then(() => "none", (error) => `${error.name} ${error.code}`);
  };
  await tried("empty", () => load(new Uint8Array(0)));
  await tried("other", () => load(new TextEncoder().encode("<html>".repeat(99))));
  await tried("version", () => load(changed(8)));
  await tried("header", () => load(changed(60)));
  await tried("weights", () => load(changed(whole.length / 3 | 0), { backend: "wasm" }));
  await tried("cut", () => load(whole.slice(0, whole.length / 2), { backend: "webgpu" }));
  await tried("nowhere", () => load("nowhere.webinfer"));
  await tried("backend", () => load(whole, { backend: "cuda" }));
  await tried("threads", () => load(whole, { threads: 0 }));
  const model = await load(whole, { backend: "wasm" });
  await tried("name", () => model.run({ picture: new Float32Array(3) }));
  await tried("length", () => model.run({ input: new Float32Array(3) }));
  await tried("missing", () => model.run({}));
  await tried("image", () => model.run(new Image()));
  await tried("number", () => model.run(new ImageData(4, 4), { scale: 2 }));
  await tried("well", () => model.run(new ImageData(4, 4)));
  model.close();
  await tried("closed", () => model.run(new ImageData(4, 4)));
  return codes;
}"""


def test_a_package_whose_sizes_are_open_runs_at_any_size(page: Page, isolated_site: str, folder: Path) -> None:
    shapes = [(1, 3, 16, 24), (1, 3, 33, 47), (1, 3, 18, 22)]
    (folder / "open.onnx").write_bytes(classifier("height", "width"))
    compiled(
        str(folder / "open.onnx"),
        "",
        folder / "open.webinfer",
        "--build",
        "simd128",
        "--sizes",
        "x=1x3x16x24",
        "--sizes",
        "x=1x3x33x47",
    )
    maps = [np.random.default_rng(4).random(shape, np.float32) for shape in shapes]

    async def answers() -> list[Any]:
        with await webinfer.load(folder / "open.onnx", backend="wasm") as session:
            return [(await session.run({"x": x}))["y"].numpy() for x in maps]

    wanted = in_cpython(answers())
    page.goto(f"{isolated_site}/demo.css")
    found = page.evaluate(
        """async (maps) => {
        const { load } = await import("./player.js");
        const results = [];
        const codes = [];
        for (const [backend, threads] of [["wasm", 1], ["wasm", 2], ["webgpu", 1]]) {
          const model = await load("open.webinfer", { backend, threads });
          for (const { data, shape } of maps) {
            const { y } = await model.run({ x: { data: Float32Array.from(data), shape } });
            results.push([...y.data]);
          }
          for (const x of [{ data: new Float32Array(12), shape: [1, 3, 2, 1, 2] }, new Float32Array(12)]) {
            await model.run({ x }).catch(({ code, message }) => codes.push([code, message]));
          }
          codes.push([model.threads, model.inputs[0].shape]);
          model.close();
        }
        return { results, codes };
      }""",
        [{"data": x.ravel().tolist(), "shape": list(x.shape)} for x in maps],
    )
    assert [code for code, _ in found["codes"]] == ["input", "input", 1, "input", "input", 2, "input", "input", 1]
    assert "{ data, shape }" in found["codes"][1][1]
    assert found["codes"][2][1] == [1, 3, "height", "width"]
    for got, want in zip(found["results"], 3 * wanted, strict=True):
        np.testing.assert_allclose(got, want.ravel(), atol=1e-5)  # another build of the kernels, another order of sums


def test_a_decoder_begins_from_an_empty_past(page: Page, isolated_site: str, folder: Path) -> None:
    """What a run gives out as its past's next value goes into the next one; the first has none."""
    (folder / "decoder.onnx").write_bytes(decoder())
    compiled(str(folder / "decoder.onnx"), "", folder / "decoder.webinfer", "--build", "simd128")
    turns = [[7, 3, 12], [5], [1], [9, 9, 40, 2], [11]]

    async def answers() -> list[Any]:
        with await webinfer.load(folder / "decoder.onnx", backend="wasm", threads=1) as session:
            past = {info.name: np.zeros((1, HEADS, 0, WIDTH // HEADS), "f4") for info in session.inputs[1:]}
            found = []
            for ids in turns:
                outputs = await session.run({"ids": np.array([ids]), **past})
                past = {name: outputs[name.replace("past", "next")].numpy() for name in past}
                found.append(outputs["logits"].numpy())
            return found

    wanted = in_cpython(answers())
    page.goto(f"{isolated_site}/demo.css")
    found = page.evaluate(
        """async ([turns, empty]) => {
        const { load } = await import("./player.js");
        const results = [];
        for (const backend of ["wasm", "webgpu"]) {
          const model = await load("decoder.webinfer", { backend });
          const names = model.inputs.map(({ name }) => name).filter((name) => name !== "ids");
          let past = Object.fromEntries(names.map((name) => [name, { data: new Float32Array(0), shape: empty }]));
          for (const ids of turns) {
            const given = { data: BigInt64Array.from(ids, BigInt), shape: [1, ids.length] };
            const outputs = await model.run({ ids: given, ...past });
            past = Object.fromEntries(names.map((name) => [name, outputs[name.replace("past", "next")]]));
            results.push([...outputs.logits.data]);
          }
          model.close();
        }
        return results;
      }""",
        [turns, [1, HEADS, 0, WIDTH // HEADS]],
    )
    for got, want in zip(found, 2 * wanted, strict=True):
        np.testing.assert_allclose(got, want.ravel(), atol=1e-5)


def test_what_goes_wrong_has_a_code(page: Page, site: str) -> None:
    page.goto(f"{site}/demo.css")
    codes = page.evaluate(TROUBLE)
    assert codes.pop("well") == "none"
    wanted = {
        "empty": "package", "other": "package", "version": "package", "header": "integrity", "weights": "integrity",
        "cut": "integrity", "nowhere": "network", "backend": "input", "threads": "input", "name": "input",
        "length": "input", "missing": "input", "image": "input", "number": "input", "closed": "closed",
    }  # fmt: skip
    assert codes == {name: f"PlayerError {code}" for name, code in wanted.items()}


LANDMARKS = """
async () => {
  const { load } = await import("/player.js");
  const picture = await createImageBitmap(await (await fetch("/photo.png")).blob());
  const found = [];
  for (const worker of [false, true]) {
    const model = await load("/landmarks.webinfer", { backend: "wasm", worker });
    found.push(await model.run(picture));
    for (const time of [0, 33, 66]) found.push(await model.track(picture, time));
    await model.reset();
    model.close();
  }
  return found;
}
"""


def test_a_package_of_two_models_runs_on_the_page_and_in_a_worker(
    page: Page, site: str, folder: Path, photo: Path
) -> None:
    compiled("face_mesh", "face-landmarker", folder / "landmarks.webinfer", "--backend", "wasm", "--build", "simd128")

    async def faces() -> Any:
        with await webinfer.tasks.FaceLandmarker.create("face_mesh", backend="wasm") as landmarker:
            film = [await landmarker.detect_for_video(Image.open(photo), time) for time in (0, 33, 66)]
            return [await landmarker.detect(Image.open(photo)), *film]

    faces_of_each = in_cpython(faces())
    page.goto(f"{site}/package.json")
    for (found,), (wanted,) in zip(page.evaluate(LANDMARKS), 2 * faces_of_each, strict=True):
        assert found.get("id") == wanted.id
        points = [[point[axis] for axis in "xyz"] for point in found["landmarks"]]
        np.testing.assert_allclose(np.ravel(points), wanted.landmarks.xyz, atol=0.1)
        assert found["score"] == pytest.approx(wanted.score, abs=1e-3)


def test_the_page_of_a_package_for_texts_asks_for_a_text(page: Page, site: str) -> None:
    builder, length, pieces = webinfer.GraphBuilder("encoder"), 8, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad"]
    ids, mask = (builder.input(name, (1, length), "int32") for name in ("input_ids", "attention_mask"))
    table = builder.constant([0.0, 0.0] * 4 + [2.0, 0.0, 0.0, 2.0], (len(pieces), 2))
    hidden = builder.node("gather", table, builder.node("reshape", ids, shape=(length,)), axis=0)
    builder.output(builder.node("matmul", builder.node("cast", mask, dtype="float32"), hidden), "logits")
    options = {"vocabulary": pieces, "labels": ["praise", "blame"]}
    package = in_cpython(
        compile_model(
            builder, backend="wasm", builds=("simd128",), threads=False, task="text-classifier", task_options=options
        )
    )
    page.route("**/model.webinfer", lambda route: route.fulfill(body=package))
    page.goto(f"{site}/index.html?backend=wasm")
    page.get_by_label("Text").fill("bad, bad")
    page.get_by_label("Text").press("Enter")
    page.wait_for_function("globalThis.result ?? globalThis.problem")
    assert page.locator("#found li").all_inner_texts() == ["98 %, blame", "2 %, praise"]
    assert page.locator("#pictures").is_hidden()
