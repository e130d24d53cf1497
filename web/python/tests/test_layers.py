"""Who may import whom. The table is the design's; the imports are read from the files themselves."""

import ast
import functools
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ENGINE = ROOT / "web" / "python" / "webinfer"

LEAVES = {
    "closing",
    "errors",
    "dtypes",
    "flags",
    "deprecated",
    "kernel_constants",
    "lazy",
    "lazy_dataclass",
    "packing",
    "spans",
    "tensor",
    "version",
}
# room -> what it imports besides itself and the leaves, and no more; a name admits what lies below it
ALLOWED = {
    **{leaf: set[str]() for leaf in LEAVES},
    "graph": set[str](),
    "expr": set[str](),
    "ops": {"graph", "expr"},
    "importers": {"graph", "ops"},
    "rewrite": {"graph", "ops"},
    "passes": {"graph", "ops", "rewrite"},
    "plan": {"graph"},
    "lowering": {"graph", "ops", "expr", "plan"},
    "codegen": {"graph", "ops", "expr"},
    "tune": {"graph"},
    "host": set[str](),
    "models": set[str](),  # names and hashes, no code of the engine
    "backends": {"graph", "ops", "plan", "host.interface"},  # base.py and registry.py; the packages below follow
    "backends.reference": {
        "graph", "ops", "lowering", "codegen", "host.interface", "backends.base", "backends.interpreted",
    },
    "backends.wasm": {
        "graph", "ops", "expr", "plan", "lowering", "codegen", "rewrite", "tune", "host.interface", "backends.base",
    },
    "backends.webgpu": {
        "graph", "ops", "expr", "plan", "lowering", "codegen", "rewrite", "tune",
        "host.interface", "host.gpu", "host.coroutines", "backends.base",
    },
    "backends.webnn": {"graph", "ops", "lowering", "host.interface", "backends.base"},
    "authoring": {"graph", "ops", "importers.tflite.custom"},
    "session": {  # backends only through their contract
        "graph", "ops", "importers", "passes", "models", "tune", "backends.base", "backends.registry",
        "host.interface", "host.gpu", "host.current", "host.hub", "host.blocking", "host.wait_here",
    },
    "language": {"graph", "ops", "importers.gguf", "models", "session", "host", "backends.base", "backends.registry"},
    "tasks": {
        "graph", "ops", "importers", "authoring", "codegen", "plan.blocks", "language", "models", "session", "host",
        "pipelines", "backends.base",
    },
    # A package holds the plans of both backends as they lie in memory.
    "package": {
        "graph", "importers.core.partial_evaluation", "lowering.restored_sizes", "plan.blocks", "tune", "models",
        "session", "tasks", "host", "backends.base",
        "backends.wasm.kernel_table", "backends.wasm.loaded_plan", "backends.wasm.memory", "backends.wasm.open_plan",
        "backends.wasm.restored_words", "backends.webgpu.default_tunings", "backends.webgpu.executor",
        "backends.webgpu.open_program", "backends.webgpu.sized_steps",
    },
    "webnn": {  # `navigator.ml` runs two backends on one buffer
        "graph", "passes", "importers.core", "importers.webnn", "session", "host",
        "backends.base", "backends.registry", "backends.wasm.executor", "backends.webgpu.compilation",
    },
    "pipelines": {"tasks.base", "session.reports", "session.inputs", "host"},  # results of tasks
    "compat": {"", "importers.formats", "importers.readers"},  # the public names, and what files say
    "exporters": {"session.waiting", "host.whole_files"},
    "scale": {"models", "session", "tasks", "pipelines", "package", "task_verbs", "host"},
    "lab": {"models", "tune.log", "session", "page.facts", "host", "backends.base", "backends.registry"},
    "page": {
        "", "graph", "ops.custom", "importers.core.outline", "importers.formats", "importers.readers.archive",
        "codegen.templates", "authoring", "models", "session", "language", "tasks", "host",
        "backends.base", "backends.registry",
    },
    "dump": {"session.loading", "package.recording", "plan.program", "host", "backends.wasm.kernel_table"},
    "cache_verbs": {"host"},
    "task_verbs": {"tasks", "pipelines", "backends.registry"},
    "testing": {"package.serving"},
    "cli": {
        "session", "language", "pipelines", "package", "scale", "lab", "host", "dump", "cache_verbs", "task_verbs",
        "backends.base", "backends.registry",
    },
    "__init__": {"graph.ir", "authoring", "exporters", "session", "tasks", "host"},  # the public names
    "__main__": {"cli"},
}  # fmt: skip
PLATFORM = {"av", "cv2", "js", "pyodide", "pyodide_js", "_pyodide", "wasmtime", "wgpu", "websockets", "PIL"}
# Where packages that not everybody has may be imported inside of functions: they schedule, or hold rows.
SCALE_PACKAGES = {"numpy", "pyarrow", "pandas", "fsspec", "ray", "dask", "distributed", "pyspark"}
WHERE_INSTALLED = {("pipelines.results", "IPython"), ("host.progress_bar", "tqdm"), ("lab.browsers", "playwright")}
LAZY_NUMPY = {
    "tensor",
    "cli",
    "compat.onnxruntime.adapters",
    "compat.onnxruntime.binding",
    "compat.onnxruntime.session",
    "compat.onnxruntime.sparse",
    "compat.onnxruntime.texts",
    "compat.onnxruntime.values",
    "compat.tflite_runtime.interpreter",
}  # fmt: skip; where numpy may be imported inside a function, for those who have it
STANDARD_OR_JINJA = {"jinja2", "markupsafe"}
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}


def python_files(*roots: Path) -> list[Path]:
    return [path for root in roots for path in sorted(root.rglob("*.py")) if "__pycache__" not in path.parts]


def module_of(path: Path) -> str:
    """The dotted name below webinfer; a package's own file carries the package's name."""
    parts = list(path.relative_to(ENGINE).with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def room_of(module: str) -> str:
    """The row of ALLOWED that a module belongs to; "" if there is none."""
    fitting = [room for room in ALLOWED if lies_in(module, room)]
    return max(fitting, key=len, default="")


@functools.cache
def imports_of(path: Path, package: str = "") -> list[tuple[str, bool]]:
    """Each imported dotted name, and whether the import runs when the module is loaded.

    Imports under `if TYPE_CHECKING` do not count: nothing runs, and a leaf may speak of a type.
    """
    return list(_imports(ast.parse(path.read_text(encoding="utf-8")), package, True))


def _imports(parent: ast.AST, package: str, at_load: bool) -> Iterator[tuple[str, bool]]:
    for node in ast.iter_child_nodes(parent):
        if _is_type_checking(node):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_load) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            yield from ((f"{base}.{alias.name}", at_load) for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, False
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _imports(node, package, at_load and not inside)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*parents, *([node.module] if node.module else [])])


def engine_imports(path: Path) -> list[tuple[str, bool]]:
    """What a module imports, and the modules whose whole names stand in it as strings, to be imported later."""
    inside = path.relative_to(ENGINE).parent.as_posix().replace("/", ".")
    named = [(name, False) for name in strings_of(path) if name in module_names()]
    return imports_of(path, "webinfer" if inside == "." else f"webinfer.{inside}") + named


@functools.cache
def strings_of(path: Path) -> list[str]:
    found = [
        node.value for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Constant)
    ]
    return [value for value in found if isinstance(value, str)]


@functools.cache
def module_names() -> set[str]:
    return {f"webinfer.{module_of(path)}" for path in python_files(ENGINE)}


def lies_in(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")


def complaints_about(module: str, imported: str) -> str:
    """Why a module may not import this webinfer name; "" if it may."""
    room = room_of(module)
    allowed = ALLOWED[room] | LEAVES | {room}
    target = imported.removeprefix("webinfer").lstrip(".")
    if any(lies_in(target, name) for name in allowed):
        return ""
    return f"{module} imports {imported}; {room} may import {', '.join(sorted(allowed))}"


@pytest.mark.parametrize("path", python_files(ENGINE), ids=module_of)
def test_a_module_imports_only_what_it_may(path: Path) -> None:
    module = module_of(path)
    assert room_of(module), f"{module} belongs to no room of the layer table; is it in the right folder?"
    imports = engine_imports(path)
    assert not complaints_about_rooms(module, imports)
    the_platform_is_reached_through_host_only(module, imports)
    the_engine_needs_the_standard_library_and_jinja2_only(module, imports)


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_imports_all_that_it_may(room: str) -> None:
    paths = [path for path in python_files(ENGINE) if room_of(module_of(path)) == room]
    imported = {name.removeprefix("webinfer").lstrip(".") for path in paths for name, _ in engine_imports(path)}
    unused = [name for name in ALLOWED[room] if not any(lies_in(one, name) for one in imported)]
    assert not unused, f"nothing in {room} imports {unused}: take them out of its row"


def complaints_about_rooms(module: str, imports: Sequence[tuple[str, bool]]) -> list[str]:
    names = [name for name, _ in imports if name.split(".")[0] == "webinfer"]
    return [text for name in names if (text := complaints_about(module, name))]


def the_platform_is_reached_through_host_only(module: str, imports: Sequence[tuple[str, bool]]) -> None:
    tops = {name.split(".")[0] for name, _ in imports}
    if room_of(module) != "host" or module in ("host.interface", "host.gpu"):
        assert not tops & PLATFORM, f"{module} imports {sorted(tops & PLATFORM)}; only host/ may"


def the_engine_needs_the_standard_library_and_jinja2_only(module: str, imports: Sequence[tuple[str, bool]]) -> None:
    known = set(sys.stdlib_module_names) | STANDARD_OR_JINJA | {"webinfer"}
    if room_of(module) == "host":
        known |= PLATFORM
    if module == "testing":
        known |= {"pytest"}  # whose plugin it is
    for name, at_load in imports:
        top = name.split(".")[0]
        if (module, top) in WHERE_INSTALLED:
            assert not at_load
        elif top in SCALE_PACKAGES and room_of(module) == "scale":
            assert not at_load, f"{module} imports {name} before it is needed"
        elif top == "numpy":
            lazy = module in LAZY_NUMPY and not at_load
            assert lazy or module.startswith("backends.reference"), f"{module} imports numpy"
        else:
            assert top in known, f"{module} imports {name}, which no user of the engine has to have"


def test_what_a_page_has_needs_nothing_that_it_lacks() -> None:
    from build_scripts.site.page_engine import CPYTHON_ONLY

    absent = tuple(name.removesuffix(".py").removesuffix("/").replace("/", ".") for name in CPYTHON_ONLY)

    def is_absent(name: str) -> bool:
        return any(name == one or name.startswith(f"{one}.") for one in absent)

    imports = {f"webinfer.{module_of(path)}": engine_imports(path) for path in python_files(ENGINE)}
    there = {module: names for module, names in imports.items() if not is_absent(module)}
    lost = [(module, name) for module, names in there.items() for name, at_load in names if at_load and is_absent(name)]
    assert not lost, "these import what page_engine.CPYTHON_ONLY leaves out of the page's engine"


@functools.cache
def own_imports() -> dict[str, set[str]]:
    """Module -> the modules of ours that it imports, in webinfer, server and build_scripts.

    Imports inside of functions count: they hide a circle, they do not open it.
    """
    roots = ((ENGINE, ENGINE.parent), (ROOT / "server", ROOT), (ROOT / "build_scripts", ROOT))
    paths = {}
    for room, base in roots:
        for path in python_files(room):
            parts = path.relative_to(base).with_suffix("").parts
            if "tests" not in parts:
                paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found: dict[str, set[str]] = {}
    for module, path in paths.items():
        package = module if path.stem == "__init__" else module.rpartition(".")[0]
        names = (name for name, _ in imports_of(path, package))
        found[module] = {owner for name in names if (owner := owner_of(name, paths)) and owner != module}
    return found


def owner_of(name: str, modules: Container[str]) -> str:
    """The module that an imported dotted name is or lies in; "" if it is none of ours."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def circles(imports: Mapping[str, set[str]]) -> set[str]:
    """Modules that import each other in a circle, and those on a way from one circle to another."""
    left = dict(imports)
    while True:
        imported = {name for names in left.values() for name in names}
        kept = {module: names & left.keys() for module, names in left.items() if module in imported}
        kept = {module: names for module, names in kept.items() if names}
        if len(kept) == len(left):
            return set(left)
        left = kept


def test_no_modules_import_each_other() -> None:
    assert sorted(circles(own_imports())) == []


def test_circles_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert circles(imports) == {"b", "c"}
    assert len(own_imports()) > 200
    assert owner_of("webinfer.graph.ir.Node", own_imports()) == "webinfer.graph.ir"


def test_the_server_knows_nothing_of_tensors() -> None:
    for path in python_files(ROOT / "server"):
        if "tests" in path.parts:
            continue
        tops = {name.split(".")[0] for name, _ in imports_of(path)}
        assert not tops & {"webinfer", "numpy", "build_scripts"}, path


def test_build_scripts_do_not_import_third_parties_before_the_environment_stands() -> None:
    early = "__init__ __main__ errors files locks main paths steps verbs setup/environment setup/pins site/wheel"
    for name in [*early.split(), "judge/sizes", "judge/tables"]:
        path = ROOT / "build_scripts" / f"{name}.py"
        tops = {found.split(".")[0] for found, _ in imports_of(path)}
        assert tops <= set(sys.stdlib_module_names) | {"build_scripts"}, path


def test_end_to_end_tests_see_the_engine_from_outside() -> None:
    folder = ROOT / "e2e_tests"
    for path in python_files(folder):
        inner = [name for name, _ in imports_of(path) if name.startswith("webinfer.")]
        public = ("tasks", "load", "lab", "capabilities", "package.compile_model", "testing")
        names = [name.removeprefix("webinfer.") for name in inner]
        assert all(name.startswith(public) for name in names), f"{path}: {inner}"


def test_no_file_has_a_name_that_says_nothing() -> None:
    rooms = "web/python web/static web/shaders server build_scripts e2e_tests kernels_wasm".split()
    found = [path for room in rooms for path in (ROOT / room).rglob("*")]
    files = [path for path in found if path.is_file() and not {"__pycache__", "node_modules"} & set(path.parts)]
    named = [path for path in files if set(path.stem.lower().replace("-", "_").split("_")) & BANNED_NAMES]
    assert not named


def test_every_package_says_what_the_room_is_for() -> None:
    for path in python_files(ENGINE, ROOT / "server", ROOT / "build_scripts"):
        if path.name == "__init__.py" and "tests" not in path.parts:
            assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{path} has no docstring"


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("graph.ir", "webinfer.ops"),
        ("passes.fold", "webinfer.importers"),
        ("backends.wasm.executor", "webinfer.backends.webgpu"),
        ("backends.wasm.executor", "webinfer.host.native"),
        ("errors", "webinfer.graph"),
        ("host.native", "webinfer.models"),
        ("session.selection", "webinfer.backends.wasm"),
    ],
)
def test_the_table_itself_forbids_what_the_design_forbids(module: str, imported: str) -> None:
    assert complaints_about(module, imported)
