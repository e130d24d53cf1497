"""The README's chart and the documentation's generated tables, between `<!-- table: name -->` and `<!-- end -->`."""

import ast
import json
import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from build_scripts.bench.speed_chart import speed_chart
from build_scripts.errors import BuildError
from build_scripts.judge.special_values import table
from build_scripts.options import switches
from build_scripts.paths import ENGINE, ROOT
from build_scripts.setup.published import PUBLISHERS, published, publishers
from build_scripts.site.messages import stale_files, write_files
from build_scripts.verbs import VERBS


def verbs_table() -> str:
    """The verbs of build_scripts."""
    rows = [f"| `{name}` | {verb.what} |" for name, verb in VERBS.items()]
    return "\n".join(["| `python3 -m build_scripts …` | |", "|---|---|", *rows])


def debug_table() -> str:
    """The levels of the debug ladder, read from the engine's flags without importing it."""
    tree = ast.parse((ENGINE / "flags.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LEVELS":
            rows = [f"| {level} | {text} |" for level, text in ast.literal_eval(node.value).items()]
            return "\n".join(["| `DEBUG=` or `?debug=` | prints |", "|---|---|", *rows])
    raise BuildError("webinfer/flags.py has no table LEVELS, from which the debug table comes")


def operators_table() -> str:
    """How many operators each backend runs and each format brings, and by name what is refused."""
    sys.path.insert(0, str(ENGINE.parent))
    try:
        operators = import_module("webinfer.ops").OPS
        rows = ["| backend | operators | refuses |", "|---|---|---|"]
        for backend in import_module("webinfer.backends.registry").inference_names():
            tables = import_module(f"webinfer.backends.{backend}.lowerings")
            refused = "; ".join(f"`{op.name}`: {why}" for op, why in tables.UNSUPPORTED.items()) or "none"
            rows.append(f"| {backend} | {len(tables.LOWERINGS)} of {len(operators)} | {refused} |")
        formats = ["", "| format | operators read | refuses |", "|---|---|---|"]
        for row in import_module("webinfer.importers.formats").FORMATS:
            converters = import_module(row.reader.partition(":")[0]).CONVERTERS
            formats.append(f"| {row.name} | {len(converters)} | {row.help} |")
    except ModuleNotFoundError as error:
        raise BuildError(
            f"the operator table needs {error.name}; run `python3 -m build_scripts build kernels`"
        ) from error
    finally:
        sys.path.remove(str(ENGINE.parent))
    return "\n".join([*rows, *formats])


def tolerances_table() -> str:
    """How far each operator's results may be off, and what special values give."""
    sys.path.insert(0, str(ENGINE.parent))
    try:
        return table(import_module("webinfer.ops").OPS.values())
    finally:
        sys.path.remove(str(ENGINE.parent))


def onnx_cases_table() -> str:
    """What the node cases of the package onnx came to when they were recorded, and why cases are not supported."""
    recorded = json.loads((ROOT / "build_scripts" / "judge" / "onnx_cases.json").read_text(encoding="utf-8"))
    columns = ("right", "bound", "unsupported", "disputed", "wrong")
    head = [f"| backend | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    rows = [f"| {name} | {' | '.join(str(row[c]) for c in columns)} |" for name, row in recorded["backends"].items()]
    causes = [f"| {cause} | {count} |" for cause, count in recorded["causes"].items()]
    return "\n".join([*head, *rows, "", "| not supported | cases |", "|---|---|", *causes])


def webnn_table() -> str:
    """What the W3C's tests of WebNN came to when they were recorded, and why some do not pass."""
    return import_module("build_scripts.judge.wpt_table").table()  # type: ignore[no-any-return]


def places_table() -> str:
    """Where the wheel of users was seen to work, when that was recorded."""
    return import_module("build_scripts.places.recorded").table()  # type: ignore[no-any-return]


def models_table() -> str:
    """Where the known models of each task come from, who publishes that, and which have no second source."""
    listed, kinds = published(), publishers()
    packages = listed["packages"]

    def name_of(row: Mapping[str, str]) -> str:
        package = packages[row["package"]]
        kind = next(kind for kind in ("requirement", "npm", "repositories") if kind in package)
        return {"requirement": "PyPI `{}`", "npm": "npm `{}`"}.get(kind, "no package: {}").format(package[kind])

    found: dict[tuple[str, ...], list[str]] = {}
    for model in import_module("webinfer.models.registry").MODELS.values():
        row = listed["files"].get(model.file)
        sources = [] if row is None else [name_of(source) for source in (row, *row.get("also", ()))]
        first = sources[0] if sources else "no package; give its file"
        publisher = "" if row is None else PUBLISHERS[kinds[row["package"]]]
        key = (model.task, first, publisher, ", ".join(sources[1:]) or "none")
        found.setdefault(key, []).append(f"`{model.name}`")
    rows = [f"| {task} | {', '.join(names)} | {' | '.join(rest)} |" for (task, *rest), names in found.items()]
    head = ["| For | Models | From | Published by | Second source |", "|---|---|---|---|---|"]
    return "\n".join([*head, *sorted(rows)])


def speeds_table() -> str:
    """How many times longer other runtimes take, by the records that the chart shows."""
    return import_module("build_scripts.bench.speed_chart").table()  # type: ignore[no-any-return]


def pages_table() -> str:
    """Paints, shifts, requests and bytes of every page, by the newest record."""
    return import_module("build_scripts.bench.page_visits").recorded()  # type: ignore[no-any-return]


# A new table is one row here and its two marks in the file that shows it.
TABLES: dict[str, Callable[[], str]] = {
    "debug": debug_table, "models": models_table, "onnx_cases": onnx_cases_table, "operators": operators_table,
    "pages": pages_table, "places": places_table, "speeds": speeds_table, "tolerances": tolerances_table,
    "verbs": verbs_table, "webnn": webnn_table,
}  # fmt: skip
# Each file that shows tables, and which.
SHOWN = {
    "web/docs/using.md": ("operators",), "web/docs/contributing.md": ("verbs",), "web/docs/debugging.md": ("debug",),
    "web/docs/anywhere.md": ("places", "models"),
    "web/docs/onnx.md": ("onnx_cases",), "web/docs/pages.md": ("pages",), "web/docs/special-values.md": ("tolerances",),
    "web/docs/speed.md": ("speeds",), "web/docs/webnn.md": ("webnn",),
}  # fmt: skip


CHART = "web/docs/speed.svg"  # that the README shows


def renewed(text: str, file: str) -> str:
    """The text of a file with every table that it shows as it is generated now.

    Raises:  BuildError if the file lacks a table's marks
    """
    for name in SHOWN[file]:
        pattern = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise BuildError(f"{file} lacks the marks of the generated table {name!r}")
        body = TABLES[name]()
        text = pattern.sub(lambda match, body=body: f"{match[1]}{body}\n{match[2]}", text)  # type: ignore[misc]
    return text


def run(argv: list[str]) -> int:
    """0 when the chart, the documentation and the page's messages are as generated; --write makes it so."""
    options = switches("tables", "Checks the generated tables.", argv, write="renew them")
    if options.write:
        write_files()
    elif stale := stale_files():
        print(f"tables: {', '.join(stale)} behind messages.toml; run `python3 -m build_scripts build tables --write`")
        return 1
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in SHOWN}
    behind = {file: fresh for file, text in texts.items() if (fresh := renewed(text, file)) != text}
    chart = ROOT / CHART
    if not chart.is_file() or chart.read_text(encoding="utf-8") != speed_chart():
        behind[CHART] = speed_chart()
    if not behind:
        print(f"tables: {len(TABLES)} are up to date")
        return 0
    if options.write:
        for file, fresh in behind.items():
            (ROOT / file).write_text(fresh, encoding="utf-8")
        print("tables: written")
        return 0
    print(f"tables: {', '.join(behind)} behind; run `python3 -m build_scripts build tables --write`")
    return 1
