"""`measure player-visits`: from opening the player's demo to the first box, in a new browser profile each time."""

import argparse
import functools
import gzip
import http.server
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from build_scripts.loopback import on_loopback
from build_scripts.paths import IMAGES, ROOT
from build_scripts.site.player import SOURCE, write_player

PICTURE = "photo.png"
RESULT = "globalThis.problem ?? globalThis.result"
COMPRESSED = (".html", ".css", ".js")


class Host(http.server.SimpleHTTPRequestHandler):
    """A static host that compresses texts once; a package is compressed by itself."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path.partition("?")[0]))
        if not path.is_file():
            return self.send_error(404)
        data = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        if path.suffix in COMPRESSED:
            data = gzip.compress(data, 9)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        return None

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


def run(argv: list[str]) -> int:
    """Prints the times and the bytes; they are of this machine and whatever else it does meanwhile."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure player-visits")
    parser.add_argument("--visits", type=int, default=9)
    parser.add_argument("--backend", default="wasm", choices=("auto", "wasm", "webgpu"))
    parser.add_argument("--model", default="blazeface_short_range", help="a BlazeFace face detector")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        place = write_site(Path(folder), options.model)
        sizes = {p.name: len(gzip.compress(p.read_bytes(), 9)) for p in place.iterdir() if p.suffix in COMPRESSED}
        package = (place / "model.webinfer").stat().st_size
        with on_loopback(functools.partial(Host, directory=folder)) as address:
            found = visits(f"{address}/index.html?backend={options.backend}", options.visits)
    used = sum(sizes[name] for name in ("index.html", "demo.css", "demo.js", "player.js"))
    opened = [result["sinceOpen"] for result in found]
    median, least = statistics.median(opened), min(opened)
    print(f"open to first box  {median:.0f} ms median, {least:.0f} ms least, of {len(opened)} visits")
    print(f"later runs         {statistics.median(result['later'] for result in found):.2f} ms median")
    print(f"bytes              {used + package:,}: page and player {used:,}, package {package:,}; and the photo")
    print(f"load average       {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {found[0]['backend']}")
    return 0


def write_site(place: Path, model: str) -> Path:
    """The player, its demo, a package and the sample photo in a folder."""
    write_player(place)
    for file in (SOURCE / "demo").iterdir():
        shutil.copyfile(file, place / file.name)
    shutil.copyfile(IMAGES / "astronaut.png", place / PICTURE)
    command = ["compile", model, "--task", "face-detector", "-o", str(place / "model.webinfer")]
    engine = {**os.environ, "PYTHONPATH": str(ROOT / "web" / "python")}
    subprocess.run([sys.executable, "-m", "webinfer", *command], check=True, cwd=ROOT, env=engine)
    return place


LATER = """async () => {
  const { load } = await import("./player.js");
  const model = await load("model.webinfer", { backend: "%s" });
  const inputs = { input: new Float32Array(model.inputs[0].shape.reduce((a, b) => a * b)) };
  const times = [];
  for (let i = 0; i < 60; i++) {
    const start = performance.now();
    await model.run(inputs);
    times.push(performance.now() - start);
  }
  return times.slice(20).sort((a, b) => a - b)[20];
}"""


def visits(address: str, count: int) -> list[dict[str, Any]]:
    """What the demo page tells of each visit, and a run of the model alone when the code is warm."""
    from build_scripts.setup.chromium import driver, launch_options

    found = []
    with driver() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        for _ in range(count):
            with browser.new_context() as context:
                page = context.new_page()
                page.goto(address)
                page.wait_for_function(RESULT, timeout=60_000)
                result = page.evaluate(RESULT)
                if "found" not in result:
                    raise SystemExit(json.dumps(result))
                found.append({**result, "later": page.evaluate(LATER % result["backend"])})
        browser.close()
    return found
