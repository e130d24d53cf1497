"""Which public definitions count as undocumented."""

from pathlib import Path

import pytest

from build_scripts.judge import docstrings

SOURCE = '''
import enum
from dataclasses import dataclass

class Base:
    """One."""
    def said(self):
        """Two."""
    def unsaid(self): ...

class Child(Base):
    def said(self): ...
    def own(self): ...
    def _private(self): ...
    def __len__(self): ...
    @property
    def size(self): ...
    @size.setter
    def size(self, value): ...

class _Hidden:
    def shown(self): ...

class Word(enum.StrEnum):
    """Three."""
    def upper(self): ...
    def letter(self): ...

@dataclass
class Fields:
    """Four."""
    number: int

def function():
    def inner(): ...

async def later():
    """Five."""
'''


def test_public_definitions_count_and_overrides_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docstrings, "ROOMS", (tmp_path / "room",))
    monkeypatch.setattr(docstrings, "ROOT", tmp_path)
    (tmp_path / "room" / "tests").mkdir(parents=True)
    (tmp_path / "room" / "module.py").write_text(SOURCE)
    (tmp_path / "room" / "tests" / "test_it.py").write_text("def test_this(): ...\n")
    found = [missing.name for missing in docstrings.missing_docstrings()]
    assert found == ["", "Base.unsaid", "Child", "Child.own", "Child.size", "Word.letter", "function"]


def test_an_override_in_another_module_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docstrings, "ROOMS", (tmp_path / "room",))
    monkeypatch.setattr(docstrings, "ROOT", tmp_path)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "base.py").write_text('"""M."""\nclass Base:\n    """B."""\n    def run(self): ...\n')
    text = '"""M."""\nfrom room.base import Base\nclass More(Base):\n    """C."""\n    def run(self): ...\n'
    (tmp_path / "room" / "more.py").write_text(text)
    assert [str(missing) for missing in docstrings.missing_docstrings()] == ["room/base.py:4 Base.run"]


def test_more_than_the_limit_is_red(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    missing = [docstrings.Missing(docstrings.ROOT / "server" / "app.py", 3, "create")]
    monkeypatch.setattr(docstrings, "missing_docstrings", lambda: missing)
    for limit, status in ((1, 0), (0, 1)):
        monkeypatch.setattr(docstrings, "settings", lambda limit=limit: {"docstrings": {"missing": limit}})
        assert docstrings.run([]) == status
    assert "server/app.py:3 create" in capsys.readouterr().out
