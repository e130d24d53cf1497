"""The API reference: signatures and docstrings become pages, and no public name is forgotten."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from server.docs import DocsError, read_docs
from server.reference import MissingNameError, Sources, reference_page
from server.settings import Settings

SOURCES = Sources(Settings().engine)
ROWS = tomllib.loads((Settings().docs / "contents.toml").read_text(encoding="utf-8"))["reference"]
LISTED = {name for row in ROWS for name in row["names"]}
ROOMS = {"tasks", "lab", "compat"}  # that have pages of their own
TABLES = {"webinfer.tasks.TASKS", "webinfer.tasks.pipeline"}  # a table of names; the name webinfer.pipeline

CODE = '''
"""A module."""
from elsewhere import Other as Other
from engine.inner import deep


async def awaited(first, *, second: int = 3) -> str:
    """What it does.

        deep(1)

    `first` is one thing.
    `second` another, f[i](x) *times* <b>.
    `third` the last, or
    `first` again.

    Raises:  InputError if
             it is wrong
    """


class Found:
    """A result."""

    x: float  # pixels
    _hidden: int = 0

    def area(self, scale: float = 1.0) -> float:
        """Its area."""
        self.kept = scale
        return 0.0

    def _inner(self) -> None:
        """Nobody sees this."""
'''


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "__init__.py").write_text(CODE)
    (folder / "inner.py").write_text('def deep(n):\n    """Found through an import."""\n')
    return Sources(tmp_path)


def test_a_page_shows_signatures_docstrings_and_members(sources: Sources) -> None:
    page = reference_page("Title", "Text.", ["engine.awaited", "engine.deep", "engine.Found"], sources)
    assert page.startswith("# Title\n\nText.\n\n## awaited\n")
    assert "await engine.awaited(first, *, second: int = 3) -> str" in page
    assert "```python\ndeep(1)\n```" in page
    assert "- `second` another, f\\[i\\](x) \\*times\\* \\<b>." in page
    assert "- `third` the last, or `first` again.\n" in page  # a line of it begins with a name
    assert "**Raises:** InputError if it is wrong" in page
    assert "engine.deep(n)" in page
    assert "Found through an import." in page
    assert "class engine.Found:\n    x: float  # pixels\n```" in page
    assert "### Found.area\n\n```python\nFound.area(scale: float = 1.0) -> float" in page
    assert "_inner" not in page
    assert "_hidden" not in page


def test_a_long_signature_has_a_line_for_each_parameter(sources: Sources, tmp_path: Path) -> None:
    names = ", ".join(f"parameter_{i}" for i in range(12))
    (tmp_path / "engine" / "long.py").write_text(f'def long({names}, *rest, **more):\n    """Much."""\n')
    page = reference_page("T", "t", ["engine.long.long"], sources)
    assert "    parameter_11,\n    *rest,\n    **more,\n)" in page


@pytest.mark.parametrize("name", ["engine.nothing", "engine.Other", "engine.Found.area.deeper", "nowhere"])
def test_a_name_that_the_sources_lack_is_told(sources: Sources, name: str) -> None:
    with pytest.raises(MissingNameError, match="the sources in"):
        reference_page("T", "t", [name], sources)


def test_the_documentation_says_which_name_is_missing(tmp_path: Path, sources: Sources) -> None:
    rows = '[[section]]\ntitle = "S"\npages = ["api"]\n[[reference]]\npage = "api"\ntitle = "T"\ntext = "t"\n'
    (tmp_path / "contents.toml").write_text(rows + 'names = ["engine.lost"]\n')
    with pytest.raises(DocsError, match=r"have no engine\.lost"):
        read_docs(tmp_path, tmp_path)


def test_every_public_name_is_on_a_page() -> None:
    public = {f"webinfer.{name}" for name in SOURCES.exports("webinfer") if name not in ROOMS}
    public |= {f"webinfer.{room}.{name}" for room in ("tasks", "lab") for name in SOURCES.exports(f"webinfer.{room}")}
    known = LISTED | {name.replace(".errors.", ".") for name in LISTED}
    assert public - TABLES - known == set()
    assert all(SOURCES.find(name) for name in LISTED)
