"""The mutants that the verb `judge mutation-test` makes, and how it chooses the tests that they are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from build_scripts.mutants import model, planted, survey, text_mutants
from build_scripts.mutants.model import CAUGHT, SURVIVED, UNTRIED, Mutant, Report, between
from build_scripts.mutants.selection import stem

SHADER = """\
// one a < b of a comment, 7
$$ if padded == 3
const N = {{ 5 + 5 }};
fn main() { if (at.x < 4u && vec4<f32>(0.0).x >= y0) { return; } }
"""
MODULE = '''\
"""A docstring with 3 words."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from a import b
Sizes = dict[str, int]
__all__ = ["f"]
@cached(8)
def f(x: "tuple[int, 4]" = None) -> "int | 5":
    """Says 9."""
    if x < 1:
        log.warning("%d", 6)
        raise ValueError(f"{x} is less than {1 + 1}")
    return x
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(model, "ROOT", tmp_path)
    return tmp_path


def test_text_is_changed_in_code_only(here: Path) -> None:
    path = here / "a.wgsl"
    path.write_text(SHADER)
    mutants = [site.mutant("shaders").diff for site in text_mutants.sites_of(path)]
    assert len(mutants) == 5
    added = [line[1:] for diff in mutants for line in diff.splitlines() if line.startswith("+")]
    assert added == [
        "fn main() { if (at.x <= 4u && vec4<f32>(0.0).x >= y0) { return; } }",
        "fn main() { if (at.x < 5u && vec4<f32>(0.0).x >= y0) { return; } }",
        "fn main() { if (at.x < 4u || vec4<f32>(0.0).x >= y0) { return; } }",
        "fn main() { if (at.x < 4u && vec4<f32>(1.0).x >= y0) { return; } }",
        "fn main() { if (at.x < 4u && vec4<f32>(0.0).x > y0) { return; } }",
    ]


def test_text_of_other_languages_keeps_its_words(here: Path) -> None:
    path = here / "a.js"
    path.write_text("if (kind === 'a < 7' && n < size) say(`${n} < 3`); // 5 - 4\n")
    assert [site.instead for site in text_mutants.sites_of(path)] == [" !== ", " || ", " <= "]
    path = here / "a.py"
    path.write_text('"""Says 9 < 8."""\nreturn a - 1  # 3\n')
    assert [site.instead for site in text_mutants.sites_of(path)] == [" + ", "2"]


def test_what_importers_take_for_a_missing_attribute_is_changed(here: Path) -> None:
    path = here / "a.py"
    path.write_text('op.real("alpha", 0.5), op.whole("axis", -1), op.flag("exact", False), op.real("beta", other)\n')
    sites = planted.defaults_of(path)
    assert [site.instead for site in sites] == ["1.5", "0", "True"]
    mutant = sites[0].mutant("defaults")
    assert mutant.applied(path.read_text()).startswith('op.real("alpha", 1.5), ')


def test_a_seed_plants_the_same_mistakes_in_every_room() -> None:
    first, second = (planted.sampled(5, 10).mutants for _ in range(2))
    assert [mutant.name for mutant in first] == [mutant.name for mutant in second]
    assert {mutant.room for mutant in first} == {part.name for part in planted.PARTS}


def test_what_only_people_and_type_checkers_read_stays_as_it_is(here: Path) -> None:
    pytest.importorskip("mutmut", reason="the group `mutants` is not installed")
    from build_scripts.mutants import python_mutants

    path = here / "a.py"
    path.write_text(MODULE)
    sites = python_mutants.sites_of(path)
    lines = {site.mutant("room").line for site in sites}
    assert lines == {10, 12, 13}
    assert {site.family for site in sites} == {"comparison", "number", "boolean", "deletion", "return"}


def test_a_mutant_fits_only_the_text_that_it_was_made_of(here: Path) -> None:
    mutant = between("room", here / "a.py", "number", "a = 1\nb = 1\n", "a = 1\nb = 12\n")
    assert (mutant.line, mutant.removed, mutant.inserted) == (2, "", "2")
    assert mutant.diff == "@@ -1,2 +1,2 @@\n a = 1\n-b = 1\n+b = 12"
    mutant = between("room", here / "a.py", "number", "a = 1\n", "a = 2\n")
    assert mutant.applied("a = 1\n") == "a = 2\n"
    with pytest.raises(ValueError, match="--fresh"):
        mutant.applied("ab = 1\n")


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    done = Mutant("plan", "a.py", "number", 4, "1", "2", verdict=CAUGHT, by="test_a", seconds=1.5)
    report = Report(7, 2, [done, Mutant("plan", "a.py", "number", 9, "1", "2")])
    report.save(tmp_path / "report.json")
    again = Report.load(tmp_path / "report.json")
    assert again == report
    assert [mutant.verdict for mutant in again.mutants] == [CAUGHT, UNTRIED]


def test_an_explained_survivor_is_equivalent_and_the_rest_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    row = survey.explanations()[0]
    diff = f"@@ -1 +1 @@\n-{row['was']}\n+{row['is']}"
    known = Mutant("plan", row["file"], "number", 0, "", "", verdict=SURVIVED, diff=diff)
    other = Mutant("plan", row["file"], "number", 0, "", "", verdict=SURVIVED, diff="@@ -1 +1 @@\n-a = 1\n+a = 2")
    caught = [Mutant("plan", "a.py", "number", 0, "", "", verdict=CAUGHT) for _ in range(9)]
    report = Report(1, 11, [known, other, *caught])
    survey.explain(report)
    assert (known.verdict, known.by) == (model.EQUIVALENT, row["because"])
    assert survey.told(report) == 0
    assert "+a = 2" in capsys.readouterr().out
    assert survey.told(Report(1, 10, [other, *caught[:8]])) == 1


def test_siblings_share_all_but_the_last_part_of_their_parameters() -> None:
    assert stem("a.py::test_b[wasm-conv2d-1x1]") == "a.py::test_b[wasm-conv2d-"
    assert stem("a.py::test_b[1x1]") == stem("a.py::test_b[2x2]") == "a.py::test_b["
    assert stem("a.py::test_b") == "a.py::test_b"
