"""`measure text`: a language model that reads prompts and answers, beside wllama, in one page, interleaved."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from build_scripts.bench.page_reports import (
    THREADS,
    add_options,
    add_turns,
    left_for_later,
    own_entries,
    posted,
    rows_of,
    written,
)
from build_scripts.errors import BuildError
from build_scripts.paths import BENCH_OUTPUT, MODELS
from build_scripts.setup.sequence import set_up
from build_scripts.steps import run_steps

MODEL = "smollm2_135m_instruct_q4_1.gguf"
LIMIT_S = 120  # for one call of a system, unless another is asked for
SILENCE_S = 60  # more than that without a token, and the page hangs
PIECE_BYTES = 33_000_000  # of the model in a site: what can be carried to another machine at a time
WLLAMA = {"index.js": "esm/index.js", "wllama.wasm": "esm/wasm/wllama.wasm"}  # file of the page -> of the package
WARM_UP = "The harbour office keeps a list of every ship that came in, what it carried and when it left again."
PROMPT = """Notes of the harbour office, number {}. The ferry leaves the north pier every morning at seven and comes
back before the tide turns. It carries letters, bread, tools and whoever has something to do on the island.
In winter the crossing takes an hour, because ice comes down the river; in summer it takes half of that. The
captain writes down how many people are on board, what the wind does, and which of the buoys need paint.
Last week the second buoy was moved by a storm, and two fishermen towed it back. The lighthouse on the
island has had no keeper for forty years. A clock turns the lamp, and a woman from the village climbs the
stairs on Sundays to clean the glass and to wind the clock. She says that the view from the top is worth
every one of the two hundred and eleven steps. Behind the lighthouse lies a garden with a wall around it.
Somebody planted apple trees there, which bend to the east, away from the wind, and still bear fruit.
Children from the school come in September to pick it. In the evening they sit by the pier, eat, and wait
for the ferry, which is"""
Row = dict[str, Any]


def run(argv: list[str]) -> int:
    """0 when the page came to its end and webinfer answered every prompt."""
    options = parse(argv)
    if options.report:
        return report(posted(Path(options.report).read_text()), options.json)
    from build_scripts.bench.rivals import rivals_step
    from build_scripts.setup.task_models import package_step

    set_up()
    steps = [rivals_step()]
    run_steps(steps if options.model else [*steps, package_step("smollm2")])
    site = options.static or BENCH_OUTPUT / "text_site"
    pack(site, options)
    if options.static:
        return left_for_later(site, "text")
    return report(rows_of(site, "text", options.limit + SILENCE_S, unsafe_eval=True), options.json)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure text", description=__doc__)
    parser.add_argument("--model", type=Path, help="a GGUF file (default: SmolLM2-135M-Instruct, fetched)")
    add_turns(parser)
    parser.add_argument("--repeat", type=int, default=1, help="how often a prompt's text is repeated (default 1)")
    parser.add_argument("--tokens", type=int, default=64, help="of an answer (default 64)")
    parser.add_argument("--long", type=int, default=0, help="tokens of one long answer more, and 50 conversations")
    parser.add_argument("--limit", type=int, default=LIMIT_S, help=f"seconds for one call (default {LIMIT_S})")
    add_options(parser, "text")
    options = parser.parse_args(argv)
    if options.rounds < 1 or options.repeat < 1 or options.tokens < 2 or options.limit < 1 or 0 < options.long < 20:
        raise BuildError("--rounds, --repeat and --limit start at 1, --tokens at 2, --long at 20")
    return options


def pack(site: Path, options: argparse.Namespace) -> None:
    """Writes the page, the engine, wllama, the model and the prompts into an empty folder."""
    from build_scripts.bench.rivals import MODULES, copy_script
    from build_scripts.bench.site import write_pages

    write_pages(site)
    for target, source in WLLAMA.items():
        copy_script(MODULES / "@wllama" / "wllama" / source, site / "rivals" / "wllama" / target)
    (site / "data").mkdir()
    model = options.model or MODELS / MODEL
    entries = [row for backend in options.backend or ["wasm"] for row in own_entries(backend, options.threads)]
    if "webgpu" in (options.backend or ()):
        entries.append({"system": "wllama", "backend": "webgpu", "threads": 1})
    entries += [{"system": "wllama", "backend": "wasm", "threads": count} for count in options.threads or THREADS]
    texts = [PROMPT.format(number) * options.repeat for number in range(1, options.rounds + 1)]
    prompts = [" ".join(text.split()) for text in texts]
    config = {
        "rounds": options.rounds, "tokens": options.tokens, "limit_ms": 1000 * options.limit, "entries": entries,
        "name": model.name, "long": options.long, "bytes": model.stat().st_size,
        "pieces": [f"data/{name}" for name in split(model, site / "data")], "prompts": [WARM_UP, *prompts],
    }  # fmt: skip
    (site / "text.json").write_text(json.dumps(config))


def split(model: Path, folder: Path) -> list[str]:
    """Copies a file into a folder in pieces; their names, in order."""
    names: list[str] = []
    with model.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            names.append(f"model.gguf.{len(names)}")
            (folder / names[-1]).write_bytes(piece)
    return names


def report(found: Sequence[Sequence[Any]], target: Path) -> int:
    """Writes JSON and a table; 0 when webinfer answered and nothing failed."""
    rows: list[Row] = [value for key, value in found if key == "row"]
    whole = written(found, target, table(rows))
    ours = [row for row in rows if row["system"] == "webinfer"]
    return 0 if ours and whole and all(row.get("answer_words") for row in ours) else 1


def table(rows: Sequence[Row]) -> str:
    """Markdown: a line a system and number of threads; ratios are of ours to wllama's with as many threads.

    A ratio is one of medians, on the same backend; the one in brackets is one of bests.
    """
    lines = [
        "| system | on | threads | prompt tokens | prompt/s | best | answer/s | best | weights read, GB/s "
        "| of a copy's | load, s | prompt ÷ wllama's | answer ÷ wllama's |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    rivals = {
        (row["backend"], row["threads"]): row for row in rows if row["system"] == "wllama" and not row.get("error")
    }
    for row in rows:
        head = f"| {row['system']} | {row['backend']} | {row['threads'] or '–'} |"
        if row.get("error"):
            lines.append(f"{head} | failed: {' '.join(row['error'].split())[:160]} | | | | | | | | |")
            continue
        theirs = rivals.get((row["backend"], row["threads"] or 1)) if row["system"] == "webinfer" else None
        ratios = [_ratio(row, theirs, key) if theirs else "" for key in ("prompt", "answer")]
        copied = row.get("copy_gbytes")
        share = f"{100 * row['gbytes'] / copied:.0f} %" if copied else ""
        figures = [f"{row[key]:.1f}" for key in ("prompt", "prompt_best", "answer", "answer_best", "gbytes")]
        cells = [f"{row['prompt_words']:.0f}", *figures, share, f"{row['load_ms'] / 1000:.2f}", *ratios]
        lines.append(f"{head} {' | '.join(cells)} |")
    return "\n".join([*lines, *(_long(row) for row in rows if "long" in row)]) + "\n"


def _long(row: Row) -> str:
    found, name = row["long"], f"{row['system']} {row['backend']} {row['threads'] or ''}"
    before, after = (f"{found[key] / 1e6:.1f} MB" for key in ("before", "after"))
    return (
        f"\n{name}: an answer of {found['tokens']} tokens begins with {found['first']:.1f} and ends with "
        f"{found['last']:.1f} tokens/s; memory {before} before, {after} after it and 50 conversations more"
    )


def _ratio(ours: Row, theirs: Row, key: str) -> str:
    best = f"{key}_best"
    return f"{ours[key] / theirs[key]:.2f} ({ours[best] / theirs[best]:.2f})"
