"""Operators without their test cases: what the pages' engine holds of them."""

import functools
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from build_scripts.paths import ENGINE, ROOT
from build_scripts.site.shed import without_cases
from webinfer.graph.ir import Op
from webinfer.ops import OPS

SOURCES = {path.name: path.read_bytes() for path in (ENGINE / "ops").glob("*.py")}
TOLD = """
import importlib.machinery, json, sys

class Here:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.machinery.PathFinder.find_spec(name, ["."]) if name.startswith("webinfer.ops.") else None

sys.meta_path.insert(0, Here)
from webinfer.ops import OPS
from build_scripts.tests.test_shed import rows_of
print(json.dumps([rows_of(OPS), sum(len(op.cases) for op in OPS.values())]))
"""


@functools.cache
def shed() -> dict[str, bytes]:
    """The operators' modules without cases."""
    return without_cases(SOURCES)


def rows_of(operators: Mapping[str, Op]) -> dict[str, list[str]]:
    """What an operator is, by its name."""
    return {
        name: [
            repr(op.attrs), op.infer.__qualname__, op.cost.__qualname__, repr(op.tolerance),
            repr([r.__name__ for r in op.types]), repr(getattr(op, "formula", "")), repr(getattr(op, "bounds", "")),
        ]
        for name, op in operators.items()
    }  # fmt: skip


def test_operators_are_the_same_but_have_no_cases(tmp_path: Path) -> None:
    for name, data in shed().items():
        (tmp_path / name).write_bytes(data)
    environment = {"PYTHONPATH": f"{ROOT}:{ENGINE.parent}"}
    told = subprocess.run([sys.executable, "-c", TOLD], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert sum(len(op.cases) for op in OPS.values()) > 1000
    assert json.loads(told.stdout) == [rows_of(OPS), 0]


def test_nothing_that_makes_cases_is_left_and_no_line_moves() -> None:
    for name, data in shed().items():
        assert b"Case(" not in data, name
        assert len(data.splitlines()) == len(SOURCES[name].splitlines()), name


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("X = Op(1, 2, 3, 4, 5, (Case(6),), types=())", "X = Op(1, 2, 3, 4, 5, (), types=())"),
        ("X = _op('x', int, Case(1),\n  Case(2),\n)", "X = _op('x', int\n,\n)"),
        ("def _a() -> tuple[Case, ...]:\n  return ()\nX = f(1, more=_a())", "\n\nX = f(1, more=())"),
        ("_B = [1]\n_A = _B\nX = 1", "\n\nX = 1"),
        ("def f():\n  c = []\n  if 1:\n    c += [2]\n  return 1", "def f():\n  pass\n  if 1:\n    pass\n  return 1"),
        ("def f():\n  c = []\n  c.append(2)\n  return c", "def f():\n  c = []\n  c.append(2)\n  return c"),
        (
            "def f(a, cases):\n  return Op(1, 2, 3, 4, 5, cases)\nf(1, (2,))",
            "def f(a, cases):\n  return Op(1, 2, 3, 4, 5, ())\nf(1, ())",
        ),
    ],
)  # fmt: skip
def test_only_what_cases_need_goes(source: str, left: str) -> None:
    assert without_cases({"x.py": source.encode()})["x.py"].decode() == left
