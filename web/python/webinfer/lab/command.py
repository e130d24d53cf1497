"""The verb `devices`: what a lab has, printed or written to a file."""

from __future__ import annotations

import json
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
    state = f"driven: {doing}" if row["busy"] else "free"
    return f"{row['name']}: {state}; {about.get('browser', '')}; GPU {about.get('gpu', 'unknown')}"
