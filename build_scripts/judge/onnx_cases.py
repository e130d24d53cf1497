"""`onnx_cases`: the node cases of the package `onnx` on every backend, judged by their own tolerances.

Prints per backend how many cases are right, unsupported (by operator and cause) and wrong. Whole numbers of an input
that say a shape, axes or sizes are bound when the model is read, as this engine's shapes are static; `bound` counts
these cases. Exits 0 only if none is wrong.
"""

import argparse
import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from build_scripts.judge.backends import definition, inference_backends, use_engine
from build_scripts.kernels.step import kernels_step
from build_scripts.steps import run_steps

if TYPE_CHECKING:
    from build_scripts.judge.onnx_case import Case

RECORD = Path(__file__).with_name("onnx_cases.json")
GROUP = 48  # cases that are compiled as one graph


def run(argv: list[str]) -> int:
    """0 if no case is wrong on any backend."""
    options = _parse(argv)
    run_steps([kernels_step()])
    use_engine()
    from build_scripts.judge.onnx_case import load_cases

    cases = load_cases(options.only or ())
    rows, absent = asyncio.run(_run_backends(cases, options.backend or [definition(), *inference_backends()]))
    for backend, reason in absent.items():
        print(f"{backend}: cannot run here: {reason}")
    _print(rows, options.verbose)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "absent": absent}, indent=1))
    if options.record:
        RECORD.write_text(json.dumps(recorded(rows), indent=1) + "\n", encoding="utf-8")
    wrong = sum(row["verdict"] == "wrong" for row in rows)
    return 1 if wrong or not rows or (absent and options.backend) else 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="onnx_cases", description=__doc__)
    known = [definition(), *inference_backends()]
    parser.add_argument("--backend", action="append", choices=known, help="only this backend; may be repeated")
    parser.add_argument("--only", action="append", help="only cases whose name holds this word; may be repeated")
    parser.add_argument("--json", type=Path, help="write all verdicts to this file")
    parser.add_argument("--record", action="store_true", help="keep the counts for the table in the documentation")
    parser.add_argument("--verbose", action="store_true", help="name the unsupported cases too")
    return parser.parse_args(argv)


async def _run_backends(
    cases: "Sequence[Case]", backends: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from build_scripts.judge.onnx_case import judge, read_all
    from webinfer.backends import registry
    from webinfer.errors import WebinferError
    from webinfer.host.native import NativeHost

    host, rows, absent = NativeHost(), list[dict[str, Any]](), dict[str, str]()
    readings = read_all(cases)
    for backend in backends:
        try:
            await registry.demand(backend, host)
        except (WebinferError, ImportError) as error:
            absent[backend] = str(error)
            continue
        for start in range(0, len(readings), GROUP):
            rows += await judge(host, backend, readings[start : start + GROUP])
    return rows, absent


def recorded(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts by backend, and the causes of what is not supported: an element type, or an operator's reason."""
    backends: dict[str, Any] = {}
    for backend in dict.fromkeys(row["backend"] for row in rows):
        mine = [row for row in rows if row["backend"] == backend]
        total = Counter(row["verdict"] for row in mine)
        backends[backend] = {verdict: total[verdict] for verdict in ("right", "unsupported", "disputed", "wrong")}
        backends[backend]["bound"] = sum(row["bound"] for row in mine if row["verdict"] == "right")
    causes = Counter(_cause(row) for row in rows if row["verdict"] == "unsupported")
    count = max(len(backends), 1)
    listed = {cause: -(-n // count) for cause, n in sorted(causes.items(), key=lambda item: (-item[1], item[0]))}
    return {"backends": backends, "causes": listed}


def _cause(row: Mapping[str, Any]) -> str:
    if kind := re.search(r"element type (\w+)", row["why"]):
        return f"elements of type {kind[1]}"
    if kind := re.search(r": an? (sequence|optional)", row["why"]):
        return f"values that are a {kind[1]}"
    name, _, reason = row["why"].partition(": ")
    if reason == "not supported":
        return f"operator `{name}`"
    return f"`{row['operator']}`: other reasons" if " " not in row["operator"] else "parts of other operators"


def _print(rows: Sequence[Mapping[str, Any]], verbose: bool) -> None:
    for row in rows:
        if row["verdict"] == "wrong" or (verbose and row["verdict"] == "unsupported"):
            print(f"{row['backend']}: {row['verdict']}: {row['case']}: {row['why']}")
    for backend in dict.fromkeys(row["backend"] for row in rows):
        mine = [row for row in rows if row["backend"] == backend]
        causes = Counter(f"{row['operator']}: {row['why']}" for row in mine if row["verdict"] == "unsupported")
        if not verbose:
            for cause, count in causes.most_common(25):
                print(f"{backend:10} {count:5} unsupported: {cause[:140]}")
        total = Counter(row["verdict"] for row in mine)
        bound = sum(row["bound"] for row in mine if row["verdict"] == "right")
        print(
            f"{backend}: {total['right']} right ({bound} bound), {total['unsupported']} unsupported, "
            f"{total['disputed']} disputed, {total['wrong']} wrong of {len(mine)}"
        )
