"""The README's generated tables, between `<!-- table: name -->` and `<!-- end -->`."""

import ast
import re
import sys
from collections.abc import Callable
from importlib import import_module

from build_scripts.errors import BuildError
from build_scripts.paths import ENGINE, ROOT
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
    raise BuildError("webinfer/flags.py has no table LEVELS, from which the README's debug table comes")


def operators_table() -> str:
    """How many operators each backend runs and each format brings, and by name what is refused."""
    sys.path.insert(0, str(ENGINE.parent))
    try:
        operators = import_module("webinfer.ops").OPS
        rows = ["| backend | operators | refuses |", "|---|---|---|"]
        for backend in ("wasm", "webgpu"):
            tables = import_module(f"webinfer.backends.{backend}.lowerings")
            refused = "; ".join(f"`{op.name}`: {why}" for op, why in tables.UNSUPPORTED.items()) or "none"
            rows.append(f"| {backend} | {len(tables.LOWERINGS)} of {len(operators)} | {refused} |")
        webnn = import_module("webinfer.importers.webnn.tables").OPERATORS
        tflite = import_module("webinfer.importers.tflite.convert").CONVERTERS
    except ModuleNotFoundError as error:
        raise BuildError(f"the operator table needs {error.name}; run `python3 -m build_scripts kernels`") from error
    finally:
        sys.path.remove(str(ENGINE.parent))
    formats = ["", "| format | operators read | refuses |", "|---|---|---|"]
    formats.append(f"| TensorFlow Lite | {len(tflite)} | every other operator, all of a model's in one error |")
    formats.append(f"| WebNN graphs | {len(webnn)} | data types `int4` and `uint4` |")
    return "\n".join([*rows, *formats])


# A new table is one row here and its two marks in the README.
TABLES: dict[str, Callable[[], str]] = {"debug": debug_table, "operators": operators_table, "verbs": verbs_table}


def renewed(text: str) -> str:
    """The README with every table as it is generated now."""
    for name, make in TABLES.items():
        pattern = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise BuildError(f"README.md lacks the marks of the generated table {name!r}")
        body = make()
        text = pattern.sub(lambda match, body=body: f"{match[1]}{body}\n{match[2]}", text)  # type: ignore[misc]
    return text


def run(argv: list[str]) -> int:
    """0 when the README holds its tables as generated; --write makes it so."""
    readme = ROOT / "README.md"
    text = readme.read_text()
    fresh = renewed(text)
    if fresh == text:
        print(f"tables: {len(TABLES)} are up to date")
        return 0
    if "--write" in argv:
        readme.write_text(fresh)
        print("tables: written")
        return 0
    print("tables: README.md is behind; run `python3 -m build_scripts tables --write`")
    return 1
