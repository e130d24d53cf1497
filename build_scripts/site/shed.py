"""Operators' sources without their test cases, line for line: no page runs them, and they are a fifth of its memory."""

import ast
from collections.abc import Iterable, Iterator, Mapping

Cut = tuple[int, int, int, int, bytes]  # row, column, end row, end column (bytes, from 0), what stands there instead

OPERATORS = {"Op", "ElementwiseOp"}
CASES = 5  # which argument of an operator its cases are
CASE_TYPES = {"Case", "tuple[Case, ...]"}
MUTATORS = {"append", "extend"}


def without_cases(sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same modules by name, where every operator has no cases, and without what only cases used."""
    trees = {name: ast.parse(data) for name, data in sources.items()}
    makers = {"Case"} | {f.name for tree in trees.values() for f in _functions(tree) if _makes_cases(f)}
    return {name: _shed(data, makers) for name, data in sources.items()}


def _shed(source: bytes, makers: set[str]) -> bytes:
    source = cut_out(source, _arguments(ast.parse(source), makers))
    while cuts := [*_dead_locals(ast.parse(source)), *_dead_names(ast.parse(source), makers)]:
        source = cut_out(source, cuts)
    return source


def cut_out(source: bytes, cuts: Iterable[Cut]) -> bytes:
    """The source with each of these pieces, none inside another, replaced on its first line; no line moves."""
    lines = source.splitlines(keepends=True)
    for row, column, end_row, end_column, instead in sorted(cuts, reverse=True):
        head, tail = lines[row][:column], lines[end_row][end_column:]
        if end_row == row:
            lines[row] = head + instead + tail
        else:
            lines[row : end_row + 1] = [head + instead + b"\n", *[b"\n"] * (end_row - row - 1), tail]
    return b"".join(lines)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in tree.body if isinstance(node, ast.FunctionDef))


def _makes_cases(function: ast.FunctionDef) -> bool:
    return function.returns is not None and ast.unparse(function.returns) in CASE_TYPES


def _place(node: ast.expr | ast.stmt, instead: bytes = b"") -> Cut:
    return node.lineno - 1, node.col_offset, (node.end_lineno or 0) - 1, node.end_col_offset or 0, instead


def _called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _arguments(tree: ast.Module, makers: set[str]) -> Iterator[Cut]:
    """Cases that are given to operators, and to functions that pass them on."""
    places = dict.fromkeys(OPERATORS, CASES)
    for function in _functions(tree):
        names = [arg.arg for arg in function.args.args]
        if "cases" in names:
            places[function.name] = names.index("cases")
    own = {id(node) for f in _functions(tree) if _makes_cases(f) for node in ast.walk(f)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or id(call) in own or _called(call) in makers:
            continue
        if (at := places.get(_called(call))) is not None:
            if len(call.args) > at:
                yield _place(call.args[at], b"()")
            continue
        last = len(call.args)
        while last > 1 and _called(call.args[last - 1]) in makers:
            last -= 1
        if last < len(call.args):
            kept, gone = _place(call.args[last - 1]), _place(call.args[-1])
            yield (*kept[2:4], *gone[2:4], b"")
        yield from (_place(word.value, b"()") for word in call.keywords if _called(word.value) in makers)


def _dead_locals(tree: ast.Module) -> Iterator[Cut]:
    """Statements of functions that do nothing but fill a name that nobody reads."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        found: dict[str, list[ast.stmt]] = {}
        for statement in (node for node in ast.walk(function) if isinstance(node, ast.stmt)):
            if name := _filled(statement):
                found.setdefault(name, []).append(statement)
        for name, statements in found.items():
            inside = {id(node) for statement in statements for node in ast.walk(statement)}
            uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
            if all(id(use) in inside for use in uses):
                yield from (_place(statement, b"pass") for statement in statements)


def _filled(statement: ast.stmt) -> str:
    """The name that this statement gives a value, or adds to, and that it does nothing beside, or ""."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            return name
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))) if attr in MUTATORS:
            return name
        case _:
            return ""


def _dead_names(tree: ast.Module, makers: set[str]) -> Iterator[Cut]:
    """Private functions, classes and constants that nothing names, functions that make cases, and their imports."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name=name) if name not in used and (_private(name) or name in makers):
                yield _place(statement)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.ClassDef(name=name) if (
                _private(name) and name not in used
            ):
                yield _place(statement)
            case ast.ImportFrom(module=str(module), names=names):
                left = [alias for alias in names if alias.name in used or alias.name not in makers]
                if len(left) < len(names):
                    words = ", ".join(ast.unparse(alias) for alias in left)
                    yield _place(statement, f"from {module} import {words}".encode() if left else b"")


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
