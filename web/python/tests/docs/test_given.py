"""Blocks `python given NAME`: each runs as it stands, with the files and names that the text around it speaks of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.docs.engine_blocks import ENGINES
from tests.docs.given import ELSEWHERE, GIVEN
from tests.docs.lab_blocks import LAB
from tests.docs.pages import PAGES, Block, blocks_of, run_python
from tests.docs.task_blocks import TASKS
from tests.ops.case_graphs import run

START = "python given "
PREPARED = {**GIVEN, **TASKS, **LAB, **ENGINES}
SHOWN = [(page, block) for page in PAGES for block in blocks_of(page) if block.kind.startswith(START)]


@pytest.mark.parametrize(("page", "block"), SHOWN, ids=[f"{page.stem}-{block.line}" for page, block in SHOWN])
def test_a_shown_block_runs(page: Path, block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def whole() -> None:
        async with PREPARED[block.kind.removeprefix(START)](block.text) as names:
            if names is not None:
                text = block.text
                for shown, here in names.pop(ELSEWHERE, {}).items():
                    text = text.replace(shown, here)
                await run_python(page, replace(block, text=text), names)

    run(whole())


def test_every_preparation_has_a_block() -> None:
    assert {block.kind.removeprefix(START) for _, block in SHOWN} == set(PREPARED)
