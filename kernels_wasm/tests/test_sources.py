"""The C sources: contracts that are complete, headers that stand alone, lists that name what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from build_scripts.kernels.compile import BUILDS, GENERATED, object_flags

ROOM = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOM / "src").rglob("*.c"))
HEADERS = sorted((ROOM / "include").glob("*.h"))


def contract_of(path: Path) -> str:
    """The comment that a file begins with."""
    lines = path.read_text(encoding="utf-8").splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return "\n".join(lines[:end])


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_kernel_says_what_it_needs_and_what_its_units_are(path: Path) -> None:
    contract = contract_of(path)
    if shared := re.search(r"Contract: (\w+\.h)", contract):
        contract = contract_of(ROOM / "include" / shared[1])
    assert "Needs:" in contract, f"{path.name}: the contract comment lacks Needs:"
    assert "Units:" in contract, f"{path.name}: the contract comment lacks Units:"


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.stem)
def test_a_header_says_what_it_is_for(path: Path) -> None:
    assert contract_of(path), f"{path.name} has no comment at its head"
    assert "#pragma once" in path.read_text(encoding="utf-8"), f"{path.name} lacks #pragma once"


def includes_of(path: Path) -> list[Path]:
    """The headers of this room that a file includes."""
    names = re.findall(r'^#include "(.+?)"', path.read_text(encoding="utf-8"), re.MULTILINE)
    return [ROOM / "include" / name for name in names if (ROOM / "include" / name).is_file()]


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.stem)
def test_no_header_includes_itself_by_way_of_others(path: Path) -> None:
    seen, left = set[Path](), includes_of(path)
    while left:
        header = left.pop()
        assert header != path, f"{path.name} includes itself through {', '.join(sorted(p.name for p in seen))}"
        if header not in seen:
            seen.add(header)
            left += includes_of(header)


def test_every_header_is_included() -> None:
    used = {header for path in (*SOURCES, *HEADERS) for header in includes_of(path)}
    assert {path.name for path in HEADERS if path not in used} <= {"turns.h"}, "dispatch.c includes only that"


def test_a_source_is_compiled_once_for_builds_that_differ_in_what_it_does_not_know() -> None:
    flags = {path.stem: {build: tuple(object_flags(path, build)) for build in BUILDS} for path in SOURCES}
    plain, attention = flags["f32_softmax"], flags["f32_attention"]
    assert "GATHERS" in (ROOM / "src/attention/f32_attention.c").read_text(encoding="utf-8")
    assert len(set(plain.values())) == 3, "scalar, simd128 and relaxed"
    assert len(set(attention.values())) == 4, "and relaxed-native"
    for build, own in BUILDS.items():
        assert object_flags(GENERATED / "dispatch.c", build) == [flag for flag in own if "GATHERS" not in flag]
