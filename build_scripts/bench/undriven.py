"""A Chromium that no driver listens to while a page starts: that takes a tenth of a start's time, or a fifth."""

import contextlib
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.processes import end

PORT_FILE = "DevToolsActivePort"  # in the profile: where a driver may connect
START_S = 30


@dataclass(frozen=True)
class Undriven:
    """A browser: the address for its drivers, and its process."""

    address: str
    process: "subprocess.Popen[bytes]"


@contextlib.contextmanager
def undriven(options: dict[str, Any]) -> Iterator[Undriven]:
    """A browser with a new profile; `options` are those of `launch_options`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = [*options["args"], "--headless", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
        process = subprocess.Popen(
            [options["executable_path"], *flags, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            port = _port(process, Path(profile) / PORT_FILE)
            if port is None:
                raise BuildError(f"the browser {options['executable_path']} did not start")
            yield Undriven(f"http://127.0.0.1:{port}", process)
        finally:
            end(process)


def _port(process: "subprocess.Popen[bytes]", file: Path) -> int | None:
    """None if the browser ends, or does not say it in time."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        if file.is_file() and (said := file.read_text().partition("\n"))[1]:
            return int(said[0])
        time.sleep(0.02)
    return None


def open_tab(browser: str, url: str) -> None:
    """Opens a page in a new tab of the browser at this address, and listens to nothing that it does."""
    asked = urllib.request.Request(f"{browser}/json/new?{urllib.parse.quote(url, safe='')}", method="PUT")
    with urllib.request.urlopen(asked, timeout=START_S):
        pass
