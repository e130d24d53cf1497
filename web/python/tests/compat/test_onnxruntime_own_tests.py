"""What ONNX Runtime's own tests of its Python interface check, written anew; each runs on stand-in and original.

The list is that of onnxruntime_test_python.py and onnxruntime_test_python_iobinding.py without what needs a GPU or
another provider. What the stand-in does not do is listed in ABSENT with its reason, which the documentation repeats.
"""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.compat import option_checks, session_checks, value_checks  # noqa: F401  # which fill the list
from tests.compat.own_checks import ABSENT, CHECKS, ORIGINAL, STAND_IN, Check

from build_scripts.paths import ROOT


def _called(function: Check, name: str, tmp_path, monkeypatch) -> None:
    ort = pytest.importorskip(name)
    given = {"tmp_path": tmp_path, "monkeypatch": monkeypatch}
    taken = {key: given[key] for key in function.__code__.co_varnames[2 : function.__code__.co_argcount]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function(ort, importlib.import_module(f"{name}.capi.onnxruntime_pybind11_state"), **taken)


@pytest.mark.parametrize("name", CHECKS)
def test_the_original_does_it(name: str, tmp_path, monkeypatch) -> None:
    _called(CHECKS[name][0], ORIGINAL, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", [name for name, (_, absent) in CHECKS.items() if not absent])
def test_the_stand_in_does_it(name: str, tmp_path, monkeypatch) -> None:
    _called(CHECKS[name][0], STAND_IN, tmp_path, monkeypatch)


@pytest.mark.parametrize("library", [ORIGINAL, STAND_IN])
@pytest.mark.parametrize("name", value_checks.BESIDE)
def test_what_its_tests_leave_out(name: str, library: str, tmp_path, monkeypatch) -> None:
    _called(value_checks.BESIDE[name], library, tmp_path, monkeypatch)


def test_adapters_can_be_exchanged(tmp_path) -> None:
    original, own = pytest.importorskip(ORIGINAL), importlib.import_module(STAND_IN)
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    for writer, reader in ((original, own), (own, original)):
        made = writer.AdapterFormat()
        made.set_parameters({"w": writer.OrtValue.ortvalue_from_numpy(array)})
        made.export_adapter(str(tmp_path / "adapter"))
        found = reader.AdapterFormat.read_adapter(str(tmp_path / "adapter")).get_parameters()
        assert np.array_equal(found["w"].numpy(), array)


@pytest.mark.parametrize("name", [name for name, (_, absent) in CHECKS.items() if absent])
def test_what_the_stand_in_does_not_do_fails_with_an_error(name: str, tmp_path, monkeypatch) -> None:
    with pytest.raises((Exception, AssertionError)):
        _called(CHECKS[name][0], STAND_IN, tmp_path, monkeypatch)


def test_the_documentation_counts_what_is_there_and_what_is_not() -> None:
    page = (ROOT / "web" / "docs" / "compat.md").read_text()
    there = [name for name, (_, absent) in CHECKS.items() if not absent]
    assert f"{len(there)} of {len(CHECKS)}" in page
    assert {absent for _, absent in CHECKS.values() if absent} == set(ABSENT)
    assert [reason for reason in ABSENT.values() if reason not in page] == []
