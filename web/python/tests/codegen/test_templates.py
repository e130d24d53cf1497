"""Rendering: plain values only, one key for one text, and the house rules of the shader files."""

from __future__ import annotations

import enum
import re
from pathlib import Path

import jinja2
import pytest

from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import Access, Slot, prelude, u32
from webinfer.codegen.templates import check_variables, digest, render, shader_folder

SHADERS = sorted(shader_folder().rglob("*.wgsl"))
SLOTS = (Slot("x", Element.F32, Access.READ), Slot("y", Element.F32, Access.WRITE))
PARAMS = u32(count=12)


class Word(enum.StrEnum):
    PLAIN = "plain"
    TO_BOOL = "to_bool"


def test_a_cast_is_rendered() -> None:
    shader = render("cast", {"workgroup": 64, "rule": Word.PLAIN}, SLOTS, PARAMS)
    assert "const WG: u32 = 64u;" in shader.code
    assert "fn convert(x: x_v) -> y_v { return y_v(x); }" in shader.code
    assert "{{" not in shader.code
    assert "$$" not in shader.code


def test_booleans_are_written_as_wgsl_writes_them() -> None:
    variables = {"workgroup": 64, "rank": 1, "update": False}
    assert "False" not in render("strided_copy", variables, SLOTS, PARAMS).code


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("1; fn evil() {}", TypeError),
        (None, TypeError),
        ([1], TypeError),
        (float("inf"), ValueError),
        (float("nan"), ValueError),
    ],
)
def test_values_that_could_carry_code_are_refused(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="shader cast: rule"):
        render("cast", {"workgroup": 64, "rule": value}, SLOTS, PARAMS)  # type: ignore[dict-item]


def test_a_missing_variable_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="workgroup"):
        render("cast", {"rule": Word.PLAIN}, SLOTS, PARAMS)


def test_equal_requests_have_one_digest_and_every_difference_another() -> None:
    head = prelude(SLOTS, PARAMS)
    base = digest("cast", {"workgroup": 64, "rule": Word.PLAIN}, head)
    assert base == digest("cast", {"rule": Word.PLAIN, "workgroup": 64}, head)
    others = [
        digest("cast", {"workgroup": 32, "rule": Word.PLAIN}, head),
        digest("cast", {"workgroup": 64, "rule": Word.TO_BOOL}, head),
        digest("cast", {"workgroup": 64, "rule": Word.PLAIN, "more": True}, head),
        digest("cast", {"workgroup": 64, "rule": Word.PLAIN}, head + " "),
        digest("class_test", {"workgroup": 64, "rule": Word.PLAIN}, head),
    ]
    assert base not in others
    assert len(set(others)) == len(others)


def test_an_include_is_part_of_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    from webinfer.codegen import templates

    texts = {"whole.wgsl": '// one\n{$ include "_part.wgsl" $}\n// three\n', "_part.wgsl": "// two\n"}
    monkeypatch.setattr(templates, "_texts", lambda: texts)
    assert templates._source("whole.wgsl") == "// one\n// two\n// three\n"
    before = digest("whole", {}, "")
    templates._source.cache_clear()
    templates._source_digest.cache_clear()
    texts["_part.wgsl"] = "// 2\n"
    assert digest("whole", {}, "") != before


def test_numbers_and_words_pass() -> None:
    check_variables("any", {"a": 1, "b": 1.5, "c": True, "d": Word.PLAIN})


# ----- the shader files themselves


@pytest.mark.parametrize("path", SHADERS, ids=lambda p: p.stem)
def test_a_file_opens_with_its_name_and_contract(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines[0].startswith(f"// {path.stem}: ")
    if not path.name.startswith("_"):
        head = path.read_text().split("{{ prelude }}")[0]
        assert "//   Dispatch: " in head or "one invocation does it all" in head


MACRO = re.compile(r"\{\{ \w+\([^{}]*\) \}\}")
HEAD = re.compile(
    r"const [A-Z_0-9]+: [ui]32 = \{\{ [^{}]+ \}\}u?;( // .*)?"
    r"|var<workgroup> .*;( // .*)?"
    r"|\s*for \(.* \+= \{\{ \w+ \}\}u\) \{"
)


@pytest.mark.parametrize("path", SHADERS, ids=lambda p: p.stem)
def test_values_stand_only_in_the_head(path: Path) -> None:
    """`{{ prelude }}` once, then constants and sizes of workgroup memory; below them plain WGSL.

    `$$ if` stands around whole statements. A loop that is written out says by how much it goes on.

    An operator's `{{ formula }}` stands alone in its line, and so does a macro: text that a shader needs twice.

    Inside `$$ for`, which writes registers out, the loop's counters stand in names and numbers.
    """
    text, loops = path.read_text(), 0
    for line in text.splitlines():
        word = line.strip().split(" ")[1] if line.strip().startswith("$$ ") else ""
        loops += {"for": 1, "endfor": -1}.get(word, 0)
        if "{{" in line and not loops:
            assert line in ("{{ prelude }}", "{{ formula }}") or HEAD.fullmatch(line) or MACRO.fullmatch(line), line
    assert text.count("{{ prelude }}") == (0 if path.name.startswith("_") else 1)


# Two ways to walk, each with two ways to load; kernels by hand whose inner choices belong to one of their ways.
NESTED = ("attention", "layer_norm", "matmul_tiled", "reduce_part")


@pytest.mark.parametrize("path", SHADERS, ids=lambda p: p.stem)
def test_conditions_are_not_nested(path: Path) -> None:
    depth = 0
    for line in path.read_text().splitlines():
        word = line.strip().split(" ")[1] if line.strip().startswith("$$ ") else ""
        depth += {"if": 1, "endif": -1}.get(word, 0)
        assert depth <= (2 if path.stem in NESTED or path.stem.startswith("_epilogue") else 1), line
    assert depth == 0


@pytest.mark.parametrize("path", SHADERS, ids=lambda p: p.stem)
def test_no_early_return_stands_before_a_barrier(path: Path) -> None:
    main = path.read_text().partition("fn main(")[2]
    assert not re.search(r"return; \}.*\b(workgroupBarrier|joined)\(", main, re.DOTALL)
