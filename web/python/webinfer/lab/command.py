"""The verbs `devices` and `lab run`: what a lab has, and what a suite of models gives on its devices."""

from __future__ import annotations

import argparse
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from webinfer.host.whole_files import write_whole
from webinfer.lab.addresses import devices, results, tunings


async def show(address: str | None, answers: bool, log: Path | None) -> None:
    """Prints the devices, or their `answers` as JSON lines, or writes what was tuned into the file `log`.

    Raises:  LabError; OSError if the file cannot be written
    """
    if log is not None:
        text = await tunings(address)
        write_whole(log, text.encode())
        print(f"{log}: {len(text.splitlines())} lines")
    elif answers:
        for row in reversed(await results(address)):
            print(json.dumps(row))
    else:
        found = await devices(address)
        print(*map(_line, found), sep="\n") if found else print(
            "no device is here: open the lab's page, and agree there"
        )


def _line(row: dict[str, Any]) -> str:
    about, doing = row["about"], ", ".join(row["doing"]) or "waiting"
    state = f"controlled: {doing}" if row["busy"] else "free"
    return f"{row['name']}: {state}; {about.get('browser', '')}; GPU {about.get('gpu', 'unknown')}"


async def run_fleet(args: argparse.Namespace) -> int:
    """Runs a suite, prints a line for each model and writes the file; 1 if a model failed or gave something else.

    Raises:  InputError, LabError; OSError if the file cannot be written
    """
    from webinfer.lab.browsers import grid_browsers, playwright_browsers
    from webinfer.lab.fleet import run_suite, write_run

    async with AsyncExitStack() as stack:
        devices = args.device
        for source, endpoint in ((grid_browsers, args.grid), (playwright_browsers, args.playwright)):
            if endpoint is not None:
                opened = source(endpoint, args.browsers, browser=args.browser, address=args.lab)
                devices = await stack.enter_async_context(opened)
        run = await run_suite(
            args.suite, args.shard, address=args.lab, devices=devices, backends=args.backend.split(","),
            rounds=args.rounds, told=lambda row: print(_row(row), flush=True),
        )  # fmt: skip
    print(write_run(args.output, run))
    return 0 if all(row.get("right") for row in run["rows"]) else 1


def _row(row: dict[str, Any]) -> str:
    head = f"{row['device']}, {row['model']} on {row['asked']}"
    if "error" in row:
        return f"{head}: {row['error']}"
    wrong = "" if row["right"] else f"; WRONG: {row['farthest']!r} by {row['far']:.2g} of its range"
    return f"{head}: {row['median_ms']:.3g} ms{wrong}"
