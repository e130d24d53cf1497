"""The project uses the field's terms: words of its own that were replaced do not come back."""

from __future__ import annotations

import functools
import re
import subprocess

import pytest
from tests.docs.pages import ROOT

# What was written, and what the field calls it. Renaming something adds a row.
OLD_WORDS = {
    r"\bmax_words\b": "max_tokens",
    r"\bwords (a|per) second\b": "tokens/s",
    r"\blikeliest\b": "most likely",
    r"\b(cannot|could not) be had\b": "is not available, could not be downloaded",
    r"\bwhoever\b": "the caller, the client",
    r"\bsomebody\b": "the caller, the user; third-party",
    r"\bof anybody\b": "of any other address",
    r"\b(lodges?|lodging|neighbour|reluctance|hopeless)\b": "guest, adjacent, skip_in_auto, abort",
    r"\bpatience\b": "stall timeout, minimum silence",
    r"\b(taken_out|put_back|rows_together)\b": "save_kv, restore_kv, prefill_chunk",
    r"\b(late_sums?|two_lines|better_team|at_rest|at_hand)\b": "post-activation add, piecewise linear, idle executor",
    r"\b(unbroken|ran_here|worth_telling)\b": "until broken, recent runs, progress filter",
    r"\b(Desk|Door|Contest|Writing|Arriving)\b": "controller, bindings, BackendBenchmark, BatchSequence, PendingResult",
    r"\b(Ahead|Pace|Kept|Course)\b": "SpeculativeLowering, ThreadCountController, LruCache, KnownValues",
    r"\bTurns\b(?! of)": "DynamicLoop",
    r"\bmade_by\(": "producer_of",
    r"\bnumber_of\(": "scalar_constant",
    r"\btwins?\b": "copy, version",
    r"\bis no (model|picture|video|number|word|fault|step)\b": "is not a …",
    r"\bas it comes\b": "in real time",
    r"\bleast (score|ratio|time)\b": "minimum …",
}
ENDINGS = (".py", ".js", ".mjs", ".c", ".h", ".wgsl", ".md", ".html", ".toml", ".css")
RECORDS = ("e2e_tests/benchmarks/records/", "CHANGELOG.md")  # what was written then
# Lines that accept an old name, or quote another text.
ALLOWED = {
    ("web/python/webinfer/language/generator.py", '@renamed_arguments(max_words="max_tokens")'),
    ("web/python/tests/language/test_old_names.py", "max_words"),
    ("build_scripts/bench/text.py", "tools and whoever has something to do"),
}


@functools.cache
def texts() -> dict[str, str]:
    """What is looked through, by name: read once for all words."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    chosen = [name for name in listed if name.endswith(ENDINGS) and not name.startswith(RECORDS)]
    files = {name: ROOT / name for name in chosen if not name.endswith("/test_words.py")}
    return {name: path.read_text(encoding="utf-8") for name, path in files.items() if path.is_file()}


@pytest.mark.parametrize("pattern", OLD_WORDS)
def test_words_that_were_replaced_do_not_come_back(pattern: str) -> None:
    found, word = [], re.compile(pattern)
    for name, whole in texts().items():
        lines = whole.splitlines() if word.search(whole) else []  # no pattern spans lines
        for number, line in enumerate(lines, 1):
            if word.search(line) and not any(name == file and text in line for file, text in ALLOWED):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert not found, f"write {OLD_WORDS[pattern]!r}:\n" + "\n".join(found[:20])


def test_the_glossary_stays_short() -> None:
    """A term that needs explaining is a term that readers have to learn."""
    rows = re.findall(r"^\| (?!Term|-)", (ROOT / "web/docs/glossary.md").read_text(), re.MULTILINE)
    assert 20 <= len(rows) <= 50
