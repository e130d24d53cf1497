"""Public definitions without a docstring: modules, classes, functions, methods and properties of the project's code.

A name that begins with an underscore is private, and so is what lies inside it. Dunder methods and methods that
override another class's method need no docstring of their own: what they promise stands there.
"""

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from build_scripts.paths import ENGINE, ROOT, settings

ROOMS = (ENGINE, ROOT / "server", ROOT / "build_scripts")
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Missing:
    """One definition without a docstring."""

    path: Path
    line: int
    name: str  # "" for the module itself

    @property
    def room(self) -> str:
        """The folder that the definition counts for: two levels below the engine, else the file's own."""
        return self.path.parent.relative_to(ROOT).as_posix()

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.line} {self.name or 'the module'}"


@dataclass
class _Class:
    """A class as its file spells it: the names of its methods, and its bases as dotted names."""

    methods: set[str]
    bases: list[str] = field(default_factory=list)


def missing_docstrings() -> list[Missing]:
    """Every public definition without a docstring, sorted by file and line."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for room in ROOMS for path in _sources(room)}
    classes = dict(found for path, tree in trees.items() for found in _classes(_module_name(path), tree))
    return [missing for path, tree in sorted(trees.items()) for missing in _missing(path, tree, classes)]


def _sources(room: Path) -> Iterator[Path]:
    return (path for path in room.rglob("*.py") if not {"__pycache__", "tests"} & set(path.parts))


def _module_name(path: Path) -> str:
    base = ENGINE.parent if path.is_relative_to(ENGINE) else ROOT
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _missing(path: Path, tree: ast.Module, classes: dict[str, _Class]) -> Iterator[Missing]:
    if not ast.get_docstring(tree):
        yield Missing(path, 1, "")
    for node in _definitions(tree):
        if not ast.get_docstring(node):
            yield Missing(path, node.lineno, node.name)
        if isinstance(node, ast.ClassDef):
            name = f"{_module_name(path)}.{node.name}"
            for method in _definitions(node):
                if not ast.get_docstring(method) and not _overrides(method.name, name, classes):
                    yield Missing(path, method.lineno, f"{node.name}.{method.name}")


def _definitions(parent: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    """The public definitions right inside of a module or a class; a property's setter is no definition of its own."""
    for node in parent.body:
        if isinstance(node, Definition) and node.name[0] != "_":
            marks = {getattr(mark, "attr", getattr(mark, "id", "")) for mark in node.decorator_list}
            if not marks & {"setter", "overload"}:
                yield node


def _classes(module: str, tree: ast.Module) -> Iterator[tuple[str, _Class]]:
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
        elif isinstance(node, ast.Import):
            bound = ((alias.asname, alias.name) for alias in node.names)  # `import a.b` binds a
            names.update({short or full.split(".")[0]: full if short else full.split(".")[0] for short, full in bound})
        elif isinstance(node, ast.ClassDef):
            names[node.name] = f"{module}.{node.name}"
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = {item.name for item in node.body if isinstance(item, Definition)}
            yield f"{module}.{node.name}", _Class(methods, [_dotted(base, names) for base in node.bases])


def _dotted(base: ast.expr, names: dict[str, str]) -> str:
    if isinstance(base, ast.Subscript):
        return _dotted(base.value, names)
    if isinstance(base, ast.Attribute):
        return f"{_dotted(base.value, names)}.{base.attr}"
    name = base.id if isinstance(base, ast.Name) else ""
    return names.get(name, f"builtins.{name}")


def _overrides(method: str, name: str, classes: dict[str, _Class]) -> bool:
    """Whether a class further up, the project's own or the standard library's, has a method of this name."""
    found = classes.get(name)
    for base in found.bases if found else ():
        if base in classes:
            if method in classes[base].methods or _overrides(method, base, classes):
                return True
        elif hasattr(_standard_class(base), method):
            return True
    return False


def _standard_class(dotted: str) -> object:
    module, _, name = dotted.rpartition(".")
    if module == "builtins":
        return getattr(builtins, name, None)
    return getattr(import_module(module), name, None) if module.split(".")[0] in sys.stdlib_module_names else None


def run(argv: list[str]) -> int:
    """0 when no more definitions lack a docstring than the limit in pyproject.toml allows; `--list` names them all."""
    found, limit = missing_docstrings(), int(settings()["docstrings"]["missing"])
    if "--list" in argv or len(found) > limit:
        for missing in found:
            print(f"  {missing}")
    for room, count in sorted(Counter(missing.room for missing in found).items()):
        print(f"{count:5}  {room}")
    print(f"docstrings: {len(found)} public definitions have none, {limit} are allowed")
    return 0 if len(found) <= limit else 1


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:]))
