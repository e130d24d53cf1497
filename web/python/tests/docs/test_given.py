"""Blocks `python given NAME`: each runs as it stands, with the files and names that the text around it speaks of."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.given import GIVEN
from tests.docs.pages import PAGES, Block, blocks_of, run_python
from tests.ops.case_graphs import run

START = "python given "
SHOWN = [(page, block) for page in PAGES for block in blocks_of(page) if block.kind.startswith(START)]


@pytest.mark.parametrize(("page", "block"), SHOWN, ids=[f"{page.stem}-{block.line}" for page, block in SHOWN])
def test_a_shown_block_runs(page: Path, block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def whole() -> None:
        async with GIVEN[block.kind.removeprefix(START)](block.text) as names:
            await run_python(page, block, names)

    run(whole())


def test_every_preparation_has_a_block() -> None:
    assert {block.kind.removeprefix(START) for _, block in SHOWN} == set(GIVEN)
