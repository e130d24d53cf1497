"""Firefox and WebKitGTK for tests: one tab each, driven by the W3C's protocols without a library between.

Firefox speaks WebDriver BiDi over a WebSocket of its own; WebKitGTK's driver speaks WebDriver over HTTP.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from build_scripts.processes import end

LIMIT_S = 90
START_S = 60
PREFERENCES = {
    "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.webgpu.enabled": True,
    "gfx.webgpu.ignore-blocklist": True,  # it lists adapters in software
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
}
SAID = """(() => {
  const { webinferResult: result, webinferError: error } = document.documentElement.dataset;
  return { result: result && JSON.parse(result), error: error && JSON.parse(error), text: document.body?.innerText };
})()"""


class Tab(ABC):
    """One page in a browser that has kept nothing of earlier ones."""

    @abstractmethod
    def open(self, url: str) -> None:
        """Goes to an address; returns when its document is there."""

    @abstractmethod
    def evaluate(self, expression: str) -> Any:
        """The JSON value of a JavaScript expression, awaited, in the page."""

    def wait_for(self, what: str, ask: Callable[[], Any], limit_s: float = LIMIT_S) -> Any:
        """The first true answer of `ask`."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if answer := ask():
                return answer
            time.sleep(0.05)
        raise AssertionError(f"no {what} within {limit_s} s; the page says {self.evaluate(SAID)}")

    def result(self, limit_s: float = LIMIT_S) -> dict[str, Any]:
        """What a demo's page found first; fails if the page shows an error instead."""

        def ask() -> Any:
            said = self.evaluate(SAID)
            assert said.get("result") or not said.get("error"), said["error"]
            return said.get("result")

        found: dict[str, Any] = self.wait_for("result", ask, limit_s)
        return found

    def error(self, limit_s: float = LIMIT_S) -> dict[str, str]:
        """The error that a page shows first."""
        found: dict[str, str] = self.wait_for("error", lambda: self.evaluate(SAID).get("error"), limit_s)
        return found


class Firefox:
    """A headless Firefox with a profile of its own; `preferences` are those of about:config."""

    def __init__(self, program: Path, preferences: Mapping[str, Any] | None = None) -> None:
        self._stack = contextlib.ExitStack()
        profile = Path(self._stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        lines = {**PREFERENCES, **(preferences or {})}.items()
        (profile / "user.js").write_text("".join(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in lines))
        command = [str(program), "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port=0"]
        environment = {**os.environ, "HOME": str(profile), "MOZ_DISABLE_CONTENT_SANDBOX": "1"}
        log = profile / "log"
        with log.open("w") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        self._stack.callback(end, self._process)
        try:
            address = _line(self._process, log, r"WebDriver BiDi listening on (ws://\S+)")
            self._socket: ClientConnection = self._stack.enter_context(connect(f"{address}/session", max_size=None))
            self._count = 0
            self.version = self.call("session.new", capabilities={})["capabilities"]["browserVersion"]
        except BaseException:
            self.close()
            raise

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What the browser answers to a command of WebDriver BiDi; fails with what it says where it refuses."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(LIMIT_S))
            if answer.get("id") == self._count:
                assert answer["type"] == "success", answer
                result: dict[str, Any] = answer["result"]
                return result

    @contextlib.contextmanager
    def tab(self) -> Iterator[Tab]:
        """A tab in a container of its own: no other has kept anything there."""
        user = self.call("browser.createUserContext")["userContext"]
        try:
            yield _FirefoxTab(self, self.call("browsingContext.create", type="tab", userContext=user)["context"])
        finally:
            self.call("browser.removeUserContext", userContext=user)

    def close(self) -> None:
        """Ends the browser."""
        self._stack.close()


class _FirefoxTab(Tab):
    def __init__(self, browser: Firefox, context: str) -> None:
        self._browser, self._context = browser, context

    def open(self, url: str) -> None:
        """Goes to an address."""
        self._browser.call("browsingContext.navigate", context=self._context, url=url, wait="interactive")

    def evaluate(self, expression: str) -> Any:
        """The JSON value of an expression."""
        text = f"(async () => JSON.stringify(await ({expression})) ?? 'null')()"
        target = {"context": self._context}
        answer = self._browser.call("script.evaluate", expression=text, target=target, awaitPromise=True)
        assert answer["type"] == "success", answer
        return json.loads(answer["result"]["value"])


class WebKit:
    """WebKitGTK in its small browser, on a display that nobody sees."""

    def __init__(self, program: Path) -> None:
        self._program, self._stack = program, contextlib.ExitStack()
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        display, port = f":{_free_port() % 20000 + 100}", _free_port()
        own = {"GDK_BACKEND": "broadway", "BROADWAY_DISPLAY": display, "XDG_RUNTIME_DIR": str(folder)}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = {**os.environ, **own, "HOME": str(folder), "LIBGL_ALWAYS_SOFTWARE": "1"}
        shown = ["broadwayd", "--address=127.0.0.1", f"--port={_free_port()}", display]
        driver = ["WebKitWebDriver", f"--port={port}"]
        for command in (shown, driver):
            process = subprocess.Popen(command, env=environment, **quiet)  # type: ignore[call-overload]
            self._stack.callback(end, process)
        self._address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + START_S
        while True:
            try:
                self.call("GET", "/status")
                break
            except OSError:
                assert time.monotonic() < deadline, "WebKitGTK's driver does not answer"
                time.sleep(0.05)

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """What the driver answers to a command of WebDriver; fails with what it says where it refuses."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()}") from error

    @contextlib.contextmanager
    def tab(self) -> Iterator[Tab]:
        """The tab of a browser that keeps nothing."""
        options = {"binary": str(self._program), "args": ["--automation"]}
        wanted = {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}}
        session = f"/session/{self.call('POST', '/session', wanted)['sessionId']}"
        try:
            yield _WebKitTab(self, session)
        finally:
            self.call("DELETE", session)

    def close(self) -> None:
        """Ends driver and display."""
        self._stack.close()


class _WebKitTab(Tab):
    def __init__(self, browser: WebKit, session: str) -> None:
        self._browser, self._session = browser, session

    def open(self, url: str) -> None:
        """Goes to an address."""
        self._browser.call("POST", f"{self._session}/url", {"url": url})

    def evaluate(self, expression: str) -> Any:
        """The JSON value of an expression."""
        script = f"const done = arguments[0]; (async () => ({expression}))().then(done, (e) => done('failed: ' + e));"
        return self._browser.call("POST", f"{self._session}/execute/async", {"script": script, "args": []})


def _line(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """What a program's output says where this pattern is, once it does."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"{process.args!r} does not start: {log.read_text(errors='replace')[-800:]}")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
