"""Stock Pyodide: on a page and in a worker of a browser, isolated or not, and in Node."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from playwright.sync_api import Browser, Route

from build_scripts.errors import BuildError
from build_scripts.paths import BROWSER_WHEELS, NODE_MODULES, WHEELS
from build_scripts.places.guest_site import documented, guest_files, guest_site, stand_in
from build_scripts.places.probe import MODEL, Answer, judged, probe
from build_scripts.setup.node import node_commands
from build_scripts.site.wheel import wheel_name

Elsewhere = Mapping[str, Callable[[Route], None]]  # patterns of addresses to what answers for them
LIMIT_S = 240
PAGE_LIMIT_S = 120
SHOWN = "document.getElementById('result')?.textContent.includes('regressors (1, 896, 16), classificators (1, 896, 1)')"
NODE_SCRIPT = """
const [folder, wheels, file, model, code] = JSON.parse(process.argv[1]);
const { loadPyodide } = await import(folder + "/pyodide.mjs");
const { readFileSync } = await import("node:fs");
const pyodide = await loadPyodide();
await pyodide.loadPackage(wheels, { messageCallback: () => {} });
pyodide.FS.writeFile(file, readFileSync(model));
const { writeFileSync } = await import("node:fs");
writeFileSync(process.argv[2], await pyodide.runPythonAsync(code));
process.exit(0);
"""
# What load takes in Node's own file system: a path is an address of fetch there, bytes are bytes.
FROM_FILE = "from pathlib import Path\n"


def in_browser(browser: Browser, worker: bool, isolated: bool, backends: Sequence[str] = ("wasm", "webgpu")) -> Answer:
    """The answer of a third-party page that installs the wheel with micropip."""
    with guest_site(isolated) as address:
        return judged(said_in(browser, address, probe(f"{address}/{MODEL.name}", backends), worker))


def said_in(browser: Browser, address: str, code: str, worker: bool, elsewhere: Elsewhere | None = None) -> str:
    """What this Python says in a page or a worker of the guest site; `elsewhere` answers for other servers."""
    page = browser.new_page()
    page.set_default_timeout(LIMIT_S * 1e3)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    for pattern, answer in (elsewhere or {}).items():
        page.context.route(pattern, answer)
    try:
        page.goto(f"{address}/")
        page.wait_for_function("window.open_")
        where = "inWorker" if worker else "inPage"
        wheel = f"{address}/{wheel_name()}"
        return str(page.evaluate(f"([wheel, code]) => window.{where}(wheel, code)", [wheel, code]))
    except Exception as error:
        raise BuildError(f"{str(error)[-600:]}\n{said[-5:]}") from error
    finally:
        page.close()


def documented_page(browser: Browser, kind: str, files: Mapping[str, Path | str]) -> str:
    """What a page of the documentation shows, as it stands there; `files` are what else its server has."""
    context = browser.new_context()
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    stand_in(context, {**guest_files(), **files, "/page.html": documented(kind)})
    try:
        page.goto("https://example.org/page.html")
        page.wait_for_function(SHOWN, timeout=PAGE_LIMIT_S * 1e3)
        return f"shows {page.inner_text('#result')!r}"
    except Exception as error:
        raise BuildError(f"{str(error)[-300:]}\n{said[-5:]}") from error
    finally:
        context.close()


def in_node() -> Answer:
    """What Pyodide answers in Node, with the wheel from a file."""
    names = ("jinja2", "markupsafe")
    wheels = [str(next(BROWSER_WHEELS.glob(f"{name}-*.whl"))) for name in names]
    code = FROM_FILE + probe("MODEL", ["wasm"]).replace("'MODEL'", "Path('/model.tflite').read_bytes()")
    job = [str(NODE_MODULES / "pyodide"), [*wheels, str(WHEELS / wheel_name())], "/model.tflite", str(MODEL), code]
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "answer.json"
        node = next(iter(node_commands()))
        command = [node, "--input-type=module", "--eval", NODE_SCRIPT, json.dumps(job), str(said)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        if not said.is_file():
            lines = (done.stdout + done.stderr).splitlines()
            raise BuildError("\n".join(line for line in lines if len(line) < 300)[-1500:])  # no packed source
        return judged(said.read_text())
