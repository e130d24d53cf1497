"""`oracle`: the WebNN conformance cases on every backend, judged by their own tolerances.

Prints per backend and operator how many cases are right, unsupported and wrong; a case is disputed if
its expected numbers contradict the operator's formula. Exits 0 only if none is wrong. The cases are
data beside the checkout (../shared/webnn_cases) or in the folder named by --cases.
"""

import argparse
import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from build_scripts.judge.backends import definition, inference_backends, use_engine
from build_scripts.kernels.step import kernels_step
from build_scripts.paths import ROOT
from build_scripts.steps import run_steps

if TYPE_CHECKING:
    from build_scripts.judge.oracle_cases import Case

CASES = ROOT.parent / "shared" / "webnn_cases"


def backends() -> list[str]:
    """The names of the backends that are judged."""
    return [definition(), *inference_backends()]


def run(argv: list[str]) -> int:
    """0 if no case is wrong on any backend."""
    options = _parse(argv)
    if not options.cases.is_dir():
        print(f"no WebNN cases in {options.cases}; name their folder with --cases")
        return 2
    run_steps([kernels_step()])
    use_engine()
    from build_scripts.judge.oracle_cases import load_cases

    cases = load_cases(options.cases, options.operator)
    rows, absent = asyncio.run(_run_backends(cases, options.backend or backends()))
    for backend, reason in absent.items():
        print(f"{backend}: cannot run here: {reason}")
    _print(rows, options.verbose)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "absent": absent}, indent=1))
    wrong = sum(row["verdict"] == "wrong" for row in rows)
    return 1 if wrong or not rows or (absent and options.backend) else 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="oracle", description=__doc__)
    parser.add_argument("--backend", action="append", choices=backends(), help="only this backend; may be repeated")
    parser.add_argument("--cases", type=Path, default=CASES, help="folder of the case files")
    parser.add_argument("--operator", help="only cases of this operator")
    parser.add_argument("--json", type=Path, help="write all verdicts to this file")
    parser.add_argument("--verbose", action="store_true", help="name the unsupported and disputed cases too")
    return parser.parse_args(argv)


async def _run_backends(
    cases: "Sequence[Case]", backends: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from build_scripts.judge.oracle_cases import judge
    from webinfer.backends import registry
    from webinfer.errors import WebinferError
    from webinfer.host.native import NativeHost

    host, rows, absent = NativeHost(), list[dict[str, Any]](), dict[str, str]()
    for backend in backends:
        try:
            await registry.demand(backend, host)
        except (WebinferError, ImportError) as error:
            absent[backend] = str(error)
            continue
        groups: dict[str, list[Case]] = defaultdict(list)
        for case in cases:
            groups[case.file].append(case)
        for group in groups.values():
            rows += await judge(host, backend, group)
    return rows, absent


def _print(rows: Sequence[Mapping[str, Any]], verbose: bool) -> None:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row["backend"], row["operator"]][row["verdict"]] += 1
        if row["verdict"] == "wrong" or (verbose and row["verdict"] != "right"):
            print(f"{row['backend']}: {row['verdict']}: {row['case']}: {row['why']}")
    print(f"{'backend':10} {'operator':24} {'right':>6} {'unsupported':>12} {'disputed':>9} {'wrong':>6}")
    for (backend, operator), count in sorted(counts.items()):
        print(
            f"{backend:10} {operator:24} {count['right']:6} {count['unsupported']:12} "
            f"{count['disputed']:9} {count['wrong']:6}"
        )
    for backend in dict.fromkeys(row["backend"] for row in rows):
        mine = [row for row in rows if row["backend"] == backend]
        total = Counter(row["verdict"] for row in mine)
        whole = {row["operator"] for row in mine} - {row["operator"] for row in mine if row["verdict"] == "wrong"}
        able = {row["operator"] for row in mine if row["verdict"] == "right"} & whole
        print(
            f"{backend}: {total['right']} right, {total['unsupported']} unsupported, {total['disputed']} disputed, "
            f"{total['wrong']} wrong; {len(able)} operators"
        )
