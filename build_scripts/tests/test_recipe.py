"""The recipe for the Pyodide distribution says what pyproject.toml says; pyodide-build itself reads it in the verb."""

import re
from typing import Any

import pytest

from build_scripts.paths import ROOT, configuration
from build_scripts.places.pyodide_recipe import RECIPES, complaint_of


def facts() -> dict[str, Any]:
    """What pyodide-build finds in the recipe, read here line by line."""
    text = (RECIPES / "webinfer" / "meta.yaml").read_text()
    found: dict[str, Any] = {
        key: re.search(rf"^  {key}: (.+)$", text, re.M)[1] for key in ("name", "version", "license")
    }  # type: ignore[index]
    found["summary"] = re.search(r"^  summary: (.+)$", text, re.M)[1]  # type: ignore[index]
    found["source"] = str(RECIPES / "webinfer" / re.search(r"^  path: (.+)$", text, re.M)[1])  # type: ignore[index]
    found["requires"] = re.search(r"  run:\n((?:    - .+\n)+)", text)[1].split()[1::2]  # type: ignore[index]
    return {**found, "locks": [["3.14.2", ["jinja2", "markupsafe"]]]}


def test_the_recipe_agrees_with_the_project() -> None:
    assert complaint_of(facts()) == ""
    assert facts()["requires"] == ["jinja2"]
    assert (RECIPES / "webinfer" / "../../..").resolve() == ROOT


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": "0.0.9"}, "version is '0.0.9', pyproject.toml says"),
        ({"requires": []}, "requires is []"),
        ({"locks": [["3.14.2", ["markupsafe"]]]}, "Pyodide has no package 'jinja2'"),
        ({"source": "/"}, "not this checkout"),
    ],
)
def test_a_recipe_that_says_other_things_is_refused(change: dict[str, Any], words: str) -> None:
    assert configuration()["project"]["name"] == "webinfer"
    assert words in complaint_of({**facts(), **change})
