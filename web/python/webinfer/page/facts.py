"""What a page must know before its engine runs; who writes a page puts it there."""

from __future__ import annotations

from typing import Any

from webinfer.backends import registry
from webinfer.page.messages import VERSION

AUTO_TITLE, AUTO_HINT = "Auto", "The fastest that works here"


def facts_for_pages() -> dict[str, Any]:
    """`messages`: the version of the messages; `backends`: name, title, hint of those to offer, the default first."""
    offered = [row for row in registry.ROWS.values() if row.role is registry.Role.INFERENCE]
    auto = {"name": registry.AUTO, "title": AUTO_TITLE, "hint": AUTO_HINT}
    rows = [{"name": row.name, "title": row.title, "hint": row.hint} for row in offered]
    return {"messages": VERSION, "backends": [auto, *rows]}
