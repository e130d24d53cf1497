"""A page of the documentation as a Jupyter notebook: its text and its code from one heading on, cell by cell."""

import json
from typing import Any

from markdown_it import MarkdownIt

PAGE, HEADING = "notebook", "The notebook"


def notebook_of(text: str, heading: str = HEADING) -> bytes:
    """The notebook (nbformat 4.5) of a page in Markdown: its blocks `python run` are cells of code.

    What a page shows as a block's output is left out: cells have no outputs until they run.
    """
    lines, cells, begin = text.splitlines(keepends=True), list[dict[str, Any]](), 0
    tokens = MarkdownIt().enable("table").parse(text)
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and tokens[at + 1].content == heading and token.map:
            begin = token.map[1]
    written = begin
    for token in tokens:
        if token.type != "fence" or not token.map or token.map[0] < begin:
            continue
        _add(cells, "markdown", "".join(lines[written : token.map[0]]))
        if token.info.split()[0] == "python":
            _add(cells, "code", token.content)
        written = token.map[1]
    _add(cells, "markdown", "".join(lines[written:]))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1).encode()


def _add(cells: list[dict[str, Any]], kind: str, text: str) -> None:
    if text.strip():
        more: dict[str, Any] = {"outputs": [], "execution_count": None} if kind == "code" else {}
        source = text.strip("\n").splitlines(keepends=True)
        cells.append({"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}, "source": source, **more})
