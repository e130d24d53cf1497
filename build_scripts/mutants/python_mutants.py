"""Mutants of Python files: the operators of mutmut, and four more, wherever a change can matter to a program.

mutmut's own runner puts all mutants of a file into one module behind switches and copies the sources into a package
of its own; tests that read sources, start processes or count imports do not survive that. Its operators are plain
functions from a node of libcst to nodes, and those are what is used here.

Nothing is made of what no test should notice: docstrings and messages, logging, annotations, decorators, imports,
asserts, `__all__`, and code for type checkers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst
from mutmut.mutation import mutators

from build_scripts.mutants.model import Mutant, between

Operator = Callable[[Any], Iterable[cst.CSTNode]]
TALK = {"log", "logger", "logging", "warnings", "print", "cast"}  # calls that say something or nothing
SILENT = (
    cst.Annotation, cst.Assert, cst.ConcatenatedString, cst.Decorator, cst.FormattedString, cst.Import, cst.ImportFrom,
    cst.SimpleString,
)  # fmt: skip


def _negated(node: cst.If | cst.While) -> Iterator[cst.CSTNode]:
    """`if a:` → `if not (a):`"""
    test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.UnaryOperation(cst.Not(), test))


def _nothing_returned(node: cst.Return) -> Iterator[cst.CSTNode]:
    """`return a` → `return None`"""
    if node.value is not None and not _is_name(node.value, "None"):
        yield node.with_changes(value=cst.Name("None"))


def _nothing_raised(node: cst.Raise) -> Iterator[cst.CSTNode]:
    """`raise a` → `pass`"""
    yield cst.Pass()


def _nothing_called(node: cst.Expr) -> Iterator[cst.CSTNode]:
    """`a()` → `pass`"""
    if isinstance(node.value, (cst.Call, cst.Await)):
        yield cst.Pass()


OURS: tuple[tuple[type, Operator, str], ...] = (
    (cst.If, _negated, "boolean"),
    (cst.While, _negated, "boolean"),
    (cst.Return, _nothing_returned, "return"),
    (cst.Raise, _nothing_raised, "deletion"),
    (cst.Expr, _nothing_called, "deletion"),
)
FAMILIES: dict[Operator, str] = {
    mutators.operator_number: "number",
    mutators.operator_name: "boolean",
    mutators.operator_assignment: "assignment",
    mutators.operator_augmented_assignment: "arithmetic",
    mutators.operator_remove_unary_ops: "boolean",
    mutators.operator_arg_removal: "argument",
    mutators.operator_symmetric_string_methods_swap: "argument",
    mutators.operator_unsymmetrical_string_methods_swap: "argument",
    mutators.operator_lambda: "return",
    mutators.operator_keywords: "comparison",
    mutators.operator_swap_op: "arithmetic",
    mutators.operator_match: "deletion",
    mutators.operator_if_exp: "boolean",
}
OPERATORS = [*((kind, op, FAMILIES[op]) for kind, op in mutators.mutation_operators if op in FAMILIES), *OURS]


@dataclass(frozen=True)
class Site:
    """A place in a file and what would stand there instead."""

    path: Path
    family: str
    module: cst.Module
    node: cst.CSTNode
    instead: cst.CSTNode

    def mutant(self, room: str) -> Mutant | None:
        """The mutant, or None if Python does not read it or reads it as the same program."""
        changed = self.module.deep_replace(self.node, self.instead)
        text, code = self.module.code, changed.code
        try:
            same = ast.dump(ast.parse(text)) == ast.dump(ast.parse(code))
        except SyntaxError:
            return None
        return None if same else between(room, self.path, self.family, text, code)


class _Collector(cst.CSTVisitor):  # type: ignore[misc]
    def __init__(self, path: Path, module: cst.Module) -> None:
        super().__init__()
        self.path, self.module = path, module
        self.sites: list[Site] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Collects the mutants of a node; False where nothing below it is of interest."""
        if isinstance(node, SILENT) or _talks(node) or _for_readers(node):
            return False
        for kind, operator, family in OPERATORS:
            if isinstance(node, kind):
                for instead in operator(node):
                    self.sites.append(Site(self.path, _family(node, family), self.module, node, instead))
        return not isinstance(node, cst.Raise)  # what an error says


def _family(node: cst.CSTNode, family: str) -> str:
    if isinstance(node, cst.ComparisonTarget):
        return "comparison"
    return "boolean" if isinstance(node, cst.BooleanOperation) else family


def _is_name(node: cst.CSTNode | None, *names: str) -> bool:
    return isinstance(node, cst.Name) and node.value in names


def _talks(node: cst.CSTNode) -> bool:
    """Whether a node is a call that writes a log, or the statement of one, or a `zip` (whose `strict` is a belt)."""
    if isinstance(node, cst.Expr):
        return _talks(node.value)
    if isinstance(node, cst.Arg):
        return _is_name(node.keyword, "strict") and _is_name(node.value, "True", "False")
    if not isinstance(node, cst.Call):
        return False
    func = node.func.value if isinstance(node.func, cst.Attribute) else node.func
    return _is_name(func, *TALK)


def _for_readers(node: cst.CSTNode) -> bool:
    """Whether a node is code that only people and type checkers read."""
    if isinstance(node, cst.FunctionDef):
        return node.name.value in ("__repr__", "__str__")
    if isinstance(node, cst.If):
        return _is_name(node.test, "TYPE_CHECKING")
    if isinstance(node, cst.Assign):
        name = node.targets[0].target
        word = name.value if isinstance(name, cst.Name) else ""
        return word in ("__all__", "log", "T") or (word[:1].isupper() and not word.isupper())  # a name for a type
    return False


def sites_of(path: Path) -> list[Site]:
    """Every place of a file where a mutant can be made, in the file's order."""
    module = cst.parse_module(path.read_text())
    collector = _Collector(path, module)
    module.visit(collector)
    return collector.sites
