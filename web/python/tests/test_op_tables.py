"""Every operator is either lowered or refused with a reason, on every backend."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import webinfer.backends
from webinfer.backends.reference import LOWERINGS as REFERENCE
from webinfer.ops import OPS

ROOM = Path(webinfer.backends.__file__).parent
BACKENDS = sorted(
    p.name for p in ROOM.iterdir() if (p / "lowerings.py").is_file() or (p / "lowerings" / "__init__.py").is_file()
)


def test_the_reference_defines_every_operator() -> None:
    assert set(REFERENCE) == set(OPS.values())


@pytest.mark.parametrize("backend", BACKENDS)
def test_tables_are_disjoint_and_complete(backend: str) -> None:
    tables = importlib.import_module(f"webinfer.backends.{backend}.lowerings")
    lowered, refused = set(tables.LOWERINGS), set(tables.UNSUPPORTED)
    assert not lowered & refused, f"{backend}: both lowered and refused: {lowered & refused}"
    assert lowered | refused == set(OPS.values()), (
        f"{backend}: neither lowered nor refused: {set(OPS.values()) - lowered - refused}"
    )
    assert all(reason.strip() for reason in tables.UNSUPPORTED.values())


@pytest.mark.parametrize("backend", [b for b in BACKENDS if b != "reference"])
def test_tables_are_in_alphabetical_order(backend: str) -> None:
    tables = importlib.import_module(f"webinfer.backends.{backend}.lowerings")
    for table in (tables.LOWERINGS, tables.UNSUPPORTED):
        names = [op.name for op in table]
        assert names == sorted(names)


def test_names_are_keys() -> None:
    assert all(name == op.name for name, op in OPS.items())
