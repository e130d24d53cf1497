"""Numbers that choose between kernels, sizes or costs say beside them what they are, and where they come from."""

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[2] / "webinfer"
ROOMS = ("backends", "passes", "plan", "rewrite", "tune")


def is_number(node: ast.expr) -> bool:
    """Whether the expression is a number, or a tuple of numbers, that is written out."""
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.Tuple(elts=elements):
            return bool(elements) and all(map(is_number, elements))
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
    return False


def unexplained(source: str) -> Iterator[str]:
    """The numeric constants of a module without a comment on their lines, or above them and those of the same block."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    commented = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    alone = {number for number in commented if source.splitlines()[number - 1].startswith("#")}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not is_number(node.value):
            continue
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if node.lineno - 1 in alone:
            alone.add(lines[-1])
        elif not commented.intersection(lines):
            yield ast.unparse(node)


@pytest.mark.parametrize("room", ROOMS)
def test_every_number_of_a_room_is_explained(room: str) -> None:
    files = sorted((ENGINE / room).rglob("*.py"))
    found = {file.name: texts for file in files if (texts := list(unexplained(file.read_text(encoding="utf-8"))))}
    assert not found, "say in a comment what the number is of, and where it comes from: a measurement, a specification"


def test_numbers_without_a_comment_are_found() -> None:
    source = (
        "A = 1  # of a kind\nB = 2\n\nC = -(1 << 4), 2.0\n# Of both:\nD = 3\nE = 4\n\nF = 5\nG = True\nH = len('x')\n"
    )
    assert list(unexplained(source)) == ["B = 2", "C = (-(1 << 4), 2.0)", "F = 5"]
