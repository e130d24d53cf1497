"""`measure startup`: from opening the page to its first result, on a first visit and on later ones, by phase."""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from build_scripts.bench.undriven import open_tab, undriven
from build_scripts.errors import BuildError
from build_scripts.judge.backends import inference_backends
from build_scripts.setup.sequence import set_up

# mark of the worker -> what was done between the mark before and this one
PHASES = {
    "webinfer begin": "page, worker",
    "webinfer runtime": "runtime compiled",
    "webinfer snapshot": "snapshot read",
    "webinfer instance": "runtime linked",
    "webinfer python": "memory restored, Python",
    "webinfer model done": "model read",
    "webinfer compile started": "import, passes",
    "webinfer compile done": "plan, kernels",
    "webinfer ready": "warm-up",
    "webinfer result": "first detection",
}
TOTAL = "on the page"
ENGINE = "engine_worker"  # in the worker's address that has the marks
MARKS = """(() => {
  const marks = performance.getEntriesByType("mark").map(({ name, startTime }) => [name, startTime]);
  return JSON.stringify({ origin: performance.timeOrigin, marks });
})()"""
LIMIT_S = 120
ANSWER_S = 20
READY_S = 2  # after the browser's own start
ALONE_S = 3  # that a page starts in, without anybody who looks at it
SETTLE_S = 8  # after the first visit: the page keeps its snapshot and warms up, the browser keeps machine code

Times = dict[str, float]  # phase -> milliseconds since navigation at its end


def run(argv: list[str]) -> int:
    """Prints the table; the times are of this machine and whatever else it does meanwhile."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure startup")
    parser.add_argument("--visits", type=int, default=5, help="first visits, each with a new profile, and later ones")
    parser.add_argument("--backend", default="wasm", choices=("auto", *inference_backends()))
    parser.add_argument("--page", default="/face-detection", help="of the site (default /face-detection)")
    parser.add_argument("--json", type=Path, help="also write the times here")
    options = parser.parse_args(argv)
    set_up()
    cold, warm = measure(options.visits, f"{options.page}?backend={options.backend}")
    print(table(cold, warm))
    if options.json:
        machine = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
        figures = {"unit": "ms", "first": summary(cold), "later": summary(warm)}
        options.json.write_text(json.dumps({**machine, **figures}, indent=1) + "\n")
    return 0


def measure(visits: int, page: str) -> tuple[list[Times], list[Times]]:
    """The times of first visits, and of later ones in the profile of the last first one."""
    from build_scripts.setup.chromium import driver, launch_options
    from build_scripts.site.serving import running_server

    cold, warm = [], []
    options = launch_options(webgpu="wasm" not in page)
    with running_server() as address, driver() as playwright:
        for i in range(visits):
            last = i == visits - 1
            with undriven(options) as browser:
                time.sleep(READY_S)
                cold.append(visit(playwright, browser.address, address + page, SETTLE_S if last else 0))
                warm = [visit(playwright, browser.address, address + page) for _ in range(visits if last else 0)]
    return cold, warm


def visit(playwright: Any, browser: str, url: str, stay_s: float = 0) -> Times:
    """The times of one visit in a new tab that is closed `stay_s` seconds after it was first shown."""
    open_tab(browser, url)
    time.sleep(ALONE_S)
    connection = playwright.chromium.connect_over_cdp(browser)
    page = next(page for context in connection.contexts for page in context.pages if page.url == url)
    times = times_of(page)
    page.wait_for_timeout(1000 * stay_s)
    page.close()
    connection.close()
    return times


def engine_marks(page: Any) -> Any:
    """Origin and marks of the engine's worker; Playwright does not find workers that it has not seen begin.

    Raises:  BuildError if there is none that answers
    """
    session = page.context.new_cdp_session(page)
    found: list[Any] = []
    said: list[Any] = []  # events too
    session.on("Target.attachedToTarget", lambda event: found.append((event["targetInfo"]["url"], event["sessionId"])))
    session.on("Target.receivedMessageFromTarget", lambda event: said.append(json.loads(event["message"])))
    session.send("Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False})
    question = json.dumps({"id": 1, "method": "Runtime.evaluate", "params": {"expression": MARKS}})
    deadline, asked = time.monotonic() + ANSWER_S, False
    while not any("result" in message for message in said) and time.monotonic() < deadline:
        page.wait_for_timeout(20)
        engine = next((target for url, target in found if ENGINE in url), None)
        if engine and not asked:
            session.send("Target.sendMessageToTarget", {"sessionId": engine, "message": question})
            asked = True
    if answer := next((message["result"]["result"] for message in said if "result" in message), None):
        return json.loads(answer["value"])
    raise BuildError(f"no worker of {page.url} says when it did what: {said}")


def times_of(page: Any, marks_in: Callable[[Any], Any] = engine_marks) -> Times:
    """What a page says of its start, when it has come to its end.

    Raises:  BuildError if it does not
    """
    deadline = time.monotonic() + LIMIT_S
    while not (data := page.evaluate("({...document.documentElement.dataset})")).get("webinferResult"):
        if data.get("webinferError") or time.monotonic() > deadline:
            raise BuildError(f"the page at {page.url} shows no result: {data.get('webinferError', 'nothing')}")
        page.wait_for_timeout(20)
    origin = page.evaluate("performance.timeOrigin")
    seen = marks_in(page)
    times = {PHASES[name]: at + seen["origin"] - origin for name, at in seen["marks"] if name in PHASES}
    return {**times, TOTAL: json.loads(data["webinferResult"])["first_ms"]}


def durations(times: Times) -> Times:
    """Milliseconds that each phase ended after the one before it, whichever that was in this visit."""
    ends = sorted(times.items(), key=lambda item: item[1])
    return {phase: end - before for (phase, end), (_, before) in zip(ends, [("", 0.0), *ends], strict=False)}


def summary(visits: list[Times]) -> dict[str, Any]:
    """The total's median, least and most; of each phase when it ended and what it took, as medians; every visit."""
    totals = [times[TOTAL] for times in visits]
    took = [durations(times) for times in visits]
    return {
        "total": {"median": statistics.median(totals), "min": min(totals), "max": max(totals)},
        "phases": [
            {"phase": phase, "end": _median(visits, phase), "took": _median(took, phase)}
            for phase in (*PHASES.values(), TOTAL)
            if any(phase in times for times in visits)
        ],
        "visits": visits,
    }


def _median(visits: list[Times], phase: str) -> float:
    return statistics.median(times[phase] for times in visits if phase in times)


def table(cold: list[Times], warm: list[Times]) -> str:
    """Medians of the times at which each phase ended, of what each took, and the range of the last."""
    sides = [summary(visits) for visits in (cold, warm)]
    columns = [{r["phase"]: f"{r['end']:.0f} ({r['took']:4.0f})" for r in side["phases"]} for side in sides]
    phases = [
        f"{phase:26}" + "".join(f"{column.get(phase, '–'):>16}" for column in columns)
        for phase in (*PHASES.values(), TOTAL)
    ]
    ranges = "".join(f"{side['total']['min']:.0f}–{side['total']['max']:.0f}".rjust(16) for side in sides)
    head = f"\nmilliseconds since navigation, medians of {len(cold)}; in brackets since the phase before"
    return "\n".join([head, f"{'':26}{'first visit':>16}{'later visit':>16}", *phases, f"{'range':26}{ranges}"])
