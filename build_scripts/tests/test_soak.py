"""`judge soak`: what it takes for right, for stuck and for flat, and how it waits; without a browser."""

from dataclasses import replace
from typing import Any

import pytest

from build_scripts.judge import soak, soak_page
from build_scripts.judge.soak_cameras import Watched
from build_scripts.judge.soak_judge import Record, Trouble, complaints, memory_growth, report

FACE = {"left": 100.0, "top": 50.0, "width": 80.0, "height": 90.0}
SHIFTED = {**FACE, "left": 101.0}  # IoU 0.975


def record(*memory: float, answers: int = 3) -> Record:
    made = Record()
    for _ in range(answers):
        made.take([FACE], "wasm")
    made.troubles = [Trouble("gpu", "x", 0.0, 1.0, memory={"renderer": mib, "gpu": 10.0}) for mib in memory or (1.0,)]
    return made


def test_a_quiet_soak_holds() -> None:
    assert complaints(record(*[100.0] * 9)) == []


@pytest.mark.parametrize("boxes", [[], [SHIFTED], [FACE, FACE]], ids=["no face", "elsewhere", "two faces"])
def test_another_answer_than_the_first_is_wrong(boxes: list[dict[str, float]]) -> None:
    made = record()
    assert not made.take(boxes, "webgpu")
    assert "1 of 4 answers were wrong" in complaints(made)[0]


def test_a_first_answer_without_a_face_is_wrong() -> None:
    made = Record()
    assert not made.take([], "wasm")
    assert made.take([FACE], "wasm")
    assert len(made.wrong) == 1


def test_stuck_pages_no_troubles_and_no_answers_are_told() -> None:
    made = record()
    made.stuck.append("a reload; the page says nothing")
    assert complaints(made) == ["the page was stuck: a reload; the page says nothing"]
    assert complaints(Record()) == ["there was no right answer at all", "nothing was done to the page"]


def test_memory_is_flat_up_to_a_tenth_by_medians_of_thirds() -> None:
    peak = [100.0, 900.0, 100.0, 110.0, 110.0, 110.0, 110.0, 110.0, 900.0]
    assert memory_growth(record(*peak)) == (110.0, 120.0)
    assert complaints(record(*peak)) == []
    assert "memory grew from 110 to 130 MiB" in complaints(record(*[100.0] * 3, *[110.0] * 3, *[120.0] * 3))[0]
    assert memory_growth(record(*[100.0] * 5)) is None


def test_the_report_holds_the_verdict_and_every_trouble() -> None:
    made = report(record(*[100.0] * 6), {"backend": "wasm"})
    assert (made["held"], made["backend"], made["answers"], len(made["troubles"])) == (True, "wasm", 3, 6)
    assert made["memory_mib"]["ratio"] == 1
    assert report(Record(), {})["held"] is False


class Page:
    """A page that answers after so many looks; before that it offers "Try again" at the looks named."""

    def __init__(self, silent_looks: int, retry_at: tuple[int, ...] = (), runs: bool = False) -> None:
        self.silent, self.retry_at, self.runs = silent_looks, retry_at, runs
        self.looks, self.opened, self.afresh, self.now, self.console = 0, 0, 0, 0.0, ["log: x"]
        self.pressed: list[str] = []
        self.page = self

    def wait_for_timeout(self, ms: float) -> None:
        self.now += ms / 1000

    def open(self) -> None:
        self.opened += 1

    def open_afresh(self) -> None:
        self.afresh += 1

    def press(self, button: str) -> None:
        self.pressed.append(button)

    def make(self, kind: str) -> str:
        return "" if kind == "thread" else f"did {kind}"

    def memory(self) -> dict[str, float]:
        return {"renderer": 100.0, "gpu": 10.0}

    def look(self) -> dict[str, Any]:
        self.looks += 1
        answers = [{"boxes": [FACE], "backend": "wasm"}] if self.looks > self.silent else []
        retry = self.looks in self.retry_at
        error = '{"code": "download", "message": "gone"}' if retry else ""
        return {"answers": answers, "error": error, "retry": retry, "runs": self.runs}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A soak of a made page, on the page's clock."""

    def soak_of(page: Page, deadline_s: float = 30.0) -> soak.Soak:
        monkeypatch.setattr(soak.time, "monotonic", lambda: page.now)
        return soak.Soak(page, deadline_s)  # type: ignore[arg-type]

    return soak_of


def test_the_page_comes_back_by_its_button(made: Any) -> None:
    page, trouble = Page(60, retry_at=(30, 31, 32)), Trouble("engine", "ended", 0.0)
    made(page).come_back(trouble, 0.0)
    assert trouble.recovered_s == pytest.approx(6.0)
    assert (trouble.pressed, page.pressed) == (1, ["retry"])
    assert trouble.said == ["download: gone"]


def test_right_answers_count_only_when_the_trouble_has_taken_hold(made: Any) -> None:
    trouble = Trouble("thread", "ended", 0.0)
    made(Page(0)).come_back(trouble, 3.0)
    assert trouble.recovered_s == pytest.approx(3.0, abs=0.2)


def test_a_page_that_runs_is_asked_again_and_one_without_an_answer_is_stuck(made: Any) -> None:
    page, trouble = Page(10_000, runs=True), Trouble("reload", "a reload", 0.0)
    watched = made(page, 10.0)
    watched.come_back(trouble, 0.0)
    assert trouble.recovered_s is None
    assert page.pressed == ["use-sample"] * watched.record.asked_again
    assert 3 <= watched.record.asked_again <= 5
    assert (page.opened, page.afresh) == (0, 1)
    assert "a reload" in watched.record.stuck[0]


def test_troubles_come_in_turns_and_what_cannot_be_done_is_left_out(
    made: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "TROUBLES", dict.fromkeys(soak.TROUBLES, (None, 0.0)))
    seen = made(Page(3)).run(2.0, 15.0, [*soak.TROUBLES])
    assert [t.kind for t in seen.troubles] == ["gpu", "engine", "server", "stored", "reload", "gpu", "engine", "server"]
    assert all(t.recovered_s is not None and t.memory for t in seen.troubles)
    assert soak.verdict(seen) == 0
    assert "did stored: right after" in capsys.readouterr().out
    assert soak.verdict(replace(seen, stuck=["here"])) == 1


def test_what_the_page_said_is_readable() -> None:
    assert soak_page.readable_error('{"code": "gpu", "message": "no"}') == "gpu: no"
    assert soak_page.readable_error("plain") == "plain"


def test_a_camera_s_memory_is_judged_once_the_browser_has_settled() -> None:
    filling = [100.0, 300.0, 500.0]
    flat = Watched("faces", 900, 600.0, 1, [*filling, *[500.0] * 27])
    assert (flat.growth(), flat.complaint()) == ((500.0, 500.0), "")
    growing = replace(flat, memory=[500.0 + 10 * i for i in range(30)])
    assert "grew from" in growing.complaint()
    assert replace(growing, seconds=50.0).growth() is None
    slow = replace(flat, memory=[*range(100, 550, 50), *[500.0] * 21], counts=[70 * i for i in range(30)])
    assert (slow.growth(), replace(slow, counts=[]).complaint()) == ((500.0, 500.0), "memory grew from 450 to 500 MiB")
    assert replace(flat, frames=0).complaint() == "no frame was answered"
    assert "NOT HELD: gpu: lost" in replace(flat, error="gpu: lost").row()
