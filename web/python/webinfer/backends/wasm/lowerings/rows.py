"""How many rows a product is taken to have where their number follows sizes that are bound later."""

from __future__ import annotations

from webinfer.graph.dims import Size

# Of an open size: from 9 rows on one tile takes 0.92 to 1.02 of the time of the tile that suits the size (MiniLM on
# wasm, 1 to 129 rows, x86-64, November 2026), so that below it another one is chosen, for the middle of 2 to 8.
LEAST_MANY, MANY_ROWS, FEW_ROWS = 9, 840, 4


def typical_rows(rows: int) -> int:
    """How many rows a tile is chosen for: of an open size, as many as leave no tile a part, or a few."""
    if not isinstance(rows, Size):
        return rows
    return MANY_ROWS if rows >= LEAST_MANY else FEW_ROWS
