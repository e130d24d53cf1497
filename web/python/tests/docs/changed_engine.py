"""Runs the program of a page that adds lines to the engine's own files: `python -m tests.docs.changed_engine PAGE`.

A process of its own, because the engine's modules are imported with the page's lines in them. The files stay as
they are.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from tests.docs.pages import Block, blocks_of, module_name, run_program


class Additions(MetaPathFinder):
    """Finds the modules that a page adds lines to, before Python's own finders do."""

    def __init__(self, page: Path) -> None:
        self.blocks: dict[str, list[Block]] = {}
        for block in blocks_of(page):
            if block.kind.startswith("python add "):
                self.blocks.setdefault(module_name(block.kind.split()[2]), []).append(block)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self.blocks:
            return None
        found = PathFinder.find_spec(name, path, target)
        assert found is not None
        assert found.origin is not None
        return importlib.util.spec_from_loader(name, Changed(name, found.origin, self.blocks[name]))


class Changed(SourceFileLoader):
    """Loads a file with the lines of some blocks in it."""

    def __init__(self, name: str, path: str, blocks: list[Block]) -> None:
        super().__init__(name, path)
        self.blocks = blocks

    def get_code(self, fullname: str) -> CodeType:
        lines = Path(self.path).read_text(encoding="utf-8").splitlines()
        for block in self.blocks:
            _, _, _, *where = block.kind.split()
            at = len(lines)
            if where:  # behind the line that opens a table: `python add PATH in TABLE`
                (at,) = [i + 1 for i, line in enumerate(lines) if line.startswith(f"{where[1]}:")]
            lines[at:at] = block.text.splitlines()
        return compile("\n".join(lines), self.path, "exec")


if __name__ == "__main__":
    example = Path(sys.argv[1])
    sys.meta_path.insert(0, Additions(example))
    asyncio.run(run_program(example))
