"""Face detection on a photo in headless Chromium, once per backend, as a table and a picture, or as JSON."""

import contextlib
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageOps
from playwright.sync_api import Browser, Page

from build_scripts.errors import BuildError
from build_scripts.judge.backends import inference_backends
from build_scripts.paths import BUILD, IMAGES, ROOT
from build_scripts.setup.chromium import driver, launch_options
from build_scripts.site.serving import running_server
from server.settings import Settings

LIMIT_S = 120
MIN_IOU = 0.9  # how well the backends' boxes must agree
PICTURE = BUILD / "demo-headless.png"
COLOURS = ((255, 190, 0), (0, 200, 255), (0, 220, 120), (240, 90, 200))  # of the backends in order


@dataclass(frozen=True)
class Outcome:
    """What the page reported for one backend: its result, or why there is none."""

    backend: str
    result: dict[str, Any] | None
    error: str

    @property
    def ran(self) -> bool:
        """Whether the page ran on this very backend."""
        return self.result is not None and self.result["backend"] == self.backend

    @property
    def found(self) -> bool:
        """Whether the page ran on this very backend and saw a face."""
        return self.result is not None and self.result["backend"] == self.backend and bool(self.result["faces"])


@dataclass(frozen=True)
class Asked:
    """What to look at: a photo (None: the sample), a model of the page (empty: its first); whether to tell JSON."""

    photo: Path | None = None
    model: str = ""
    json: bool = False


def run_headless(isolated: bool, asked: Asked = Asked()) -> int:
    """0 when every backend found the sample's face, or ran on the given photo, and the boxes agree."""
    with running_server(Settings(isolated=isolated)) as address, driver() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        try:
            if not asked.json:
                print(f"\nChromium {browser.version}, {address}")
            outcomes = [detect(browser, address, backend, asked) for backend in inference_backends()]
        finally:
            browser.close()
    if asked.json:
        print(json.dumps({"photo": str(asked.photo or ""), "results": [facts_of(outcome) for outcome in outcomes]}))
        with contextlib.redirect_stdout(sys.stderr):
            return verdict(outcomes, asked.photo is None)
    print_table(outcomes)
    annotate(outcomes, PICTURE, asked.photo or IMAGES / "astronaut.png")
    print(f"\npicture: {PICTURE.relative_to(ROOT)}")
    return verdict(outcomes, asked.photo is None)


def facts_of(outcome: Outcome) -> dict[str, Any]:
    """What --json prints of a backend: backend, model, reason, faces in pixels, times in ms; or the error."""
    if outcome.result is None:
        return {"backend": outcome.backend, "error": outcome.error}
    keys = ("backend", "model", "reason", "faces", "times", "first_ms")
    return {key: outcome.result[key] for key in keys if key in outcome.result}


def detect(browser: Browser, address: str, backend: str, asked: Asked = Asked()) -> Outcome:
    """Opens the page for one backend and waits for its machine-readable result."""
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        page.goto(f"{address}/face-detection?backend={backend}{f'&model={asked.model}' if asked.model else ''}")
        error, result = said(page, LIMIT_S)
        if result and asked.photo:
            page.set_input_files("#file", asked.photo)
            error, result = said(page, LIMIT_S, json.loads(result)["count"])
        if error:
            return Outcome(backend, None, readable(error))
        if result:
            return Outcome(backend, json.loads(result), "; ".join(complaints))
        return Outcome(backend, None, f"no result within {LIMIT_S} s; console: {complaints or 'silent'}")
    finally:
        page.close()


def said(page: Page, limit_s: float, after: int = 0) -> tuple[str, str]:
    """The error, or the first result behind number `after`, that a page says, as JSON; empty texts if none comes."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        # The page's strict CSP forbids wait_for_function, which evaluates text inside the page.
        data = page.evaluate("() => ({...document.documentElement.dataset})")
        error, result = data.get("webinferError", ""), data.get("webinferResult", "")
        if error or (result and json.loads(result).get("count", 1) > after):
            return error, result
        page.wait_for_timeout(50)
    return "", ""


def readable(text: str) -> str:
    """The page's failure, which is JSON {"code", "message"}, as one text."""
    try:
        failure = json.loads(text)
        return f"{failure['code']}: {failure['message']}"
    except (ValueError, KeyError, TypeError):
        return text


def print_table(outcomes: list[Outcome]) -> None:
    """One line per face, in pixels and milliseconds."""
    head = ("backend", "left", "top", "width", "height", "score", "prepare", "infer", "decode", "first")
    print("\n" + "{:8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>11}{:>11}{:>11}{:>11}".format(*head))
    for outcome in outcomes:
        if outcome.result is None:
            print(f"{outcome.backend:8} failed")
            continue
        times = [float(outcome.result["times"][f"{key}_ms"]) for key in ("prepare", "infer", "decode")]
        clock = "".join(f"{ms:8.2f} ms" for ms in (*times, float(outcome.result.get("first_ms") or 0)))
        for face in outcome.result["faces"]:
            box = "".join(f"{face['box'][side]:8.1f}" for side in ("left", "top", "width", "height"))
            print(f"{outcome.result['backend']:8}{box}{face['score']:8.3f}{clock}")
        if not outcome.result["faces"]:
            print(f"{outcome.result['backend']:8} no face{clock}")
    for outcome in outcomes:
        if outcome.result is not None:
            print(f"{outcome.backend}: {outcome.result['reason']}")


def annotate(outcomes: list[Outcome], target: Path, photo: Path) -> None:
    """Draws every backend's boxes and keypoints over the photo."""
    picture = ImageOps.exif_transpose(Image.open(photo)).convert("RGB")
    draw = ImageDraw.Draw(picture)
    for inset, outcome in enumerate(outcomes):
        colour, width = COLOURS[inset % len(COLOURS)], max(4 - 2 * inset, 1)
        for face in (outcome.result or {"faces": []})["faces"]:
            left, top = face["box"]["left"], face["box"]["top"]
            right, bottom = left + face["box"]["width"], top + face["box"]["height"]
            draw.rectangle((left, top, right, bottom), outline=colour, width=width)
            draw.text((left + 4, top - 12 * (inset + 1)), f"{outcome.backend} {face['score']:.3f}", fill=colour)
            for x, y in face["keypoints"].values():
                radius = width
                draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
    picture.save(target)


def verdict(outcomes: list[Outcome], faces: bool = True) -> int:
    """0 when all ran, found the face where there is one (`faces`) and agree; prints why not otherwise."""
    for outcome in outcomes:
        if not (outcome.found if faces else outcome.ran):
            used = outcome.result["backend"] if outcome.result else "none"
            print(f"FAILED: {outcome.backend} did not find the face (ran on: {used}) {outcome.error}")
        elif outcome.error:
            print(f"FAILED: {outcome.backend} left errors in the console: {outcome.error}")
    if not all((outcome.found if faces else outcome.ran) and not outcome.error for outcome in outcomes):
        return 1
    counts = {len(outcome.result["faces"]) for outcome in outcomes if outcome.result}
    if counts == {0} or len(counts) > 1:
        print(f"{'agreed: there is no face' if counts == {0} else f'FAILED: {sorted(counts)} faces were found'}")
        return int(counts != {0})
    boxes = [outcome.result["faces"][0]["box"] for outcome in outcomes if outcome.result]
    agreement = min(intersection_over_union(boxes[0], box) for box in boxes)
    print(f"{'agreed' if agreement >= MIN_IOU else 'FAILED'}: the boxes overlap by {agreement:.4f} (IoU)")
    return 0 if agreement >= MIN_IOU else 1


def intersection_over_union(a: dict[str, float], b: dict[str, float]) -> float:
    """The share of the two boxes' union that both cover."""
    if min(a["width"], a["height"], b["width"], b["height"]) < 0:
        raise BuildError(f"a box has a negative size: {a}, {b}")
    width = min(a["left"] + a["width"], b["left"] + b["width"]) - max(a["left"], b["left"])
    height = min(a["top"] + a["height"], b["top"] + b["height"]) - max(a["top"], b["top"])
    shared = max(width, 0) * max(height, 0)
    union = a["width"] * a["height"] + b["width"] * b["height"] - shared
    return shared / union if union else 0.0
