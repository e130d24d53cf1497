"""The page under a soak: a browser, a server that can be killed, and what is done to both."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.paths import ROOT

PAGE_SIZE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
FLAGS = (
    "--disable-gpu-process-crash-limit",
    "--disable-domain-blocking-for-3d-apis",
)
# Runs before the page's own scripts: notes every answer, asks for the next one, keeps a hand on the engine's worker.
WATCH = """(() => {
  const soak = (globalThis.soak = { answers: [], seen: "", engine: null });
  globalThis.Worker = class extends Worker {
    constructor(...given) {
      super(...given);
      soak.engine = this;
    }
  };
  new MutationObserver(() => {
    const text = document.documentElement.dataset.webinferResult ?? "";
    if (!text || text === soak.seen) return;
    soak.seen = text;
    const { faces, backend, reason } = JSON.parse(text);
    soak.answers.push({ boxes: faces.map(({ box }) => box), backend, reason });
    setTimeout(() => document.getElementById("use-sample").click(), PAUSE_MS);
  }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-webinfer-result"] });
})();"""
LOOK = """() => {
  const shown = (id) => Boolean(document.getElementById(id)?.checkVisibility({ visibilityProperty: true }));
  return {
    answers: globalThis.soak?.answers.splice(0) ?? [],
    error: document.documentElement.dataset.webinferError ?? "",
    retry: shown("retry") || shown("unstarted"),
    runs: (document.getElementById("backend")?.textContent ?? "").startsWith("Runs on"),
  };
}"""
PRESS = """(id) => {
  const unstarted = id === "retry" ? document.querySelector("#unstarted a") : null;
  (unstarted ?? document.getElementById(id))?.click();
}"""
END_THREAD = """(code) => globalThis.pyodide?.runPython(code)"""
END_THREAD_PYTHON = """
import gc
pools = [o for o in gc.get_objects() if type(o).__name__ == "ThreadPoolKernels" and o._workers]
for pool in pools:
    pool._workers[0][0].terminate()
len(pools)
"""
STORED = """async () => {
  const names = [];
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle("webinfer", { create: true });
  for await (const [name, handle] of folder.entries()) if ((await handle.getFile()).size) names.push(`file ${name}`);
  const cache = await caches.open("webinfer");
  for (const { url } of await cache.keys()) names.push(`entry ${url}`);
  return names.sort();
}"""
DAMAGE = """async ([what, places, zeroed]) => {
  const [kind, name] = what.split(" ");
  const root = await navigator.storage.getDirectory();
  const cache = await caches.open("webinfer");
  const handle = kind === "file" ? await (await root.getDirectoryHandle("webinfer")).getFileHandle(name) : null;
  const source = handle ? await handle.getFile() : await cache.match(name);
  const bytes = new Uint8Array(await source.arrayBuffer());
  if (zeroed) bytes.fill(0, bytes.length >> 1, (bytes.length >> 1) + 4096);
  else for (const place of places) bytes[Math.floor(place * bytes.length)] ^= 1 << Math.floor(place * 8);
  if (!handle) return cache.put(name, new Response(bytes));
  const writer = await handle.createWritable();
  await writer.write(bytes);
  await writer.close();
}"""
MEMORY = """async () => {
  if (!performance.measureUserAgentSpecificMemory) return null;
  const slow = new Promise((resolve) => setTimeout(resolve, 10_000, null));
  return Promise.race([performance.measureUserAgentSpecificMemory().then(({ bytes }) => bytes, () => null), slow]);
}"""


class KilledServer:
    """A server process on one port that can be killed and started again."""

    def __init__(self) -> None:
        self.process, self.address = self._started(0)

    def _started(self, port: int) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "e2e_tests.serve", "--port", str(port)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise BuildError("the server ended at once; is the site built? (python3 -m build_scripts setup)")
        return process, address

    def kill(self) -> None:
        """Ends it as a crash does: no connection is closed in order."""
        self.process.kill()
        self.process.wait(10)

    def start(self) -> None:
        """Starts it again on its port."""
        self.process, address = self._started(int(self.address.rsplit(":", 1)[1]))
        if address != self.address:
            raise BuildError(f"the server came back at {address}, not at {self.address}: its port was taken")


class SoakPage:
    """The demo page in Chromium, which looks at the sample photo again and again."""

    def __init__(self, playwright: Any, server: KilledServer, query: str, pause_ms: int, seed: int) -> None:
        from build_scripts.setup.chromium import launch_options

        options = launch_options(without=("SpareRendererForSitePerProcess",))  # it would count as memory
        self.browser = playwright.chromium.launch(**{**options, "args": [*options["args"], *FLAGS]})
        self.server, self.url = server, f"{server.address}/face-detection{query}"
        self.random, self.turn = random.Random(seed), 0
        self.console: list[str] = []
        self.crashed = False
        self.watch_script = WATCH.replace("PAUSE_MS", str(pause_ms))
        self._new_profile()

    def _new_profile(self) -> None:
        self.context = self.browser.new_context()
        self.context.add_init_script(self.watch_script)
        self._new_page()

    def _new_page(self) -> None:
        self.page, self.crashed = self.context.new_page(), False
        self.page.on("console", lambda message: self._heard(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self._heard(f"page error: {error}"))
        self.page.on("crash", lambda: setattr(self, "crashed", True))

    def _heard(self, line: str) -> None:
        self.console = [*self.console[-30:], line[:300]]

    def open(self) -> None:
        """Opens the page, in a new tab if the renderer has crashed."""
        if self.crashed:
            self.page.close()
            self._new_page()
        self.page.goto(self.url, wait_until="commit")

    def open_afresh(self) -> None:
        """Opens the page in a profile of its own, in which nothing is stored or broken."""
        self.context.close()
        self._new_profile()
        self.page.goto(self.url, wait_until="commit")

    def look(self) -> dict[str, Any]:
        """Answers since the last look, the error that is shown, and whether there is a "Try again" button."""
        from playwright.sync_api import Error

        nothing = {"answers": [], "error": "", "retry": False, "runs": False}
        try:
            return nothing if self.crashed else dict(self.page.evaluate(LOOK))
        except Error:  # between two documents
            return nothing

    def make(self, kind: str) -> str:
        """Makes this trouble and says what was done; "" where it cannot be made."""
        from playwright.sync_api import Error

        try:
            return TROUBLES[kind][0](self)
        except Error as error:
            print(f"           {kind} could not be made: {str(error).splitlines()[0]}")
            return ""

    def press(self, button: str) -> None:
        """Presses a button as its id names it; "retry" may be that of a page whose scripts did not come."""
        from playwright.sync_api import Error

        with contextlib.suppress(Error):  # the page is being replaced
            self.page.evaluate(PRESS, button)

    def memory(self) -> dict[str, float]:
        """MiB of the renderers, of the GPU process, and of what the page itself can account for; {} if it is gone."""
        from playwright.sync_api import Error

        try:
            return self._memory()
        except Error:
            return {}

    def _memory(self) -> dict[str, float]:
        self.context.new_cdp_session(self.page).send("HeapProfiler.collectGarbage")
        browser = self.browser.new_browser_cdp_session()
        processes = browser.send("SystemInfo.getProcessInfo")["processInfo"]
        browser.detach()
        sums = {"renderer": 0.0, "gpu": 0.0}
        for process in processes:
            kind = process["type"].lower()
            if kind in sums:
                sums[kind] += resident_mib(int(process["id"]))
        own = self.page.evaluate(MEMORY)
        return {**sums, **({"page": own / 2**20} if own else {})}

    # ----- what is done to it; each says what it did, or "" where there is nothing to do it to

    def crash_gpu(self) -> str:
        """Ends the GPU process, as a driver's fault does."""
        session = self.browser.new_browser_cdp_session()
        session.send("Browser.crashGpuProcess")
        session.detach()
        return "the GPU process was crashed"

    def end_engine(self) -> str:
        """Ends the engine's worker; the page is not told."""
        self.page.evaluate("() => soak.engine.terminate()")
        return "the engine's worker was ended"

    def end_thread(self) -> str:
        """Ends a worker of the kernels' threads, where there are threads."""
        engines = [worker for worker in self.page.workers if "engine_worker" in worker.url]
        ended = engines[-1].evaluate(END_THREAD, END_THREAD_PYTHON) if engines else 0
        return "a kernel thread was ended" if ended else ""

    def restart_server(self) -> str:
        """Kills the server and starts it again: in every second turn while the page loads without a cache."""
        self.turn += 1
        if self.turn % 2:
            self.server.kill()
            time.sleep(1)
            self.server.start()
            return "the server was killed and came back after 1 s"
        session = self.context.new_cdp_session(self.page)
        session.send("Network.clearBrowserCache")
        session.detach()
        after = self.random.uniform(0.05, 1.5)
        self.page.goto(self.url, wait_until="commit")
        time.sleep(after)
        self.server.kill()
        try:
            self.page.wait_for_timeout(3000)
        finally:
            self.server.start()
        return f"the server was killed {after:.2f} s after a reload without cache, for 3 s"

    def damage_stored(self) -> str:
        """Damages something that the browser keeps, then opens the page again."""
        stored = self.page.evaluate(STORED)
        if not stored:
            return ""
        what, zeroed = self.random.choice(stored), self.random.random() < 0.3
        places = [self.random.random() for _ in range(self.random.choice((1, 20, 300)))]
        self.page.evaluate(DAMAGE, [what, places, zeroed])
        self.open()
        return f"{'4 kB zeroed' if zeroed else f'{len(places)} bits flipped'} in {what}, then a reload"

    def reload(self) -> str:
        """Opens the page again."""
        self.open()
        return "a reload"


# kind -> (what is done, seconds until it has certainly taken hold)
TROUBLES: dict[str, tuple[Callable[[SoakPage], str], float]] = {
    "gpu": (SoakPage.crash_gpu, 1.0),
    "engine": (SoakPage.end_engine, 0.5),
    "thread": (SoakPage.end_thread, 3.0),
    "server": (SoakPage.restart_server, 0.0),
    "stored": (SoakPage.damage_stored, 0.0),
    "reload": (SoakPage.reload, 0.0),
}


def resident_mib(process: int) -> float:
    """Memory of a process that is in use and in RAM; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE_SIZE / 2**20
    except (OSError, IndexError, ValueError):
        return 0.0


def readable_error(text: str) -> str:
    """The page's error as "code: message"."""
    try:
        told = json.loads(text)
        text = f"{told['code']}: {told['message']}"
    except (ValueError, KeyError, TypeError):
        pass
    return " ".join(text.split())[:200]
