"""`judge soak --cameras`: every camera task looks at a film for minutes; answers come, memory stays flat."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.judge.soak_judge import MEMORY_GROWTH
from build_scripts.judge.soak_page import readable_error, resident_mib
from build_scripts.paths import SITE
from build_scripts.site.serving import running_server
from server.settings import Settings
from server.studio import Demo, read_studio

SIDE = 480  # pixels of the film's longer side
SAMPLES = 30  # of memory in the whole time
STARTS_S = 120.0  # that a page may take to its first answer from the camera
SETTLES_S = 60.0  # in which browsers take memory for caches and code: not judged
SETTLES_FRAMES = 600  # nor before so many frames: their buffers for drawings grow with each, up to a limit
MIB = 4.0  # below which nothing counts as growth
LOOK = """() => {
  const { webinferResult: result, webinferError: error = "" } = document.documentElement.dataset;
  const { count = 0, source = "", ...rest } = JSON.parse(result ?? "{}");
  const found = Object.values(rest).find(Array.isArray)?.length ?? 0;
  return { count, found, camera: source === "camera", error };
}"""
DRAW = """async ([url, side]) => {
  const image = Object.assign(new Image(), { src: url });
  await image.decode();
  const part = side / Math.max(image.naturalWidth, image.naturalHeight);
  const even = (pixels) => 2 * Math.round((pixels * part) / 2);
  const canvas = new OffscreenCanvas(even(image.naturalWidth), even(image.naturalHeight));
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return [...new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer())];
}"""


@dataclass
class Watched:
    """A task before its camera: what was seen of it; memory in MiB, resident, of its browser's renderers and GPU."""

    slug: str
    frames: int = 0
    seconds: float = 0.0
    found: int = 0  # in the last frame
    memory: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)  # frames that had been answered by each look at memory
    error: str = ""

    def growth(self) -> tuple[float, float] | None:
        """Medians of the first and of the last third of what is judged; None if it was too short."""
        settled = SETTLES_S / self.seconds if self.seconds else 1.0
        begin = max(round(settled * len(self.memory)), sum(count < SETTLES_FRAMES for count in self.counts))
        judged = self.memory[begin:]
        third = len(judged) // 3
        return (statistics.median(judged[:third]), statistics.median(judged[-third:])) if third else None

    def complaint(self) -> str:
        """What did not hold, or ""."""
        growth = self.growth()
        if self.error or not self.frames:
            return self.error or "no frame was answered"
        if growth and growth[1] > max(MEMORY_GROWTH * growth[0], growth[0] + MIB):
            return f"memory grew from {growth[0]:.0f} to {growth[1]:.0f} MiB"
        return ""

    def row(self) -> str:
        """A line of the table."""
        growth = self.growth()
        memory = f"{growth[0]:7.0f} → {growth[1]:.0f} MiB" if growth else "  too short a time to judge memory"
        rate = self.frames / self.seconds if self.seconds else 0.0
        said = f"   NOT HELD: {self.complaint()}" if self.complaint() else ""
        return f"{self.slug:24}{self.frames:>7} frames{rate:>7.1f}/s{self.found:>4} found{memory}{said}"


def camera_demos(only: Sequence[str]) -> list[Demo]:
    """The demos that take a camera and whose models this site has; `only` names some of them.

    Raises: BuildError if a name is none of these
    """
    manifest = json.loads((SITE / "manifest.json").read_text())
    models, assets = manifest["page"]["models"], manifest["assets"]
    films = [demo for demo in read_studio(Settings().tables).demos if "camera" in demo.inputs]
    ready = [d for d in films if all(file in assets for name in (d.model, *d.also) for file in models[name])]
    for demo in films:
        if demo not in ready:
            print(f"{demo.slug:24}left out: its models are not here; `models` fetches them")
    if unknown := set(only) - {demo.slug for demo in ready}:
        raise BuildError(f"no camera task is called {', '.join(sorted(unknown))}; there are {[d.slug for d in ready]}")
    return [demo for demo in ready if not only or demo.slug in only]


def run_cameras(options: argparse.Namespace) -> int:
    """0 if every task answered to the end and none took more and more memory."""
    from build_scripts.setup.chromium import driver

    demos, seen = camera_demos(options.task or []), []
    with running_server(Settings()) as address, driver() as playwright, TemporaryDirectory() as folder:
        for first in range(0, len(demos), options.together):
            for watched in side_by_side(playwright, address, demos[first : first + options.together], options, folder):
                print(watched.row(), flush=True)
                seen.append(watched)
    if options.json is not None:
        rows = [{**asdict(one), "growth": one.growth(), "complaint": one.complaint()} for one in seen]
        options.json.write_text(json.dumps({"backend": options.backend, "rows": rows}, indent=1) + "\n")
    return 1 if any(one.complaint() for one in seen) else 0


def side_by_side(
    playwright: Any, address: str, demos: Sequence[Demo], options: argparse.Namespace, folder: str
) -> Iterator[Watched]:
    """These tasks at the same time, each in a browser of its own with a film of its sample."""
    pages: list[CameraPage] = []
    try:
        for demo in demos:  # a list that holds those that were opened before one failed
            pages += [CameraPage(playwright, address, demo, options.backend, Path(folder))]
        end = time.monotonic() + 60 * options.minutes
        while (now := time.monotonic()) < end:
            for page in pages:
                page.sample()
            pages[0].page.wait_for_timeout(max(0.0, 1000 * (60 * options.minutes / SAMPLES - (time.monotonic() - now))))
        for page in pages:
            yield page.ended()
    finally:
        for page in pages:
            page.browser.close()


class CameraPage:
    """A task's page whose camera sees the task's sample."""

    def __init__(self, playwright: Any, address: str, demo: Demo, backend: str, folder: Path) -> None:
        from build_scripts.setup.chromium import launch_options

        film = folder / f"{Path(demo.sample).stem}.mjpeg"
        if not film.is_file():
            film.write_bytes(filmed(playwright, address, demo))
        given = launch_options(fake_camera=True, without=("SpareRendererForSitePerProcess",))
        given["args"] = [*given["args"], f"--use-file-for-fake-video-capture={film}"]
        self.browser = playwright.chromium.launch(**given)
        self.watched, self.page = Watched(demo.slug), self.browser.new_context(permissions=["camera"]).new_page()
        self.page.goto(f"{address}{demo.address}?backend={backend}")
        self._until(lambda seen: bool(seen["count"] or seen["error"]))
        self.page.evaluate("() => document.getElementById('camera').click()")
        self.first = self._until(lambda seen: bool(seen["camera"] or seen["error"]))["count"]
        self.begin = time.monotonic()

    def _until(self, reached: Any) -> dict[str, Any]:
        deadline, seen = time.monotonic() + STARTS_S, self.page.evaluate(LOOK)
        while not reached(seen) and time.monotonic() < deadline:
            self.page.wait_for_timeout(100)
            seen = self.page.evaluate(LOOK)
        if not reached(seen):
            self.watched.error = f"no answer within {STARTS_S:.0f} s"
        return dict(seen)

    def sample(self) -> None:
        """Notes what is found and the memory, after garbage was collected."""
        seen = self.page.evaluate(LOOK)
        if seen["error"]:
            self.watched.error = self.watched.error or readable_error(seen["error"])
        session = self.page.context.new_cdp_session(self.page)
        session.send("HeapProfiler.collectGarbage")
        session.detach()
        browser = self.browser.new_browser_cdp_session()
        processes = browser.send("SystemInfo.getProcessInfo")["processInfo"]
        browser.detach()
        parts = [resident_mib(int(one["id"])) for one in processes if one["type"].lower() in ("renderer", "gpu")]
        self.watched.memory.append(sum(parts))
        self.watched.counts.append(seen["count"] - self.first)

    def ended(self) -> Watched:
        """All that was seen."""
        seen, watched = self.page.evaluate(LOOK), self.watched
        watched.frames, watched.found = seen["count"] - self.first, seen["found"]
        watched.seconds = time.monotonic() - self.begin
        return watched


def filmed(playwright: Any, address: str, demo: Demo) -> bytes:
    """A demo's sample as a film of two pictures (MJPEG); browsers play it again and again."""
    from PIL import Image

    from build_scripts.setup.chromium import launch_options

    url = json.loads((SITE / "manifest.json").read_text())["assets"][demo.sample]["url"]
    browser = playwright.chromium.launch(**launch_options())
    try:
        page = browser.new_page()
        page.goto(f"{address}/browser", wait_until="commit")
        drawn = page.evaluate(DRAW, [f"{address}{url}", SIDE])
    finally:
        browser.close()
    with Image.open(BytesIO(bytes(drawn))) as picture:
        data = BytesIO()
        picture.convert("RGB").save(data, "JPEG", quality=92)
    return data.getvalue() * 2
