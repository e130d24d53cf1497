"""The recorded results of `judge compat-matrix` as the documentation's table. Needs only the standard library."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded.json")
HEAD = "| place | road | works | how seen |\n|---|---|---|---|"


def row_of(row: Mapping[str, Any]) -> str:
    """A line of the table."""
    seen = str(row["seen"]).replace("|", "\\|").replace("\n", " ")
    return f"| {row['place']} | {row['road']} | {'yes' if row['works'] else 'NO'} | {seen} |"


def table() -> str:
    """The table of places, as it was recorded."""
    record = json.loads(RECORDED.read_text(encoding="utf-8"))
    return "\n".join([HEAD, *map(row_of, record["rows"])])
