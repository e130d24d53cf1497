"""The code of the documentation does what the pages say.

The mark of a fenced block says what it is:
- `python run` is run, all of a page in one namespace; `text output` behind it is what it prints;
- `python file PATH` is a new file below web/python;
- `python add PATH` are lines at the end of a file that is there, `python add PATH in TABLE` lines of a table in it;
- `python given NAME` is run by test_given.py, with the files and names of the text around it, which given.py makes;
- `console run` are commands and what they print;
- the rest is only shown here: `SHOWN` says what runs it, or why nothing does. Plain `python` is not among it.
"""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from tests.docs.pages import PAGES, ROOT, Block, assert_prints, blocks_of, run_program
from tests.ops.case_graphs import run

from webinfer.backends import registry
from webinfer.cli import main
from webinfer.importers import formats
from webinfer.ops.custom import BY_CODE, CUSTOM

# What this module does not run: what runs it, or why nothing does.
SHOWN = {
    "python page": "e2e_tests/test_docs.py and test_gpu_masks.py, in a page",
    "python marimo": "`judge compat-matrix`, in marimo's page",
    "python pyodide": "nothing: installs from the reader's site, as `judge compat-matrix` does in JupyterLite",
    "html page": "e2e_tests/test_docs.py",
    "html guest": "`judge compat-matrix`",
    "html pyscript": "`judge compat-matrix`",
    "nginx": "server/tests/test_reverse_proxy.py, where nginx is installed",
    "console": "nothing: installs, serves until it is ended, or takes files of the reader",
    "sh": "nothing: the same; test_names.py checks its verbs",
    "javascript": "nothing: parts of a reader's own page",
    "yaml": "nothing: runs at a host for workflows",
    "toml": "nothing: settings",
    "text": "nothing: not a program",
}
RUN = {"python run", "text output", "console run"}
PROGRAMS = [page for page in PAGES if any(block.kind == "python run" for block in blocks_of(page))]
CHANGING = [page for page in PROGRAMS if any(block.kind.startswith("python add ") for block in blocks_of(page))]
READERS = {"README", "compat"}  # pages whose programs take a photo or a model of the reader's, in the current folder
SHELLS = [page for page in PAGES if any(block.kind == "console run" for block in blocks_of(page))]


def stem_of(page: Path) -> str:
    return page.stem


@pytest.fixture
def engine_as_before() -> Iterator[None]:
    """Takes back what programs register."""
    rows, known = dict(registry.ROWS), list(formats.FORMATS)
    yield
    CUSTOM.clear()
    BY_CODE.clear()
    registry.ROWS.clear()
    registry.ROWS.update(rows)
    formats.FORMATS[:] = known


@pytest.mark.parametrize("page", PAGES, ids=stem_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    blocks = blocks_of(page)
    kinds = {
        block.kind for block in blocks if not block.kind.startswith(("python file ", "python add ", "python given "))
    }
    assert kinds <= SHOWN.keys() | RUN
    for before, block in itertools.pairwise([None, *blocks]):
        assert block is not None
        assert block.kind != "text output" or (before and before.kind == "python run"), f"{page.name}:{block.line}"


def test_everything_that_is_shown_is_somewhere() -> None:
    assert SHOWN.keys() <= {block.kind for page in PAGES for block in blocks_of(page)}


@pytest.mark.usefixtures("engine_as_before")
@pytest.mark.parametrize("page", [page for page in PROGRAMS if page not in CHANGING], ids=stem_of)
def test_the_program_of_a_page_prints_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.stem in READERS:
        with Image.open(ROOT / "build" / "images" / "astronaut.png") as photo:
            photo.convert("RGB").save(tmp_path / "photo.jpg")
        shutil.copy(ROOT / "build" / "models" / "face_detection_short_range.tflite", tmp_path)
        monkeypatch.chdir(tmp_path)
    run(run_program(page))
    assert page.stem != "README" or (tmp_path / "faces.jpg").stat().st_size


@pytest.mark.parametrize("page", CHANGING, ids=stem_of)
def test_the_program_of_a_page_that_changes_the_engine_prints_what_is_shown(page: Path) -> None:
    paths = os.pathsep.join([str(ROOT / "web/python"), str(ROOT)])
    command = [sys.executable, "-m", "tests.docs.changed_engine", str(page)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)
    assert not done.returncode, done.stderr


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
