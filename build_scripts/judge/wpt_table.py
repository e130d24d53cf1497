"""Why sub-tests of the W3C's suite do not pass, and the table of them that the documentation shows."""

import json
import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

CAUSES = Path(__file__).with_name("wpt_causes.toml")
RECORDED = Path(__file__).with_name("wpt_recorded.json")
PASSED = 0
Found = dict[str, dict[str, Any]]  # by page: status, message, tests (name, state, message)


def explained(found: Found, variant: str) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """The failures as rows of page, sub-test and cause, and those for which there is no cause."""
    causes = tomllib.loads(CAUSES.read_text())["cause"]
    rows, unknown = list[list[str]](), list[tuple[str, str]]()
    for page, result in found.items():
        for name, state, _ in result["tests"]:
            if state == PASSED:
                continue
            fitting = (c["why"] for c in causes if re.search(c["page"], page) and re.search(c["test"], name)
                       and c.get("variant", variant) == variant)  # fmt: skip
            why = next(fitting, "")
            if why:
                rows.append([PurePosixPath(page.partition("?")[0]).name.partition(".")[0], name, why])
            else:
                unknown.append((page, name))
    return rows, unknown


def record(variant: str, counts: dict[str, int], pages: int, failures: list[list[str]]) -> None:
    """Writes what a run came to beside what runs of other variants came to."""
    known = json.loads(RECORDED.read_text()) if RECORDED.is_file() else {}
    known[variant] = {"pages": pages, "counts": counts, "failures": failures}
    RECORDED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def table() -> str:
    """What was recorded: numbers by variant, and every failure with its cause."""
    known = json.loads(RECORDED.read_text())
    lines = ["| device type | pages | sub-tests | passed |", "|---|---|---|---|"]
    for variant, row in sorted(known.items()):
        lines.append(f"| {variant} | {row['pages']} | {sum(row['counts'].values())} | {row['counts']['passed']} |")
    lines += ["", "| page | sub-test that does not pass | device type | cause |", "|---|---|---|---|"]
    rows: dict[tuple[str, ...], list[str]] = {}
    for variant, row in sorted(known.items()):
        for failure in row["failures"]:
            rows.setdefault(tuple(failure), []).append(variant)
    lines += [f"| {page} | {name} | {', '.join(where)} | {why} |" for (page, name, why), where in rows.items()]
    return "\n".join(lines)
