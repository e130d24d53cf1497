"""`judge soak`: the page detects for a long time while GPU, workers, server and stored files are broken under it."""

from __future__ import annotations

import argparse
import json
import time
from itertools import cycle
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.judge.backends import inference_backends
from build_scripts.judge.soak_judge import Record, Trouble, complaints, memory_growth, report
from build_scripts.judge.soak_page import TROUBLES, KilledServer, SoakPage, readable_error
from build_scripts.setup.sequence import set_up

LOOK_S = 0.1
ASK_AGAIN_S = 2.0  # without an answer on a page that runs; a camera would have sent its next picture
RETRY_S = 2.0  # between two presses of "Try again"


def run(argv: list[str]) -> int:
    """0 if every answer was right, the page always came back, and memory stayed flat."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts judge soak", description=(__doc__ or "").strip())
    parser.add_argument("--backend", choices=inference_backends(), default="wasm")
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default 30)")
    parser.add_argument("--every", type=float, default=120.0, help="seconds between two troubles (default 120)")
    parser.add_argument("--deadline", type=float, default=110.0, help="seconds that the page has to come back")
    parser.add_argument("--only", choices=tuple(TROUBLES), action="append", help="this trouble only; may be repeated")
    parser.add_argument("--pause", type=int, default=20, help="milliseconds between an answer and the next question")
    parser.add_argument("--seed", type=int, default=1, help="another seed damages in other places")
    parser.add_argument("--cameras", action="store_true", help="instead: every camera task looks at a film; memory")
    parser.add_argument("--lab", action="store_true", help="instead: hostile devices in the lab, beside an honest one")
    parser.add_argument("--task", action="append", help="of --cameras: this one only; may be repeated")
    parser.add_argument("--together", type=int, default=4, help="of --cameras: so many at a time (default 4)")
    parser.add_argument("--json", type=Path, help="write what was seen here too")
    options = parser.parse_args(argv)
    set_up()
    if options.lab:
        from build_scripts.judge.soak_lab import run_lab

        return run_lab(options)
    if options.cameras:
        from build_scripts.judge.soak_cameras import run_cameras

        return run_cameras(options)
    record = soaked(options)
    facts = {"backend": options.backend, "minutes": options.minutes, "every_s": options.every, "seed": options.seed}
    if options.json is not None:
        options.json.write_text(json.dumps(report(record, facts), indent=1) + "\n")
    return verdict(record)


def soaked(options: argparse.Namespace) -> Record:
    """What a soak with these options saw."""
    from build_scripts.setup.chromium import driver

    server = KilledServer()
    try:
        with driver() as playwright:
            page = SoakPage(playwright, server, f"?backend={options.backend}", options.pause, options.seed)
            try:
                print(f"Chromium {page.browser.version}, {server.address}, {options.backend}")
                return Soak(page, options.deadline).run(options.minutes, options.every, options.only or [*TROUBLES])
            finally:
                page.browser.close()
    finally:
        server.kill()


class Soak:
    """One soak: troubles in turns, and a watch on every answer."""

    def __init__(self, page: SoakPage, deadline_s: float) -> None:
        self.page, self.deadline_s = page, deadline_s
        self.record, self.begin = Record(), time.monotonic()
        self.last_right = self.last_asked = self.last_pressed = time.monotonic()

    def run(self, minutes: float, every_s: float, kinds: list[str]) -> Record:
        """What was seen; a line is printed for each trouble."""
        self.page.open()
        start = Trouble("start", "the page was opened", 0.0)
        self.come_back(start, 0.0)
        if start.recovered_s is None:
            raise BuildError(f"the page gives no answer: {start.said or self.page.console[-5:]}")
        self.say(start)
        end = time.monotonic() + 60 * minutes
        turns = cycle(kinds)
        while (due := time.monotonic() + every_s) <= end + every_s / 2 and time.monotonic() < end:
            self.calm(every_s / 4)  # so that what the page stores when it has settled is there
            self.cycle(self.next_trouble(turns, len(kinds)), due)
        return self.record

    def next_trouble(self, turns: cycle[str], kinds: int) -> Trouble:
        """Does the next thing in turn that can be done to this page."""
        for _ in range(kinds):
            kind = next(turns)
            at = time.monotonic()
            if what := self.do(kind):
                return Trouble(kind, what, at - self.begin)
        raise BuildError("none of these troubles can be made on this page")

    def do(self, kind: str) -> str:
        """What was done, "" if it could not be done; not before the page has just been right."""
        begin = time.monotonic()
        while not self.watch():  # answers until now belong to the time before
            if time.monotonic() - begin > self.deadline_s:
                self.stuck(f"no answer before the next trouble; console {self.page.console[-5:]}")
                begin = time.monotonic()
            self.page.page.wait_for_timeout(1000 * LOOK_S)
        return self.page.make(kind)

    def cycle(self, trouble: Trouble, due: float) -> None:
        """From one trouble to the next: back to a right answer, calm, memory."""
        self.record.troubles.append(trouble)
        self.come_back(trouble, TROUBLES[trouble.kind][1])
        self.calm(due - time.monotonic(), trouble)
        trouble.memory = self.page.memory()
        self.say(trouble)

    def come_back(self, trouble: Trouble, hold_s: float) -> None:
        """Waits for a right answer, pressing "Try again" where it is offered; opens it afresh if none comes."""
        begin = time.monotonic()
        while (now := time.monotonic()) - begin < self.deadline_s:
            if self.watch(trouble) and now - begin >= hold_s:
                trouble.recovered_s = now - begin
                return
            self.page.page.wait_for_timeout(1000 * LOOK_S)
        self.stuck(f"{trouble.what}; the page says {trouble.said or 'nothing'}; console {self.page.console[-5:]}")

    def calm(self, seconds: float, trouble: Trouble | None = None) -> None:
        """Watches answers come for a while; silence for longer than the deadline is a stuck page."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.watch(trouble)
            if time.monotonic() - self.last_right > self.deadline_s:
                self.stuck(f"silence in quiet times; console {self.page.console[-5:]}")
            self.page.page.wait_for_timeout(1000 * LOOK_S)

    def watch(self, trouble: Trouble | None = None) -> bool:
        """One look at the page: whether right answers have come since the last one."""
        now, seen, right = time.monotonic(), self.page.look(), False
        for answer in seen["answers"]:
            good = self.record.take(answer["boxes"], answer["backend"])
            right = right or good
            if trouble is not None:
                trouble.backend = answer["backend"]
        if right:
            self.last_right = now
        if trouble is not None and seen["error"]:
            self.note(trouble, readable_error(seen["error"]))
        if seen["retry"] and now - self.last_pressed > RETRY_S:
            self.last_pressed = now
            self.page.press("retry")
            if trouble is not None:
                trouble.pressed += 1
        elif seen["runs"] and not right and now - max(self.last_right, self.last_asked) > ASK_AGAIN_S:
            self.last_asked = now
            self.record.asked_again += 1
            self.page.press("use-sample")
        return right

    def note(self, trouble: Trouble, text: str) -> None:
        """Notes what the page said, once."""
        if text not in trouble.said:
            trouble.said.append(text)

    def stuck(self, what: str) -> None:
        """Notes a stuck page and opens it as on a first visit, so that the soak goes on and nothing is told twice."""
        self.record.stuck.append(what)
        print(f"STUCK: {what}")
        self.last_right = time.monotonic()
        self.page.open_afresh()

    def say(self, trouble: Trouble) -> None:
        """One line of progress."""
        back = "not back" if trouble.recovered_s is None else f"right after {trouble.recovered_s:5.1f} s"
        by = f", Try again × {trouble.pressed}" if trouble.pressed else ""
        memory = ", ".join(f"{part} {mib:.0f}" for part, mib in trouble.memory.items())
        print(f"{trouble.at_s:7.0f} s  {trouble.what}: {back}{by}, on {trouble.backend or '–'}  [{memory} MiB]")
        for said in trouble.said:
            print(f"           said {said}")


def verdict(record: Record) -> int:
    """Prints the sums; 0 if all held."""
    times = [t.recovered_s for t in record.troubles if t.recovered_s is not None]
    growth = memory_growth(record)
    print(f"{record.answers} answers ({record.backends}), {len(record.wrong)} wrong, {record.asked_again} asked again")
    print(f"{len(times)} of {len(record.troubles)} troubles overcome, the slowest in {max(times, default=0.0):.1f} s")
    print(f"memory {f'{growth[0]:.0f} → {growth[1]:.0f} MiB' if growth else 'not judged: too few cycles'}")
    found = complaints(record)
    for one in found:
        print(f"NOT HELD: {one}")
    return 1 if found else 0
