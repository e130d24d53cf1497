"""The documentation's notebook: what is a cell, and that Jupyter, marimo and a page's Python can each run it."""

import ast
import json
import symtable
from collections import Counter

from server.notebook import PAGE, notebook_of
from server.settings import Settings

TEXT = (Settings().docs / f"{PAGE}.md").read_text(encoding="utf-8")


def code_cells() -> list[str]:
    cells = json.loads(notebook_of(TEXT))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_text_and_code_from_the_heading_on_are_cells() -> None:
    before, shown = "# A\n\n```python\nno = 1\n```\n\n", "```text output\n1\n```\n\nLast.\n"
    text = f"{before}## Cells\n\nFirst *words*.\n\n```python run\na = 1\na\n```\n{shown}"
    found = json.loads(notebook_of(text, "Cells"))
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in found["cells"]] == [
        ("markdown", "First *words*."), ("code", "a = 1\na"), ("markdown", "Last."),
    ]  # fmt: skip
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in found["cells"]}) == 3
    assert all(cell["outputs"] == [] for cell in found["cells"] if cell["cell_type"] == "code")


def test_cells_are_plain_python_that_may_await() -> None:
    cells = code_cells()
    assert len(cells) > 8
    for cell in cells:
        compile(cell, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)  # no %magic, which marimo lacks
    assert any("await " in cell for cell in cells)
    assert not any(call in "".join(cells) for call in ("load_sync", "run_sync", "asyncio.run"))  # a page cannot wait


def test_each_name_is_made_in_one_cell() -> None:
    made = Counter[str]()
    for cell in code_cells():
        whole = "async def cell():\n" + "".join(f"    {line}\n" for line in cell.splitlines())
        scope = symtable.symtable(whole, "cell", "exec").get_children()[0]
        made.update(symbol.get_name() for symbol in scope.get_symbols() if symbol.is_assigned() or symbol.is_imported())
    assert not [name for name, count in made.items() if count > 1], "marimo refuses names that two cells define"
