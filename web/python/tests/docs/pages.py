"""The documentation as tests see it: pages, their fenced blocks of code, and what a page's program prints."""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[4]
DOCS = ROOT / "web" / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md"]


@dataclass(frozen=True)
class Block:
    """A fenced block: what stands behind the fence, its text, and where it begins in the page."""

    kind: str
    text: str
    line: int  # of the text's first line, from 1


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    fences = [token for token in tokens if token.type == "fence"]
    return [Block(token.info.strip(), token.content, token.map[0] + 2) for token in fences if token.map]


async def run_python(page: Path, block: Block, names: dict[str, Any]) -> str:
    """What a block of Python prints. Line numbers in errors are the page's own."""
    code = "\n" * (block.line - 1) + block.text
    compiled = compile(code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        waiting = eval(compiled, names)
        if waiting is not None:
            await waiting
    return printed.getvalue()


def module_name(path: str) -> str:
    """The dotted name of a file below web/python."""
    parts = Path(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def make_module(page: Path, block: Block) -> str:
    """Makes the module of a block `python file PATH`, as if that file lay below web/python; its dotted name."""
    name = module_name(block.kind.split()[-1])
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), module.__dict__)
    return name


def assert_prints(printed: str, shown: str, place: str) -> None:
    """Compares what was printed with what a page shows; a line `…` there stands for any lines, `…` for any text."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in shown.splitlines()
    ]
    assert re.fullmatch("".join(lines), printed), f"{place} shows\n{shown}\nbut the code prints\n{printed}"


async def run_program(page: Path) -> None:
    """Runs the blocks of a page in order, in one namespace, and compares what they print with what is shown."""
    names: dict[str, Any] = {"__name__": "documentation"}
    made: list[str] = []
    blocks = blocks_of(page)
    try:
        for block, after in itertools.zip_longest(blocks, blocks[1:]):
            if block.kind.startswith("python file "):
                made.append(make_module(page, block))
            elif block.kind == "python run":
                printed = await run_python(page, block, names)
                if after is not None and after.kind == "text output":
                    assert_prints(printed, after.text, f"{page.name}:{after.line}")
    finally:
        for name in made:
            del sys.modules[name]
