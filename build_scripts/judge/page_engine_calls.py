"""Python in the engine's worker of a site's page, each call with a deadline.

Playwright's `evaluate` waits without limit. So a call is started, the worker says on the console when it has ended, and
that message is waited for. After a missed deadline nothing is known of the worker or of the browser's GPU process:
the next call gets a new browser.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from playwright.sync_api import Error, Page, TimeoutError, Worker

from build_scripts.errors import BuildError
from build_scripts.places.guest_site import fulfil
from build_scripts.setup.chromium import browser
from build_scripts.site.serving import running_server

PAGE = "/face-detection?backend=wasm"
STARTED_MS = 120_000
BEGIN = """([code, mark]) => {
  self.judged = ["no answer", ""];
  self.pyodide.runPythonAsync(code).then(
    (answer) => { self.judged = ["", String(answer ?? "")]; },
    (error) => { self.judged = [String(error), ""]; },
  ).finally(() => console.info(mark));
}"""
ANSWER = "() => self.judged"


class PageEngine:
    """The worker in which the site's engine runs in headless Chromium, with files at addresses of the site."""

    def __init__(self, files: Mapping[str, Path | str]) -> None:
        """`files` are those that the site has besides, by paths below /judge/."""
        self._files, self._calls = files, 0
        self._server = contextlib.ExitStack()
        self._browser = contextlib.ExitStack()
        self._opened: tuple[Page, Worker] | None = None

    def __enter__(self) -> Self:
        self._address = self._server.enter_context(running_server())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self._server.close()

    def _close(self) -> None:
        self._opened = None
        with contextlib.suppress(Error):  # of a browser that ended by itself
            self._browser.close()

    def _open(self) -> tuple[Page, Worker]:
        if self._opened is None:
            context = self._browser.enter_context(browser()).new_context(service_workers="block")
            context.route(
                "**/judge/**",
                lambda route: fulfil(route, self._files, route.request.url.removeprefix(self._address)),
            )
            page = context.new_page()
            page.set_default_timeout(STARTED_MS)
            page.goto(self._address + PAGE)
            page.wait_for_selector("html[data-webinfer-result]", state="attached")
            self._opened = page, [worker for worker in page.workers if "engine_worker" in worker.url][-1]
        return self._opened

    def call(self, code: str, limit_s: float) -> str:
        """What a program's last line gives, as text. Its names are there for the next call, until one fails.

        Raises:  BuildError that ends with Python's error, or says that the deadline was missed
        """
        self._calls += 1
        mark = f"webinfer judge: call {self._calls} has ended"
        try:
            page, worker = self._open()
            with page.expect_event("console", lambda message: message.text == mark, timeout=1000 * limit_s):
                worker.evaluate(BEGIN, [code, mark])
            wrong, answer = worker.evaluate(ANSWER)
        except TimeoutError as error:
            self._close()
            raise BuildError(f"no answer within {limit_s:.0f} s") from error
        except Error as error:  # the page or the browser ended
            self._close()
            raise BuildError(f"the page's engine ended: {error.message[-300:]}") from error
        if wrong:
            raise BuildError(wrong.partition("\n    at ")[0].rstrip()[-600:])  # before the lines of JavaScript
        return str(answer)
