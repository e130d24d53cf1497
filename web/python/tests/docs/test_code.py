"""The code of the documentation does what the pages say."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import PAGES, Block, assert_prints, blocks_of, make_module, run_python
from tests.ops.case_graphs import run

from webinfer.backends import registry
from webinfer.cli import main
from webinfer.ops.custom import BY_CODE, CUSTOM

KINDS = {"python run", "text output", "console run", "console", "python", "html page", "text", "toml", "wgsl", "c"}
PROGRAMS = [page for page in PAGES if any(block.kind == "python run" for block in blocks_of(page))]
SHELLS = [page for page in PAGES if any(block.kind == "console run" for block in blocks_of(page))]


def stem_of(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize("page", PAGES, ids=stem_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    blocks = blocks_of(page)
    assert {block.kind for block in blocks if not block.kind.startswith("python file ")} <= KINDS
    for before, block in zip([None, *blocks], blocks, strict=False):
        assert block.kind != "text output" or (before and before.kind == "python run"), f"{page.name}:{block.line}"


@pytest.mark.parametrize("page", PROGRAMS, ids=stem_of)
def test_the_program_of_a_page_runs_and_prints_what_is_shown(page: Path) -> None:
    async def program() -> None:
        names: dict[str, Any] = {"__name__": "documentation"}
        blocks = blocks_of(page)
        for block, after in zip(blocks, [*blocks[1:], None], strict=False):
            if block.kind.startswith("python file "):
                made.append(make_module(page, block))
            if block.kind == "python run":
                printed = await run_python(page, block, names)
                if after is not None and after.kind == "text output":
                    assert_prints(printed, after.text, f"{page.name}:{after.line}")

    made: list[str] = []
    rows = dict(registry.ROWS)
    try:
        run(program())
    finally:
        CUSTOM.clear()
        BY_CODE.clear()
        for name in made:
            del sys.modules[name]
        registry.ROWS.clear()
        registry.ROWS.update(rows)


@pytest.mark.parametrize("page", SHELLS, ids=stem_of)
def test_commands_print_what_is_shown(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks_of(page):
        if block.kind == "console run":
            for command, shown in commands_of(block):
                assert main(command) == 0
                assert_prints(capsys.readouterr().out, shown, f"{page.name}:{block.line}")


def commands_of(block: Block) -> list[tuple[list[str], str]]:
    """The arguments of each `$ webinfer …` and what is shown below it."""
    parts = block.text.split("$ webinfer ")
    assert not parts[0]
    return [(shlex.split(command), shown) for command, _, shown in (part.partition("\n") for part in parts[1:])]
