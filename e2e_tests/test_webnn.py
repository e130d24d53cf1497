"""WebNN by our module: a sample of the standard interface in a page and in a worker, tensors shared with shaders, and a
part of the W3C's tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route

from build_scripts.judge.wpt import count, run_suite
from build_scripts.paths import ROOT
from e2e_tests.pages import DemoPage

SAMPLES = Path(__file__).with_name("samples")
SUITE = ROOT.parent / "shared" / "wpt" / "src"
PART = r"conformance_tests/(relu|concat|tensor)\.|validation_tests/(conv2d|gather)\."
ONE_LINE = '<script type="module" src="/webnn.js"></script>'
WORKER = """Object.defineProperty(navigator, "hardwareConcurrency", { value: 1 }); // threads are led by Python
const { countedRuns } = await import("/webnn_counts.js");
const { runLeNet } = await import("/lenet.js");
const work = async (options) => ({ ...(await countedRuns(options)), ...(await runLeNet(options)) });
onmessage = async ({ data }) => postMessage(await work(data).catch((error) => ({ error: String(error) })));
postMessage("listening");
"""
IN_WORKER = """(options) => new Promise((resolve, reject) => {
  const worker = new Worker("/lenet_worker.js", { type: "module" });
  worker.onerror = (event) => reject(new Error(event.message));
  worker.onmessage = ({ data }) => (data === "listening" ? worker.postMessage(options) : resolve(data));
})"""
RESULTS = [[10, 11, 12, 14, 16], [20, 22, 24, 27, 30], [10, 11, 12, 14, 16], [20, 22, 24, 27, 30]]
SHARED = """async () => {
  const device = await (await navigator.gpu.requestAdapter()).requestDevice();
  const context = await navigator.ml.createContext(device);
  const builder = new MLGraphBuilder(context);
  const descriptor = { dataType: "float32", shape: [64] };
  const double = builder.add(builder.input("x", descriptor), builder.input("y", descriptor));
  const graph = await builder.build({ z: double });
  const [x, z] = [await context.createTensor({ ...descriptor, writable: true }),
                  await context.createExportableTensor({ ...descriptor, readable: true }, device)];
  const y = await context.createTensor({ ...descriptor, writable: true });
  context.writeTensor(x, Float32Array.from({ length: 64 }, (_, i) => i));
  context.writeTensor(y, new Float32Array(64).fill(0.5));
  context.dispatch(graph, { x, y }, { z });
  const buffer = await context.exportToGPU(z);
  let refused = "";
  try { context.dispatch(graph, { x, y }, { z }); } catch (error) { refused = error.name; }
  const code = "@group(0) @binding(0) var<storage, read_write> z: array<f32>; " +
    "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { z[id.x] = z[id.x] * 3.0; }";
  const module = device.createShaderModule({ code });
  const pipeline = device.createComputePipeline({ layout: "auto", compute: { module } });
  const layout = pipeline.getBindGroupLayout(0);
  const group = device.createBindGroup({ layout, entries: [{ binding: 0, resource: { buffer } }] });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(1);
  pass.end();
  device.queue.submit([encoder.finish()]);
  buffer.destroy();
  const back = new Float32Array(await context.readTensor(z));
  const again = await context.exportToGPU(z);
  return { refused, same: again === buffer, values: [...back.slice(0, 3)], kind: buffer.constructor.name };
}"""


@contextlib.contextmanager
def _opened(browser: Browser, address: str) -> Iterator[Page]:
    """A third-party page that adds our module with one line."""

    def other(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        samples = {path.name: path.read_text() for path in (SAMPLES / "lenet.js", SAMPLES / "webnn_counts.js")}
        bodies = {"other.html": ONE_LINE, "lenet_worker.js": WORKER, **samples}
        kind = "text/html" if name.endswith("html") else "text/javascript"
        headers = {"Content-Type": kind, "Cross-Origin-Embedder-Policy": "require-corp"}
        route.fulfill(body=bodies[name], headers={**headers, "Cross-Origin-Opener-Policy": "same-origin"})

    found = browser.new_page()
    found.route("**/{other.html,lenet.js,lenet_worker.js,webnn_counts.js}", other)
    found.goto(f"{address}/other.html")
    found.wait_for_function("() => navigator.ml")
    yield found
    found.close()


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    """Such a page, whose engine starts once for all tests."""
    with _opened(browser, address) as found:
        yield found


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_sample_of_the_standard_runs_unchanged(page: Page, device: str) -> None:
    found = page.evaluate("async (deviceType) => (await import('/lenet.js')).runLeNet({ deviceType })", device)
    assert found["accelerated"] == (device == "gpu")
    assert sum(found["scores"]) == pytest.approx(1, abs=1e-5)
    assert found["error"] < 1e-4


def test_the_same_sample_runs_in_a_worker_whose_dispatches_are_without_python_too(page: Page) -> None:
    found = page.evaluate(IN_WORKER, {"deviceType": "cpu"})
    assert found["error"] < 1e-4
    assert found["results"] == RESULTS
    assert found["again"] == found["others"] == found["read"] == found["into"] == found["write"] == {}


def test_a_page_that_asks_for_no_context_fetches_one_file(browser: Browser, address: str) -> None:
    with _opened(browser, address) as page:
        fetched = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
    ours = [name.rpartition("/")[2] for name in fetched if not name.endswith(".ico")]
    assert ours == ["webnn.js", "webnn.js"]


def test_a_tensor_is_a_buffer_that_shaders_share(page: Page) -> None:
    found = page.evaluate(SHARED)
    assert found == {"refused": "InvalidStateError", "same": True, "values": [1.5, 4.5, 7.5], "kind": "GPUBuffer"}


def test_dispatches_in_a_row_on_the_gpu_are_one_submit_without_copies(page: Page) -> None:
    found = page.evaluate("async () => (await import('/webnn_counts.js')).countedRuns({ deviceType: 'gpu' })")
    assert found["results"] == RESULTS
    assert found["again"] == found["others"] == {"submits": 1}
    assert found["read"] == found["into"] == {"submits": 1, "copied": 20}
    assert found["write"] == {"written": 40}


def test_python_takes_no_part_in_a_dispatch_on_the_processor(page: Page) -> None:
    found = page.evaluate("async () => (await import('/webnn_counts.js')).countedRuns({ deviceType: 'cpu' })")
    assert found == {"results": RESULTS, "again": {}, "others": {}, "read": {}, "into": {}, "write": {}}


@pytest.mark.skipif(not SUITE.is_dir(), reason="the W3C's tests of WebNN are not beside the checkout")
def test_a_part_of_the_suite_passes(browser: Browser) -> None:
    found = dict(run_suite(browser, SUITE, "cpu", PART))
    bad = [f"{page}: {test}" for page, result in found.items() for test in result["tests"] if test[1]]
    assert not bad
    assert count(found)["passed"] > 150


def test_the_page_runs_the_four_tests_on_this_device(demo: Callable[..., DemoPage]) -> None:
    page = demo("?size=8&rounds=2", path="/interop")
    assert page.page.locator("header [aria-current=page]").text_content() == "WebNN interop"
    page.page.click("#start:enabled")
    page.wait_for("result", lambda: page.text("#status") == "Done.")
    assert page.result is not None
    rows = {row["name"]: row for row in page.result["rows"]}
    assert len(rows) == page.page.locator("#table tbody tr").count() == 9
    assert 0 < max(row["worst"] for row in rows.values()) < 1e-5
    assert all(row["least"] > 0 for row in rows.values())


BACKEND = """
import json
import webinfer
async def through(backend, **more):
    with await webinfer.load("blazeface_short_range", backend=backend, **more) as session:
        outputs = await session.run(session.noise(1))
        plan = session.plan()
        return {name: list(tensor.flat()) for name, tensor in outputs.items()}, plan
got, plan = await through("webnn", device="low-power", strict=True)
want, _ = await through("wasm", tuning_ms=0)
worst = max(abs(a - b) for name in want for a, b in zip(got[name], want[name]))
json.dumps({"worst": worst, "choice": plan.choice, "backend": plan.backend, "why": plan.rows[0].why})
"""


def test_the_engine_runs_models_through_its_own_webnn(face_page: DemoPage) -> None:
    found = face_page.python(BACKEND)
    assert found["backend"] == "webnn"
    assert found["worst"] < 1e-4
    assert "device='low-power' was asked for" in found["choice"]
    assert found["why"] == "webinfer, on the processor, for device='low-power'"
