"""The report's header says what ring 1 runs on."""

from __future__ import annotations


def pytest_report_header() -> list[str]:
    """Backends and adapters of this machine."""
    from tests.ops.targets import TARGETS, describe

    return [f"webinfer {describe(target)}" for target in TARGETS]
