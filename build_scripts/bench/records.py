"""`measure records`: measurements on record, as JSON data; RESULTS.md shows the current ones.

A record is one session of measuring: what was measured, on what machine and when (`notes`), and its tables. Other verbs
print their reports as Markdown; `--add FILE.md` makes a record of one.
"""

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import BENCHMARKS

RECORDS = BENCHMARKS / "records"
PAGE = BENCHMARKS / "RESULTS.md"
MAX_LINES = 200  # of the page: everything else is in the records
# The tables that the page shows: heading, record, title of the table ("" for the record's first).
SHOWN = (
    ("CPU, float and quantized models", "2026-11-21-benchmark", "Geometric mean of times"),
    ("CPU, one and two threads, ms", "2026-11-21-benchmark", "Medians"),
    ("GPU (NVIDIA H200)", "2026-11-21-webgpu-on-an-nvidia-h200", "Geometric mean of times"),
    ("GPU (NVIDIA H200), ms", "2026-11-21-webgpu-on-an-nvidia-h200", "Medians"),
    ("ONNX models on the CPU", "2026-11-22-onnx-and-tensorflow-js-models", "ONNX on the CPU: geometric mean"),
    (
        "TensorFlow.js models on the CPU",
        "2026-11-22-onnx-and-tensorflow-js-models",
        "TensorFlow.js on the CPU: geometric",
    ),
    ("First runs on an NVIDIA H100", "2026-11-25-first-runs", ""),
    (
        "Transformers and convolutions beside PyTorch (NVIDIA H100)",
        "2026-11-28-ten-models-in-one-page-on-an-nvidia-h100",
        "Medians with input and output",
    ),
    (
        "A language model on a GPU (NVIDIA H100)",
        "2026-11-27-language-models-and-float16-products-on-an-nvidia-h100",
        "SmolLM2-135M in Chromium",
    ),
)


@dataclass
class Table:
    """A table of a record; the cells are texts, as they were printed."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)


@dataclass
class Record:
    """One session of measuring."""

    title: str
    date: str
    notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def run(argv: list[str]) -> int:
    """Lists the records, prints some, adds one, or renews the page."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure records", description=__doc__)
    parser.add_argument("names", nargs="*", help="records to print; none: their list")
    parser.add_argument("--add", type=Path, metavar="FILE.md", help="make a record of each top heading of a report")
    parser.add_argument("--date", default="", help="with --add, of records whose text has none: YYYY-MM-DD")
    parser.add_argument("--write", action="store_true", help="renew RESULTS.md")
    options = parser.parse_args(argv)
    if options.add:
        for record in records_of(options.add.read_text(), options.date):
            print(f"recorded in {write(record)}")
    for name in options.names:
        print(markdown(read(name)))
    if options.write:
        PAGE.write_text(page())
    if not (options.names or options.add or options.write):
        print("\n".join(f"{path.stem}: {read(path.stem).title}" for path in sorted(RECORDS.glob("*.json"))))
    return 0


def read(name: str) -> Record:
    """The record of this name.

    Raises: BuildError if there is none
    """
    path = RECORDS / f"{name}.json"
    if not path.is_file():
        raise BuildError(f"there is no record {name!r}; `measure records` lists them")
    data = json.loads(path.read_text())
    return Record(data["title"], data["date"], data["notes"], [Table(**table) for table in data["tables"]])


def write(record: Record) -> Path:
    """The file that holds the record now; a line for each row of a table, so that changes can be read."""
    words = re.sub(r"20\d\d-\d\d-\d\d\S*", "", record.title).split(",")[0]
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60].strip("-")
    text = json.dumps(asdict(record), indent=1, ensure_ascii=False)
    text = re.sub(r"\[\n\s+(\"[^\[\]]*?\")\n\s+\]", _one_line, text) + "\n"
    RECORDS.mkdir(exist_ok=True)
    names = (f"{record.date}-{slug}{number}.json" for number in ("", *(f"-{i}" for i in range(2, 100))))
    path = next(path for path in (RECORDS / name for name in names) if not path.exists() or path.read_text() == text)
    path.write_text(text)
    return path


def _one_line(found: re.Match[str]) -> str:
    return "[" + re.sub(r",\n\s+", ", ", found[1]) + "]"


def records_of(text: str, date: str = "", level: int = 1) -> Iterator[Record]:
    """The records of a report in Markdown, one for each heading of the level.

    Raises: BuildError if neither the text nor `date` says when it was measured
    """
    mark = "#" * level
    for part in re.split(rf"^(?={mark} )", text, flags=re.MULTILINE):
        if not part.startswith(f"{mark} "):
            continue
        title, _, rest = part.removeprefix(f"{mark} ").partition("\n")
        dated = re.search(r"20\d\d-\d\d-\d\d", title) or re.search(r"20\d\d-\d\d-\d\d", rest)
        if not dated and not date:
            raise BuildError(f"the record {title!r} has no date; give one with --date")
        record = Record(title.strip(), dated[0] if dated else date)
        _fill(record, rest)
        yield record


def _fill(record: Record, text: str) -> None:
    heading = ""
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.strip().splitlines()
        while lines and re.match(r"#+ |<!--", lines[0]):
            heading = lines.pop(0).lstrip("#").strip() if lines[0].startswith("#") else lines.pop(0) and heading
        table = next((i for i, line in enumerate(lines) if line.startswith("|")), len(lines))
        if note := " ".join(lines[:table]).strip():
            record.notes.append(f"{heading}: {note}" if heading else note)
        if table < len(lines):
            rows = [_cells(line) for line in lines[table:] if line.startswith("|")]
            record.tables.append(Table(heading, rows[0], rows[2:]))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def markdown(record: Record) -> str:
    """The record as Markdown."""
    parts = [
        f"# {record.title}",
        *record.notes,
        *(f"## {t.title or 'Table'}\n\n{markdown_table(t)}" for t in record.tables),
    ]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """The table; numbers are right-aligned."""
    numeric = [
        all(re.match(r"[–\d.,]", row[i]) for row in table.rows if i < len(row)) for i in range(len(table.columns))
    ]
    rule = ["--:" if number and i else "---" for i, number in enumerate(numeric)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (table.columns, rule, *table.rows))


def page() -> str:
    """RESULTS.md: the current tables.

    Raises: BuildError if a record lacks a table that is shown, or the page is too long
    """
    text = "<!-- Written by `python3 -m build_scripts measure records --write`. -->\n\n# Results\n\n"
    text += "Measurements are records of one machine on one day. All of them are in [records](records) as JSON;\n"
    text += "`python3 -m build_scripts measure records NAME` prints one, `measure bench` measures your machine.\n"
    for heading, name, title in SHOWN:
        record = read(name)
        table = next((table for table in record.tables if table.title.startswith(title)), None)
        if table is None:
            raise BuildError(f"record {name} has no table {title!r}")
        where = record.notes[0] if record.notes else record.title
        text += f"\n## {heading}\n\n{record.date}. {where} ([record](records/{name}.json))\n\n{markdown_table(table)}\n"
    if (lines := text.count("\n")) > MAX_LINES:
        raise BuildError(f"{PAGE.name} would have {lines} lines; show fewer tables (the limit is {MAX_LINES})")
    return text
