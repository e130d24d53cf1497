"""Every demo of the site on its sample in headless Chromium, a row each; and their results for the home page."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from build_scripts.paths import BUILD, IMAGES, ROOT, STATIC
from build_scripts.setup.chromium import driver, launch_options
from build_scripts.site.headless import readable, said
from build_scripts.site.page_facts import page_facts
from build_scripts.site.serving import running_server
from server.settings import Settings
from server.studio import Demo, read_studio

LIMIT_S = 300  # a package of models may have to be fetched
RECORDED = STATIC / "recorded.json"
MODEL_BYTES = ROOT / "server" / "model_bytes.json"  # what a visitor downloads of models that the server has not fetched
MASK_SIDE = 48  # of a recorded mask
MISSING = "model-missing"


@dataclass(frozen=True)
class Seen:
    """What a demo said of its sample."""

    demo: Demo
    result: dict[str, Any] | None
    error: str  # "" if there is none
    missing: bool = False  # whether its model is not available here
    file: Any = None  # what the page hands out as JSON

    @property
    def found(self) -> list[Any]:
        """What was found in the sample."""
        lists = [value for value in (self.result or {}).values() if isinstance(value, list)]
        return lists[0] if lists else []

    def row(self) -> str:
        """A line of the table."""
        if self.result is None:
            return f"{self.demo.slug:24}{'missing' if self.missing else 'FAILED'}: {self.error}"
        times = self.result["times"]
        ms = sum(times[f"{part}_ms"] for part in ("prepare", "infer", "decode"))
        first = f"{self.result['first_ms'] / 1000:6.1f} s"
        return f"{self.demo.slug:24}{self.result['backend']:8}{len(self.found):>5} found{ms:10.1f} ms{first:>10} to it"


def run_all(isolated: bool, backend: str, record: bool) -> int:
    """0 when every demo whose model can be had found something in its sample, or has a sample with nothing in it."""
    settings = Settings(isolated=isolated)
    seen = []
    with running_server(settings) as address, driver() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        try:
            print(f"\nChromium {browser.version}, {address}")
            for demo in (demo for demo in read_studio(settings.tables).demos if demo.model):
                seen.append(look(browser, address, demo, backend))
                print(seen[-1].row(), flush=True)
            hero = look(browser, address, seen[0].demo, backend, IMAGES / "friends.webp")
        finally:
            browser.close()
    if record:
        known = json.loads(RECORDED.read_text())  # of demos whose models are not here
        RECORDED.write_text(
            json.dumps(known | recorded(seen) | {"hero": small(hero.file)}, separators=(",", ":")) + "\n"
        )
        MODEL_BYTES.write_text(json.dumps(json.loads(MODEL_BYTES.read_text()) | model_bytes(), indent=1) + "\n")
        print(f"recorded: {RECORDED.relative_to(ROOT)}")
    return 1 if any(one.error and not one.missing for one in seen) else 0


def model_bytes() -> dict[str, int]:
    """The bytes of each file that models of the site consist of, by its name, of those that are here."""
    files = sorted({file for files in page_facts()["models"].values() for file in files})
    return {file: (BUILD / file).stat().st_size for file in files if (BUILD / file).is_file()}


def look(browser: Browser, address: str, demo: Demo, backend: str, picture: Path | None = None) -> Seen:
    """Opens a demo's page and waits for what it finds in its sample, or in another picture."""
    page = browser.new_page()
    try:
        page.goto(f"{address}{demo.address}?backend={backend}&stallTimeout={LIMIT_S}")
        error, result = said(page, LIMIT_S)
        if error:
            return Seen(demo, None, readable(error), json.loads(error).get("code") == MISSING)
        if not result:
            return Seen(demo, None, f"no result within {LIMIT_S} s")
        if picture:
            page.set_input_files("#file", picture)
            error, result = said(page, LIMIT_S, json.loads(result)["count"])
        with page.expect_download() as download:
            page.get_by_role("button", name="Download JSON").click()
        return Seen(demo, json.loads(result), "", file=json.loads(download.value.path().read_text()))
    finally:
        page.close()


def recorded(seen: list[Seen]) -> dict[str, Any]:
    """The results by the demo's address, small enough for the home page."""
    return {one.demo.address: small(one.file) for one in seen if one.found}


def small(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what no drawing needs."""
    (name,) = (key for key, value in result.items() if isinstance(value, list))
    given = {key: result[key] for key in ("image", "beside") if key in result}
    kept: dict[str, Any] = json.loads(json.dumps(given), parse_float=lambda text: round(float(text), 2))
    return {**kept, "found": [_rounded(one) for one in result[name]]}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if key not in ("world", "anchors")}
        if {"start", "end"} <= set(kept):  # seconds
            return {key: round(one, 2) if isinstance(one, float) else one for key, one in kept.items()}
        if "pieces" in kept:  # a sentence
            del kept["values"]
        if {"width", "height", "values"} <= set(kept) and isinstance(kept["values"], list):
            return _mask(kept)
        return {key: _rounded(one) for key, one in kept.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return (round(value, 2) if abs(value) <= 1 else round(value)) if isinstance(value, float) else value


def _mask(mask: dict[str, Any]) -> dict[str, Any]:
    """Every so many pixels of a mask."""
    width, height = mask["width"], mask["height"]
    rows = [height * y // MASK_SIDE for y in range(MASK_SIDE)]
    columns = [width * x // MASK_SIDE for x in range(MASK_SIDE)]
    places = [width * y + x for y in rows for x in columns]
    kept: dict[str, Any] = {"bodies": _rounded(mask["bodies"])} if "bodies" in mask else {}
    for name in ("parts", "people") if "parts" in mask else ("values",):
        kept[name] = [round(mask[name][at], 1) for at in places]
    return {"width": MASK_SIDE, "height": MASK_SIDE, **kept}
