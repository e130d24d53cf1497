"""`measure decoder`: an ONNX decoder with caches, a prompt and an answer, beside ONNX Runtime Web, in one page."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from build_scripts.bench.page_reports import (
    add_options,
    add_turns,
    left_for_later,
    own_entries,
    posted,
    rows_of,
    written,
)
from build_scripts.bench.text import LIMIT_S, SILENCE_S, split
from build_scripts.errors import BuildError
from build_scripts.paths import BENCH_OUTPUT
from build_scripts.setup.sequence import set_up
from build_scripts.steps import run_steps

RIVAL = "ortweb"
FIGURES = ("prompt", "prompt_best", "token", "token_best", "first_prompt", "first_token", "load_ms")


def run(argv: list[str]) -> int:
    """0 when the page came to its end and webinfer's numbers were the rival's."""
    options = parse(argv)
    if options.report:
        return report(posted(options.report.read_text()), options.json)
    from build_scripts.bench.rivals import rivals_step

    set_up()
    run_steps([rivals_step()])
    site = options.static or BENCH_OUTPUT / "decoder_site"
    pack(site, options)
    if options.static:
        return left_for_later(site, "decoder")
    return report(rows_of(site, "decoder", options.limit + SILENCE_S, unsafe_eval=True), options.json)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure decoder", description=__doc__)
    parser.add_argument("--model", type=Path, help="an ONNX file with past_key_values.* and present.*, one file")
    add_turns(parser)
    parser.add_argument("--prompt", type=int, default=64, help="tokens of a prompt (default 64)")
    parser.add_argument("--tokens", type=int, default=64, help="of an answer (default 64)")
    parser.add_argument("--limit", type=int, default=LIMIT_S, help=f"seconds for one call (default {LIMIT_S})")
    add_options(parser, "decoder")
    options = parser.parse_args(argv)
    if not options.report and (options.model is None or not options.model.is_file()):
        raise BuildError("--model names the ONNX file of a decoder")
    if min(options.rounds, options.prompt, options.tokens, options.limit) < 1:
        raise BuildError("--rounds, --prompt, --tokens and --limit start at 1")
    return options


def pack(site: Path, options: argparse.Namespace) -> None:
    """Writes the page, the engine, the rival and the model into an empty folder."""
    from build_scripts.bench.rivals import MODULES, RIVALS, copy_script
    from build_scripts.bench.site import write_pages

    write_pages(site)
    for target, source in RIVALS[RIVAL].items():
        copy_script(MODULES / source, site / "rivals" / RIVAL / target)
    (site / "data").mkdir()
    own = [row for backend in options.backend or ["wasm"] for row in own_entries(backend, options.threads)]
    config = {
        "rounds": options.rounds, "prompt": options.prompt, "tokens": options.tokens,
        "limit_ms": 1000 * options.limit, "name": options.model.name, "bytes": options.model.stat().st_size,
        "entries": [entry for row in own for entry in (row, {**row, "system": RIVAL})],
        "pieces": [f"data/{name}" for name in split(options.model, site / "data")],
    }  # fmt: skip
    (site / "decoder.json").write_text(json.dumps(config))


def report(found: Sequence[Sequence[Any]], target: Path) -> int:
    """Writes JSON and a table; 0 when webinfer answered and nothing failed."""
    rows: list[dict[str, Any]] = [value for key, value in found if key == "row"]
    whole = written(found, target, table(rows))
    ours = [row for row in rows if row["system"] == "webinfer"]
    return 0 if ours and whole and not any(row.get("error") for row in ours) else 1


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: a line a system, backend and number of threads; ratios are the rival's medians over ours."""
    lines = [
        "| system | on | threads | prompt, ms | best | token, ms | best | first prompt, ms | first token | load, ms "
        "| prompt, theirs ÷ ours | token, theirs ÷ ours |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    rivals = {(row["backend"], row["threads"]): row for row in rows if row["system"] == RIVAL and not row.get("error")}
    for row in rows:
        head = f"| {row['system']} | {row['backend']} | {row['threads'] or '–'} |"
        if row.get("error"):
            lines.append(f"{head} | failed: {' '.join(row['error'].split())[:160]} | | | | | | | |")
            continue
        rival = rivals.get((row["backend"], row["threads"])) if row["system"] == "webinfer" else None
        ratios = [f"{rival[key] / row[key]:.2f}" if rival else "" for key in ("prompt", "token")]
        lines.append(f"{head} {' | '.join([*(f'{row[key]:.1f}' for key in FIGURES), *ratios])} |")
    return "\n".join(lines) + "\n"
