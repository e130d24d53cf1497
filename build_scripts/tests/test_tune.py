"""Tuning logs become default tunings: only of plans that beat their default, for known classes only."""

import json
from typing import Any

import pytest

from build_scripts.bench.tune import merge
from build_scripts.errors import BuildError

PLACE = {"adapter": "nvidia hopper", "browser": "Chrome 156", "engine": "0.1.0"}


def tuned(kept: bool, adapter: str = "nvidia hopper") -> dict[str, Any]:
    rows = [
        {"key": "a", "choice": "tiled", "default": "plain"},
        {"key": "b", "choice": "plain", "default": "plain"},
        {"plan": "p", "kept": kept},
    ]
    lines = "\n".join(json.dumps({**PLACE, **row}) for row in rows)
    return {"report": {"about": {**PLACE, "adapter": adapter}, "verdict": {"kept": kept}, "lines": lines}}


def classes() -> dict[str, Any]:
    return {name: {"measured": False, "choices": {}} for name in ("nvidia", "software")}


def test_winners_of_kept_plans_are_shipped() -> None:
    found = classes()
    assert merge(found, [tuned(True)]) == 1
    assert found["nvidia"] == {"measured": "nvidia hopper, Chrome 156, webinfer 0.1.0", "choices": {"a": "tiled"}}
    assert found["software"]["measured"] is False


def test_plans_that_lost_ship_nothing() -> None:
    found = classes()
    assert merge(found, [tuned(False)]) == 0
    assert found["nvidia"]["choices"] == {}


def test_software_adapters_are_a_class_of_their_own() -> None:
    found = classes()
    merge(found, [tuned(True, "google swiftshader")])
    assert found["software"]["choices"] == {"a": "tiled"}


def test_an_adapter_of_no_class_is_an_error() -> None:
    with pytest.raises(BuildError, match="arm valhall"):
        merge(classes(), [tuned(True, "arm valhall")])
