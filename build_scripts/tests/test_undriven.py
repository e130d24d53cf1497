"""A browser that nobody drives: how it is found, and that it ends."""

import http.server
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from build_scripts.bench.undriven import open_tab, undriven
from build_scripts.errors import BuildError

BROWSER = """#!{python}
import os, pathlib, sys, time
profile = pathlib.Path(next(flag for flag in sys.argv if flag.startswith("--user-data-dir=")).partition("=")[2])
pathlib.Path({said!r}).write_text(f"{{os.getpid()}} {{' '.join(sys.argv[1:])}}")
(profile / "DevToolsActivePort").write_text("4711\\n/devtools/browser/1")
time.sleep(60)
"""


def _program(folder: Path, text: str) -> dict[str, Any]:
    file = folder / "browser"
    file.write_text(text)
    file.chmod(0o755)
    return {"executable_path": str(file), "args": ["--quiet"]}


def test_it_says_where_it_listens_and_ends_with_the_block(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with undriven(_program(tmp_path, BROWSER.format(python=sys.executable, said=str(said)))) as browser:
        assert browser.address == "http://127.0.0.1:4711"
        process, *flags = said.read_text().split()
        assert browser.process.pid == int(process)
        assert "--quiet" in flags
        os.kill(int(process), 0)  # it runs
    with pytest.raises(ProcessLookupError):
        os.kill(int(process), 0)


def test_one_that_ends_at_once_is_an_error(tmp_path: Path) -> None:
    options = _program(tmp_path, f"#!{sys.executable}\n")
    with pytest.raises(BuildError, match="did not start"), undriven(options):
        pytest.fail("there is no browser")


def test_a_page_is_opened_with_its_whole_address() -> None:
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.handle_request, daemon=True).start()
    open_tab(f"http://127.0.0.1:{server.server_port}", "http://here/page?backend=wasm&x=1")
    server.server_close()
    assert asked == ["/json/new?http%3A%2F%2Fhere%2Fpage%3Fbackend%3Dwasm%26x%3D1"]
