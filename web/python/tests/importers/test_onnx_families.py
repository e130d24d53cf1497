"""Operators of ONNX and the modules that convert them: every one in one family, and imported when a model needs it."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from webinfer.importers.onnx import families

ROOM = Path(families.__file__).parent


def test_no_operator_is_in_two_families() -> None:
    assert [name for name, count in Counter(list(families.CONVERTERS)).items() if count > 1] == []


def test_every_module_with_converters_is_a_family() -> None:
    having = {path.stem for path in ROOM.glob("*.py") if "\nCONVERTERS: dict" in path.read_text()}
    assert having == set(families.FAMILIES)
    assert len(families.FAMILIES) == len(having)


def test_an_unknown_operator_has_no_converter() -> None:
    assert "Conv" in families.CONVERTERS
    assert families.CONVERTERS.get("com.example.Conv") is None


@pytest.mark.parametrize(("operator", "family"), [("Conv", "conv"), ("LSTM", "recurrent")])
def test_an_operator_imports_no_family_that_stands_behind_its_own(operator: str, family: str) -> None:
    behind = families.FAMILIES[families.FAMILIES.index(family) + 1 :]
    code = (
        "import sys; from webinfer.importers.onnx.families import CONVERTERS\n"
        f"assert {operator!r} in CONVERTERS\n"
        f"print([name for name in {behind!r} if 'webinfer.importers.onnx.' + name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOM.parents[2])
    assert done.stdout.strip() == "[]"
