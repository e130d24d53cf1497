import pytest

from build_scripts.site.minify import minify, minify_shader

SOURCE = b'''"""A module.

Of several lines.
"""

from __future__ import annotations  # first

TEXT = """kept # not a comment"""


class Thing:
    """Only a docstring."""


def f(x: int) -> str:
    """Two
    lines."""
    # a comment of its own
    return f"{x}#{x}"  # behind
'''


def test_comments_and_docstrings_go_and_lines_stay() -> None:
    minified = minify(SOURCE)
    assert b"comment of" not in minified
    assert b"docstring" not in minified
    assert b"kept # not a comment" in minified
    assert len(minified.splitlines()) == len(SOURCE.splitlines())
    for number, line in enumerate(SOURCE.splitlines()):
        if b"return" in line or b"class" in line:
            assert minified.splitlines()[number].strip() == line.split(b"  #")[0].strip()
    assert b"def f(x):" in minified


def test_types_of_functions_go_and_those_of_fields_stay() -> None:
    source = b"class P:\n    x: int = 1\n\n\ndef f(a: tuple[int, str], *b: int, c: int = 1) -> int:\n    return []\n"
    lines = minify(source).splitlines()
    assert lines[1] == b" x:int=1"
    assert lines[4].replace(b" ", b"") == b"deff(a,*b,c=1):"


def test_types_over_several_lines_stay() -> None:
    source = b"def f(\n    a: dict[\n        str, int\n    ],\n) -> tuple[\n    int,\n]:\n    return (1,)\n"
    assert minify(source).replace(b" ", b"") == source.replace(b" ", b"")


def test_indentation_is_narrow_and_texts_keep_theirs() -> None:
    source = b'def f():\n    if 1:\n        return """a\n        b"""\n'
    assert minify(source) == b'def f():\n if 1:\n  return """a\n        b"""\n'


def test_the_program_does_the_same() -> None:
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    exec(SOURCE, before)
    exec(minify(SOURCE), after)
    assert after["f"](3) == before["f"](3) == "3#3"  # type: ignore[operator]
    assert after["TEXT"] == before["TEXT"]


def test_what_is_no_python_is_an_error() -> None:
    with pytest.raises(SyntaxError):
        minify(b"def f(:")


def test_shaders_lose_their_comments_and_keep_their_lines() -> None:
    source = b"// head: y = x / 2.\n\n{{ prelude }}\n$$ if half\nlet y = x / 2.0;  // not x // 2\n$$ endif\n"
    assert minify_shader(source) == b"\n\n{{ prelude }}\n$$ if half\nlet y = x / 2.0;\n$$ endif\n"
    with pytest.raises(ValueError, match="end with their line"):
        minify_shader(b"/* a\n b */")


def test_divisions_of_templates_are_no_comments() -> None:
    source = b"$$ set half = width // 2\nconst N = {{ width // 4 }}u; // quads, {{ of }} a row\n"
    assert minify_shader(source) == b"$$ set half = width // 2\nconst N = {{ width // 4 }}u;\n"


def test_types_of_variables_go_and_the_import_that_leaves_them_unread_too() -> None:
    source = b"from __future__ import annotations\nA: dict[str, int] = {}\n\n\ndef f():\n    x: list[str] = []\n"
    assert minify(source) == b"\nA={}\n\n\ndef f():\n x=[]\n"


def test_the_import_stays_where_fields_have_types() -> None:
    source = b"from __future__ import annotations\n\n\nclass P:\n    x: Unknown\n    y: DataDependentValue = 1\n"
    assert minify(source) == source.replace(b"    ", b" ").replace(b": ", b":").replace(b" = ", b"=")


def test_what_is_imported_for_types_goes_and_what_runs_stays() -> None:
    source = b"""from collections.abc import (
    Mapping,
    Sequence as S,
)
from typing import Any, Protocol


class P(Protocol):
    x: S[int]


def f(a: Mapping[str, Any]) -> Any:
    return a
"""
    lines = minify(source).splitlines()
    assert lines[:5] == [b"from collections.abc import Sequence as S", b"", b"", b"", b"from typing import Protocol"]
    assert len(lines) == len(source.splitlines())


def test_types_of_fields_go_where_nobody_reads_them() -> None:
    source = b"""from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class P:
    x: tuple[int, ...]
    y: float = 0.5
    kind: ClassVar[str] = "p"
"""
    minified = minify(source, field_types=False)
    assert b" x:0\n y:0=0.5\n kind:ClassVar[str]" in minified
    found: dict[str, object] = {"__name__": __name__}
    exec(minified, found)
    assert found["P"]((1, 2)) == found["P"]((1, 2), 0.5)  # type: ignore[operator]


def test_spaces_stay_where_words_would_run_together_and_in_texts() -> None:
    source = b"x = 1 if 2 in {1 , 2} else -1\ny = f'{x = } , {x} ' 'a , b'\nz = not x or y\n"
    assert minify(source) == b"x=1 if 2 in{1,2}else-1\ny=f'{x = } , {x} ' 'a , b'\nz=not x or y\n"


def test_dataclasses_keep_a_docstring_which_they_would_write_themselves() -> None:
    head = b"import dataclasses\n\n\n@dataclasses.dataclass(frozen=True)\n"
    source = head + b'class P:\n    """A point.\n\n    Plain."""\n\n    x: int\n'
    names: dict[str, type] = {}
    exec(minify(source), names)
    assert names["P"].__doc__ == " "
    assert len(minify(source).splitlines()) == len(source.splitlines())
