"""The scripts of the page fit each other."""

import contextlib
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from build_scripts.errors import BuildError
from build_scripts.paths import ENGINE, ROOT, STATIC, page_script
from build_scripts.setup.node import node_commands
from build_scripts.site.assemble import ALONE, INTEROP, WEBNN, script_roots, static_files
from build_scripts.site.bundle import IMPORT, LAB_WHOLE, bundled, bundled_page
from server.contexts import FIRST, LANGUAGE
from server.routes_assets import SERVICE_WORKER

IN_THE_WHEEL = {"gpu.js"}  # which Python takes out of its own wheel


@lru_cache
def published() -> dict[str, bytes]:
    return static_files()


def checked(script: bytes, folder: Path) -> None:
    node = next((node for node in node_commands() if shutil.which(node) or Path(node).exists()), None)
    if node is not None:
        (folder / "whole.mjs").write_bytes(script)
        done = subprocess.run([node, "--check", folder / "whole.mjs"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("root", script_roots())
def test_a_page_s_script_comes_as_one_small_file_with_all_that_it_imports(root: str, tmp_path: Path) -> None:
    script = published()[f"{root}.js"]
    assert not re.search(r"(?:^|[;}\n])(import|export)\s*[*{\"']", script.decode())
    with contextlib.suppress(BuildError):  # scripts that import packages of npm have no other form
        assert len(script) < 0.7 * len(bundled_page(root))
    checked(script, tmp_path)


@pytest.mark.parametrize("root", LAB_WHOLE)
def test_a_lab_s_script_comes_as_one_file_with_all_that_it_imports(root: str, tmp_path: Path) -> None:
    whole = bundled_page(root).decode()
    assert not re.search(r"^(import|export)\b", whole, re.MULTILINE)
    names = re.findall(r"^// ----- ([\w/]+)\.js$", whole, re.MULTILINE)
    assert len(names) == len(set(names)) >= 8
    assert names[-1].endswith(f"/{root}")
    checked(whole.encode(), tmp_path)


def test_the_scripts_that_are_asked_for_are_published_and_no_others() -> None:
    files = [*STATIC.rglob("*.js"), *(ROOT / "server/templates").glob("*.html"), *ENGINE.rglob("*.py")]
    asked = {f"{name}.js" for file in files for name in re.findall(r"""["']static/(\w+)\.js["']""", file.read_text())}
    beside = {f"{Path(name).name}.js" for alone in ALONE for _, name in IMPORT.findall(page_script(alone).read_text())}
    drawers = {
        path.relative_to(STATIC).as_posix() for path in (*STATIC.glob("results/*.js"), *STATIC.glob("sources/*.js"))
    }
    assert "results/detections.js" in drawers
    webnn = {f"{name}.js" for name in (*WEBNN, *INTEROP)}
    every = published()
    inside, exported = {Path(FIRST).name, Path(LANGUAGE).name}, {"unstarted.js"}  # of pages, of those of static hosts
    ours = (asked - IN_THE_WHEEL) | beside | drawers | {SERVICE_WORKER} | webnn | inside | exported
    assert {name for name in every if name.endswith(".js")} == ours
    assert {"demo.css", "docs.css", "icon.svg"} <= set(every)


HEARTBEAT = """
import { Heartbeat } from "./heartbeat.mjs";
let tick = null;
globalThis.setInterval = (run) => { tick = run; };
const quiet = [];
const ping = () => heart.heard({ type: "pong" });
const heart = new Heartbeat(4000, { ping, silent() {}, moving() {}, quiet: (seconds) => quiet.push(seconds) });
const wait = () => { for (let i = 0; i < 9; i += 1) tick(); };
heart.start();
heart.heard({ type: "started" });
wait(); // for nothing: the page has no task
heart.asked("ask", -1);
heart.heard({ type: "step", id: -1 });
wait(); // for the answer
heart.heard({ type: "answer", id: -1 });
wait();
console.log(JSON.stringify(quiet));
"""


def test_a_page_without_a_task_waits_for_nothing_until_it_asks(tmp_path: Path) -> None:
    node = next((node for node in node_commands() if shutil.which(node) or Path(node).exists()), None)
    if node is None:
        pytest.skip("Node is not installed")
    (tmp_path / "heartbeat.mjs").write_text(page_script("heartbeat").read_text())
    (tmp_path / "waits.mjs").write_text(HEARTBEAT)
    done = subprocess.run([node, tmp_path / "waits.mjs"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[2]"  # seconds: once, while an answer was owed


BUSY = """
import { Heartbeat } from "./heartbeat.mjs";
let tick = null;
globalThis.setInterval = (run) => { tick = run; };
const silent = [];
const heart = new Heartbeat(30000, { ping() {}, silent: (seconds) => silent.push(seconds), moving() {}, quiet() {} });
const wait = (ticks) => { for (let i = 0; i < ticks; i += 1) tick(); };
heart.start();
heart.heard({ type: "ready" });
heart.ready = true;
heart.asked("detect", 1);
wait(40); // 80 seconds: a large model on a slow device, whose kernels hear no ping
heart.heard({ type: "result", id: 1 });
heart.asked("detect", 2);
wait(50); // less than twice as long as it took before
heart.heard({ type: "result", id: 2 });
heart.asked("select");
heart.heard({ type: "ready" });
heart.asked("detect", 3);
heart.heard({ type: "result", id: 3 });
heart.asked("detect", 4);
wait(16); // of a model that answered at once
heart.heard({ type: "result", id: 4 });
heart.asked("ask", -1);
wait(40);
console.log(JSON.stringify(silent));
"""


def test_an_engine_that_computes_for_long_is_not_given_up(tmp_path: Path) -> None:
    node = next((node for node in node_commands() if shutil.which(node) or Path(node).exists()), None)
    if node is None:
        pytest.skip("Node is not installed")
    (tmp_path / "heartbeat.mjs").write_text(page_script("heartbeat").read_text())
    (tmp_path / "busy.mjs").write_text(BUSY)
    done = subprocess.run([node, tmp_path / "busy.mjs"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[30]"  # seconds: once, of the model that is known to be quick


def test_modules_in_one_file_keep_their_names_apart(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(
        'import { f as g } from "./b.js";\nimport * as c from "./c.js";\nconst x = 1;\ng(c.x);\n'
    )
    (tmp_path / "b.js").write_text('import { x } from "./c.js";\nexport function f(y) { return x + y; }\n')
    (tmp_path / "c.js").write_text("export const x = 2;\nexport function* rest() { yield x; }\n")
    whole = bundled(tmp_path, "a").decode()
    assert (
        whole.index("$c = ") < whole.index("$b = ") < whole.index("const { f: g } = $b;") < whole.index("const c = $c;")
    )
    assert whole.count("const x = 2") == 1


@pytest.mark.parametrize("text", ['import d from "./d.js";\n', "export default 1;\n", 'import { x } from "./e.js";\n'])
def test_what_cannot_be_put_into_one_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "e.js").write_text(text)
    with pytest.raises(BuildError, match=r"e\.js"):
        bundled(tmp_path, "e")
