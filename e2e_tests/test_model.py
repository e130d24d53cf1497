"""The page "Your model": files of every format dropped, what it says of them, runs, checks, and what it survives."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from tests.page.model_files import damaged, image, onnx, open_onnx, tfjs, tflite, unsupported

from e2e_tests.pages import LIMIT_S, DemoPage

Demo = Callable[..., DemoPage]
DROP = """(files) => {
  const data = new DataTransfer();
  for (const [name, base64] of Object.entries(files)) {
    data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name));
  }
  for (const kind of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: data }));
  }
}"""


class ModelPage:
    """The page with its engine running."""

    def __init__(self, page: DemoPage) -> None:
        self.demo, self.page = page, page.page
        page.wait_for("engine", lambda: self.page.locator("#loading").is_hidden())

    def said(self) -> dict[str, Any]:
        """What the page says of the model."""
        return self.demo._dataset("webinferModel") or {}

    def drop(self, **files: bytes) -> None:
        """Drops files; the dots of their names are written as two underscores."""
        coded = {name.replace("__", "."): base64.b64encode(data).decode() for name, data in files.items()}
        self.page.evaluate(DROP, coded)

    def compiled(self, name: str) -> dict[str, Any]:
        """What is said of the model of this name once it is compiled for both backends."""

        def ask() -> dict[str, Any] | None:
            said = self.said()
            return said if said.get("name") == name and len(said.get("plans", {})) == 2 else None

        found: dict[str, Any] = self.demo.wait_for(f"plans of {name}", ask)
        return found

    def press(self, name: str, answer: str) -> dict[str, Any]:
        """Presses a button and waits for what the page says of its work."""
        self.page.get_by_role("button", name=name, exact=True).click()
        found: dict[str, Any] = self.demo.wait_for(answer, lambda: self.said().get(answer))
        return found

    def text(self, selector: str) -> str:
        """The text of an element, shown or not."""
        return self.page.locator(selector).text_content() or ""


def of_litert() -> np.ndarray[Any, Any]:
    """What LiteRT makes of the model and its image."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=tflite())
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image())
    interpreter.invoke()
    found: np.ndarray[Any, Any] = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return found


@pytest.fixture
def model(demo: Demo) -> ModelPage:
    """The page without a model."""
    return ModelPage(demo("?backend=wasm", path="/model"))


def test_files_of_every_format_are_dropped_looked_into_and_run_right(model: ModelPage, tmp_path: Path) -> None:
    want = of_litert()
    np.save(tmp_path / "image.npy", image())
    model.drop(net__tflite=tflite())
    assert model.compiled("net.tflite")["format"] == "TensorFlow Lite"
    model.demo.wait_for("graph", lambda: model.demo._dataset("webinferGraph"))
    model.page.locator("#inputs select").first.select_option("npy")
    model.page.locator("#inputs input[type=file]").set_input_files(tmp_path / "image.npy")
    model.demo.wait_for("file", lambda: "image.npy" in model.text("#inputs"))
    ran = model.press("Run", "ran")
    assert ran["outputs"] == [{"name": "y", "dtype": "float32", "shape": list(want.shape)}]
    with model.page.expect_download() as download:
        model.page.get_by_role("button", name="Download .npy").click()
    got = np.load(io.BytesIO(Path(download.value.path()).read_bytes()))
    np.testing.assert_allclose(got, want, atol=1e-5)
    told = model.press("Compare the backends", "verified")
    assert told["ok"]
    assert told["compared"] >= 2
    assert model.press("Measure each node", "profiled")["steps"] == 1  # the reshape has none
    assert model.page.locator("#legend").is_visible()

    model.drop(net__onnx=onnx())
    assert model.compiled("net.onnx")["format"] == "ONNX"
    assert model.press("Run", "ran")["outputs"][0]["shape"] == [1, 5]
    model.drop(**tfjs())
    assert model.compiled("model.json")["format"] == "TensorFlow.js"
    model.page.get_by_role("radio", name="WebGPU").check(force=True)
    assert model.press("Run", "ran")["backend"] == "webgpu"


def test_the_graph_of_the_file_is_there_before_anything_is_compiled(model: ModelPage) -> None:
    model.page.evaluate(
        """() => {
          globalThis.early = null;
          new MutationObserver(() => {
            const rows = document.querySelectorAll("#plans .present, #plans .absent").length;
            if (document.documentElement.dataset.webinferGraph && early === null) early = rows;
          }).observe(document.documentElement, { attributes: true });
        }"""
    )
    model.drop(net__tflite=tflite())
    model.compiled("net.tflite")
    assert model.page.evaluate("early") == 0  # no backend had said anything yet
    model.demo.wait_for("graph", lambda: model.demo._dataset("webinferGraph"))
    assert model.page.locator("#views input[value=run]").is_checked()


COVERED = """(names) => names.filter((name) => {
  const button = [...document.querySelectorAll("#run-box button")].find((one) => one.textContent.trim() === name);
  button.scrollIntoView({ block: "center" });
  const { x, y, width, height } = button.getBoundingClientRect();
  return !button.contains(document.elementFromPoint(x + width / 2, y + height / 2));
})"""


def test_nodes_are_searched_for_and_told_about(model: ModelPage) -> None:
    model.drop(net__tflite=tflite())
    model.compiled("net.tflite")
    model.demo.wait_for("graph", lambda: model.demo._dataset("webinferGraph"))
    model.page.locator("#search").fill("conv")
    assert model.text("#search-count") == "1 node"
    model.page.keyboard.press("Enter")
    assert model.text("#node-title") == "conv2d"
    details = model.text("#node")
    assert "f32_conv2d" in details  # the kernel of one backend
    assert "WebGPU" in details
    assert "RELU" in details  # the operator of the file that the step ends with
    assert "node=0" in model.page.url
    model.page.get_by_role("button", name="Values of").first.click()
    model.page.locator("#weights .histogram").wait_for()
    weights = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 2, 2, 2)  # of `tflite()`
    assert f"{list(weights.shape)}, {weights.size} elements" in model.text("#weights")
    with model.page.expect_download() as download:
        model.page.locator("#weights").get_by_role("button", name="Download .npy").click()
    np.testing.assert_array_equal(np.load(download.value.path()), weights)
    for kind in ("SVG", "PNG"):
        with model.page.expect_download() as download:
            model.page.get_by_role("button", name=kind, exact=True).click()
        picture = Path(download.value.path()).read_bytes()
        if kind == "SVG":
            texts = [text.text for text in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
            assert {"conv2d", "reshape"} <= set(texts)
        else:
            assert min(Image.open(io.BytesIO(picture)).size) > 100
    model.page.get_by_role("radio", name="List").check(force=True)
    assert model.page.locator("#list-body tr").count() == 1
    model.page.locator("#search").fill("")
    model.page.get_by_role("radio", name="As in the file").check(force=True)
    names = model.page.locator("#list-body th").all_text_contents()
    assert names == ["CONV_2D", "RELU", "RESHAPE"]
    for width, height in ((1280, 800), (1280, 900), (1366, 768), (1440, 900)):  # laptops, where the graph lay over them
        model.page.set_viewport_size({"width": width, "height": height})
        assert model.page.evaluate(COVERED, ["Run", "Measure each node", "Compare the backends"]) == []
    model.page.locator("#list-body button").nth(1).click()
    assert "conv2d (node 0)" in model.text("#node")


def test_what_cannot_run_is_said_and_the_next_model_opens(model: ModelPage) -> None:
    model.drop(bad__tflite=damaged())
    error = model.demo.wait_for_error("model-format")
    assert "bad.tflite" in error["message"]
    model.drop(odd__tflite=unsupported())
    model.compiled("odd.tflite")
    assert "LSH_PROJECTION: not supported" in model.demo.wait_for("error", lambda: model.demo.error)["message"]
    assert "LSH_PROJECTION: not supported" in model.text("#plans")
    assert "Unsupported" not in model.text("#node")
    model.page.locator("#search").fill("lsh")
    model.page.keyboard.press("Enter")
    assert "LSH_PROJECTION: not supported" in model.text("#node")  # what it is, is shown all the same
    model.drop(open__onnx=open_onnx())
    model.demo.wait_for("sizes", lambda: model.page.locator("#shapes input").count() == 1)
    assert model.demo.error is None
    model.page.locator("#shapes input").fill("7")
    model.page.get_by_role("button", name="Compile").click()
    assert model.compiled("open.onnx")["plans"].keys() == {"wasm", "webgpu"}
    model.demo.wait_for("inputs", lambda: model.page.locator("#run-box").is_visible())
    assert model.press("Run", "ran")["outputs"][0]["shape"] == [7, 3]


def test_the_graph_is_walked_by_keyboard_and_fits_a_phone(demo: Demo) -> None:
    page = ModelPage(demo("?backend=wasm", path="/model", viewport={"width": 360, "height": 780}))
    page.drop(net__tflite=tflite())
    page.compiled("net.tflite")
    page.demo.wait_for("graph", lambda: page.demo._dataset("webinferGraph"))
    assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.page.locator("#graph").focus()
    said = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.page.keyboard.press(key)
        said.append(page.text("#said"))
    assert said[0].startswith("input")
    assert said[1] == "conv2d, float32[1x4x4x3], node 0 of 2"
    assert said[3] == said[1] != said[2]
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.activeElement.id") == "node-box"


class OtherSite(BaseHTTPRequestHandler):
    """A site that lets others read its files, except those below /closed; /slow never ends."""

    files: ClassVar[dict[str, bytes]] = {}
    end: ClassVar[Event]

    def do_GET(self) -> None:
        data = self.files.get(self.path.rpartition("/")[2])
        self.send_response(200 if data else 404)
        if not self.path.startswith("/closed"):
            self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Type", "text/html" if self.path.endswith("page") else "application/octet-stream")
        self.send_header("Content-Length", str(len(data or b"") + (100 if self.path.startswith("/slow") else 0)))
        self.end_headers()
        self.wfile.write(data or b"")
        if self.path.startswith("/slow"):
            self.wfile.flush()
            self.end.wait(LIMIT_S)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def other_site() -> Iterator[str]:
    """The address of another site that has models."""
    weights = np.linspace(-1, 1, 24, dtype=np.float32)
    changed = tflite().replace(weights[12].tobytes(), np.float32(0.5).tobytes())
    assert changed != tflite()
    OtherSite.files = {"net.tflite": tflite(), "changed.tflite": changed, "net.onnx": onnx(), "page": b"<p>", **tfjs()}
    OtherSite.end = Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), OtherSite)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    OtherSite.end.set()
    server.shutdown()


def test_a_model_is_opened_by_its_address_and_by_link(demo: Demo, other_site: str) -> None:
    page = ModelPage(demo(f"?backend=wasm&url={other_site}/model.json", path="/model"))
    assert page.compiled("model.json")["format"] == "TensorFlow.js"  # its weights were fetched, too
    assert page.page.locator("#arriving").is_hidden()
    page.page.locator("#address").fill(f"{other_site}/net.tflite")
    page.page.locator("#address").press("Enter")
    assert page.compiled("net.tflite")["format"] == "TensorFlow Lite"
    assert "net.tflite" in page.page.url
    for address, code, words in (
        ("nonsense", "address", "hf:owner/name/file"),
        ("http://models.example/a.onnx", "address", "https://"),
        (f"{other_site}/closed/net.tflite", "cross-origin", "Access-Control-Allow-Origin"),
        (f"{other_site}/absent.tflite", "model-missing", "404"),
        (f"{other_site}/page", "model-missing", "a web page"),
    ):
        page.page.locator("#address").fill(address)
        page.page.locator("#address").press("Enter")
        assert words in page.demo.wait_for_error(code)["message"]
        assert page.page.locator("#arriving").is_hidden()
    assert len(page.demo.complaints) == 3  # what the browser says of it: one line about CORS, two of answers
    page.demo.complaints.clear()
    page.page.locator("#address").fill(f"{other_site}/slow/net.tflite")
    page.page.locator("#address").press("Enter")
    size = f"of {(len(tflite()) + 100) / 1000:.2f} kB"
    page.demo.wait_for("progress", lambda: size in page.text("#arriving-text"))
    page.page.locator("#arriving-stop").click()
    page.demo.wait_for("end", lambda: page.page.locator("#arriving").is_hidden())
    assert page.demo.error is None


def test_two_models_are_compared_side_by_side(demo: Demo, other_site: str) -> None:
    link = f"?backend=wasm&url={other_site}/net.tflite&with-url={other_site}/changed.tflite"
    page = ModelPage(demo(link, path="/model"))
    found = page.demo.wait_for("comparison", lambda: page.demo._dataset("webinferCompared"))
    assert (found["same"], found["added"], found["removed"], found["changed"], found["weights"]) == (3, 0, 0, 0, 1)
    assert "1 of 24 elements, by 0.45652 at most" in page.text("#compare-lists")
    page.page.locator("#compare-address").fill(f"{other_site}/net.onnx")
    page.page.locator("#compare-address").press("Enter")

    def compared() -> Any:
        told = page.demo._dataset("webinferCompared")
        return told if told and told["name"] == "net.onnx" else None

    found = page.demo.wait_for("comparison", compared)
    assert found["added"] + found["changed"] > 0
    for title in ("Added operators", "Added weights"):
        assert page.page.locator("#compare-lists summary").filter(has_text=title).count() == 1
    page.page.locator("#compare-lists button").first.click()
    assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert "with-url" in page.page.url
