"""Runs named stages one after the other, all of them, and prints which failed and how long each took."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """A name and a function whose result is an exit status."""

    name: str
    run: Callable[[], int]


def run_stages(stages: list[Stage]) -> int:
    """0 when all stages gave 0. A failure does not stop the later ones: one run shows everything."""
    rows = []
    for stage in stages:
        print(f"\n== {stage.name}", flush=True)
        begin = time.monotonic()
        status = stage.run()
        rows.append((stage.name, status, time.monotonic() - begin))
    print("\n" + "=" * 46)
    for name, status, seconds in rows:
        print(f"{name:26} {'ok' if status == 0 else f'FAILED ({status})':12} {seconds:6.1f} s")
    failed = sum(status != 0 for _, status, _ in rows)
    print(f"{'':26} {f'{failed} failed' if failed else 'all green':12} {sum(row[2] for row in rows):6.1f} s")
    return 1 if failed else 0
