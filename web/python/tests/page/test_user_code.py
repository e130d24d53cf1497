"""Code that a user of a page runs: its own names, output, lines of errors, what it leaves behind."""

from __future__ import annotations

import array
import sys
from typing import Any

import pytest
from tests.ops.case_graphs import run
from tests.tasks.photos import photo

import webinfer
from webinfer.errors import ClosedError
from webinfer.page import user_code
from webinfer.page.user_code import UserCode
from webinfer.tasks import TASKS, AudioClassifier, FaceDetector, VoiceActivityDetector
from webinfer.tasks.audio import AudioSegment


class Page:
    """A page that runs code and hears what it tells."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.code = UserCode(lambda kind, *buffers, **fields: self.told.append((kind, {**fields, "buffers": buffers})))

    def run(self, *lines: str, picture: Any = None) -> dict[str, Any] | None:
        size = None if picture is None else {"width": 512, "height": 512}
        given = None if picture is None else {"picture": picture}
        return run(self.code.run("\n".join(lines), given, size, FaceDetector.result))

    @property
    def printed(self) -> str:
        return "".join(fields["text"] for kind, fields in self.told if kind == "printed")


@pytest.fixture
def page() -> Page:
    return Page()


def test_code_awaits_prints_and_shows_its_last_value(page: Page) -> None:
    assert page.run("import asyncio", "await asyncio.sleep(0)", "print('a', end='')", "print('b')", "6 * 7") is None
    assert page.printed == "ab\n42\n"
    assert page.run("'text without a line'") is None
    assert page.printed.endswith("42\ntext without a line\n")


def test_each_run_has_names_of_its_own(page: Page) -> None:
    before = {*vars(user_code)}
    assert page.run("x = 1", "self = TASKS = FILE = None", "def _execute(): pass", "show = display = None") is None
    assert {*vars(user_code)} == before
    assert user_code.TASKS is TASKS
    problem = page.run("display(2)", "print(x)")
    assert problem
    assert problem["line"] == 2
    assert "NameError" in problem["text"]
    assert page.printed == "2\n"


def test_what_is_written_to_errors_is_printed_and_streams_are_given_back(page: Page) -> None:
    streams = sys.stdout, sys.stderr
    assert page.run("import sys", "sys.stderr.write('warned')", "raise ValueError('v')")
    assert page.printed == "warned"
    assert (sys.stdout, sys.stderr) == streams


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        (["a = 1", "b = = 2"], 2, "SyntaxError"),
        (["if True:", "x = 1"], 2, "IndentationError"),
        (["def f():", "    return 1 / 0", "", "f()"], 2, "ZeroDivisionError"),
        (["import webinfer", "", "await webinfer.pipeline('nothing')"], 3, "there is no task 'nothing'"),
        (["import sys", "sys.exit(3)"], 2, "SystemExit: 3"),
        (["raise KeyboardInterrupt"], 1, "KeyboardInterrupt"),
        (["def f(): f()", "f()"], 1, "RecursionError"),
        (["show([1])"], 1, "show draws what a task found"),
    ],
)
def test_errors_point_at_the_line_and_show_no_lines_but_the_user_s(
    page: Page, lines: list[str], line: int, words: str
) -> None:
    problem = page.run(*lines)
    assert problem
    assert problem["line"] == line
    assert words in problem["text"]
    assert ".py" not in problem["text"]
    assert len(problem["text"]) < 2000
    assert page.run("print('goes on')") is None
    assert page.printed == "goes on\n"


def test_every_line_on_the_way_to_an_error_is_shown(page: Page) -> None:
    problem = page.run("def f():", "    raise ValueError('v')", "f()")
    assert problem
    assert 'File "your code", line 3, in <module>\n    f()\n' in problem["text"]
    assert "File \"your code\", line 2, in f\n    raise ValueError('v')\n" in problem["text"]
    assert problem["text"].endswith("ValueError: v\n")


def test_output_has_an_end(page: Page) -> None:
    assert page.run("for i in range(100_000): print(i)") is None
    assert len(page.told) <= user_code.MOST / user_code.LEAST
    assert page.printed.endswith("… what is printed from here on is left out\n")
    page.told.clear()
    assert page.run("print('x' * 10_000_000)") is None
    assert len(page.printed) < user_code.MOST + 100


def test_what_a_task_found_is_drawn_as_its_page_draws_it(page: Page) -> None:
    lines = [
        "import webinfer",
        "task = await webinfer.pipeline('face-detection', 'blazeface_short_range', backend='wasm')",
        "found = await task.run(picture)",
        "show(found)",
        "show([])",
        "print(len(found), *task.times)",
    ]
    assert page.run(*lines, picture=photo("astronaut.png")) is None
    (first, shown), (second, nothing), _ = page.told
    assert first == second == "shown"
    assert shown["image"] == {"width": 512, "height": 512}
    assert shown["result"]["name"] == "faces"
    assert nothing["found"] == []
    (face,) = shown["found"]
    assert set(face) == {field["name"] for field in shown["result"]["fields"]}
    assert page.printed == "1 prepare_ms infer_ms decode_ms\n"


def test_numbers_in_bulk_are_shown_as_buffers(page: Page) -> None:
    lines = ["from webinfer.tasks import Mask", "show(Mask(2, 1, memoryview(b'ab')))"]
    assert page.run(*lines, picture="a picture") is None
    ((kind, shown),) = page.told
    assert (kind, shown["result"]["kind"]) == ("shown", "mask")
    assert shown["found"] == [{"width": 2, "height": 1, "values": {"array": 0}}]
    assert shown["buffers"] == (b"ab",)


def test_every_task_s_results_can_be_shown() -> None:
    for task in set(TASKS.values()) - {AudioClassifier}:
        (kind,) = task.__orig_bases__[0].__args__  # type: ignore[attr-defined]
        assert user_code._schema([kind.__new__(kind)]) == task.result
    assert user_code._schema([1]) is None


def test_segments_of_a_recording_are_shown_by_what_they_tell() -> None:
    assert user_code._schema([AudioSegment(0.0, 1.0, 0.9)]) == VoiceActivityDetector.result
    assert user_code._schema([AudioSegment(0.0, 1.0, 0.9, "Speech")]) == AudioClassifier.result


def test_the_next_run_closes_what_the_last_one_made(page: Page) -> None:
    mine = run(FaceDetector.create("blazeface_short_range", backend="wasm"))
    kept: list[Any] = []
    webinfer.kept = kept  # type: ignore[attr-defined]
    try:
        lines = [
            "import webinfer",
            "task = await webinfer.pipeline('face-detection', 'blazeface_short_range', backend='wasm')",
            "webinfer.register_operator('my.double', wgsl='load_x(i) * 2.0', reference=lambda x: x * 2)",
            "webinfer.kept.append(task)",
        ]
        assert page.run(*lines) is None
        assert page.run(*lines) is None  # the operator's name is free again
        image = photo("astronaut.png")
        with pytest.raises(ClosedError):
            run(kept[0].run(image))
        assert run(kept[1].run(image))
        page.code.close()
        with pytest.raises(ClosedError):
            run(kept[1].run(image))
        assert run(mine.run(image))
        assert "my.double" not in webinfer.operators()
    finally:
        del webinfer.kept  # type: ignore[attr-defined]
        mine.close()


def test_values_are_displayed_in_few_words(capsys: pytest.CaptureFixture[str]) -> None:
    tensor = webinfer.Tensor(array.array("f", [0.5, -1, 2, 3]), (2, 2), webinfer.DType.FLOAT32)
    user_code.display(
        tensor, {"scores": array.array("i", range(20))}, [1, 2.5], {"ms": 8.384999997}, ["a", [1]], None, b"", object
    )
    assert capsys.readouterr().out.splitlines() == [
        "float32 (2, 2), -1 to 3: 0.5, -1, 2, 3",
        "scores: i (20,), 0 to 19: 0, 1, 2, 3, 4, 5, 6, 7, …",
        "[1, 2.5]",
        "ms: 8.385",
        "a",
        "[1]",
        "None",
        "B (0,): ",
        "<class 'object'>",
    ]
