"""Sources without what only people and type checkers read, line for line: tracebacks keep their numbers.

Minifiers of Python that can be installed join lines and rename, and so make tracebacks of a page useless.
"""

import ast
import io
import re
import tokenize

TYPES_ONLY = ("typing", "collections.abc")  # what is imported from there is mostly named in types
FUTURE = b"from __future__ import annotations\n"
UNCOMMENTED = re.compile(rb"(?:\{\{.*?\}\}|(?!//).)*")


def minify(source: bytes, field_types: bool = True) -> bytes:
    """The same program without comments, docstrings, types, what is imported for types, and spaces that need not be.

    Every statement stays on its line. Types of classes' fields stay, or with `field_types` false become 0: dataclasses
    ask only whether there is one. Four spaces of indentation become one.
    """
    text = source.decode()
    lines = source.splitlines(keepends=True)
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    cuts = [*_docstrings(nodes), *_comments(text), *_types(text, nodes), *([] if field_types else _field_types(nodes))]
    for row, column, end_row, end_column, instead in sorted(cuts, reverse=True):
        head, tail = lines[row][:column], lines[end_row][end_column:]
        lines[row : end_row + 1] = [head + instead + b"\n", *[b"\n"] * (end_row - row - 1), tail][: end_row - row + 1]
        if end_row == row:
            lines[row] = head + instead + tail
    stripped = _tight(_without_imports(_narrow(b"".join(line.rstrip() + b"\n" for line in lines))))
    if _bare(tree, nodes, field_types) != _bare(made := ast.parse(stripped), list(ast.walk(made)), field_types):
        raise ValueError("minifying changed the program")
    return stripped


def _without_imports(source: bytes) -> bytes:
    """Without names of typing and collections.abc that nothing but types used.

    Without the import that leaves types unread either, where no type is left.
    """
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    lines = source.splitlines(keepends=True)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in TYPES_ONLY:
            names = [ast.unparse(alias) for alias in node.names if (alias.asname or alias.name) in used]
            rest = [b"\n"] * ((node.end_lineno or node.lineno) - node.lineno)
            first = f"from {node.module} import {', '.join(names)}\n".encode() if names else b"\n"
            lines[node.lineno - 1 : node.end_lineno] = [first, *rest]
    types = any(getattr(node, name, None) for node in nodes for name in ("annotation", "returns"))
    return b"".join(lines) if types else b"".join(lines).replace(FUTURE, b"\n", 1)


def _tight(source: bytes) -> bytes:
    """Without spaces between tokens that are told apart without them. Texts, also with values in them, stay."""
    lines = [list(line) for line in source.decode().splitlines(keepends=True)]
    begun, end, before = 0, (0, 0), ""
    for token in tokenize.generate_tokens(io.StringIO(source.decode()).readline):
        (row, column), text = token.start, token.string
        kind = tokenize.tok_name[token.type]
        tellable = bool(before) and not (_wordlike(before[-1]) and _wordlike(text[:1]))
        if tellable and not begun and row == end[0] and kind not in ("NEWLINE", "NL", "COMMENT", "DEDENT"):
            lines[row - 1][end[1] : column] = [""] * (column - end[1])
        begun += (kind == "FSTRING_START") - (kind == "FSTRING_END")
        end, before = token.end, "" if kind in ("INDENT", "DEDENT", "NEWLINE", "NL") else text
    return "".join("".join(line) for line in lines).encode()


def _wordlike(letter: str) -> bool:
    return letter.isalnum() or letter in "_\"'"


def _narrow(source: bytes) -> bytes:
    tokens = tokenize.generate_tokens(io.StringIO(source.decode()).readline)
    texts = {row for token in tokens for row in range(token.start[0], token.end[0])}  # rows whose end is inside a text
    lines = source.splitlines(keepends=True)
    for i, line in enumerate(lines):
        if i not in texts:
            body = line.lstrip(b" ")
            lines[i] = b" " * (sum(divmod(len(line) - len(body), 4))) + body
    return b"".join(lines)


def minify_shader(source: bytes) -> bytes:
    """The same WGSL template without comments, every statement on its old line. In the template's own lines and
    values `//` divides; WGSL has no texts that it could stand in."""
    if b"/*" in source:
        raise ValueError("only comments that end with their line can be left out")
    return b"".join(_before_comment(line).rstrip() + b"\n" for line in source.splitlines())


def _before_comment(line: bytes) -> bytes:
    return line if line.lstrip().startswith(b"$$") else UNCOMMENTED.match(line)[0]  # type: ignore[index]


Cut = tuple[int, int, int, int, bytes]  # row, column, end row, end column (bytes, from 0), what stands there instead


def _docstrings(nodes: list[ast.AST]) -> list[Cut]:
    cuts: list[Cut] = []
    for node in nodes:
        first = _docstring_of(node)
        if first is not None and first.end_lineno is not None and first.end_col_offset is not None:
            instead = b'" "' if _is_dataclass(node) else b'""' if _is_whole_body(node) else b""
            cuts.append((first.lineno - 1, first.col_offset, first.end_lineno - 1, first.end_col_offset, instead))
    return cuts


def _comments(text: str) -> list[Cut]:
    cuts: list[Cut] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            start = len(token.line[: token.start[1]].encode())
            cuts.append((token.start[0] - 1, start, token.end[0] - 1, start + len(token.string.encode()), b""))
    return cuts


def _types(text: str, nodes: list[ast.AST]) -> list[Cut]:
    cuts: list[Cut] = []
    lines = text.encode().splitlines()
    for variable in _variables(nodes):
        end = (variable.target.end_lineno or 0), (variable.target.end_col_offset or 0)
        cuts += _on_one_line(*end, variable.annotation)
    for node in nodes:
        if isinstance(node, ast.arg) and node.annotation is not None:
            cuts += _on_one_line(node.lineno, node.col_offset + len(node.arg.encode()), node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            arrow = lines[node.returns.lineno - 1].rfind(b"->", 0, node.returns.col_offset)
            cuts += _on_one_line(node.returns.lineno, arrow, node.returns) if arrow >= 0 else []
    return cuts


def _variables(nodes: list[ast.AST]) -> list[ast.AnnAssign]:
    """Assignments with a type, outside of classes' bodies."""
    fields = {id(child) for node in nodes if isinstance(node, ast.ClassDef) for child in node.body}
    found = [node for node in nodes if isinstance(node, ast.AnnAssign) and node.value is not None]
    return [node for node in found if id(node) not in fields]


def _plain_fields(nodes: list[ast.AST]) -> list[ast.AnnAssign]:
    """Fields of classes whose type tells a dataclass nothing."""
    bodies = [child for node in nodes if isinstance(node, ast.ClassDef) for child in node.body]
    fields = [child for child in bodies if isinstance(child, ast.AnnAssign)]
    return [field for field in fields if "Var" not in ast.unparse(field.annotation)]  # ClassVar, InitVar


def _field_types(nodes: list[ast.AST]) -> list[Cut]:
    found = [field.annotation for field in _plain_fields(nodes)]
    rows = [(a.lineno - 1, a.col_offset, (a.end_lineno or 0) - 1, a.end_col_offset or 0) for a in found]
    return [(*place, b"0") for place in rows if place[0] == place[2]]


def _on_one_line(row: int, column: int, last: ast.expr) -> list[Cut]:
    if row != last.end_lineno or last.end_col_offset is None:
        return []
    return [(row - 1, column, row - 1, last.end_col_offset, b"")]


def _docstring_of(node: ast.AST) -> ast.Expr | None:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
        return None
    first = node.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return first if is_text and isinstance(first, ast.Expr) else None


def _is_dataclass(node: ast.AST) -> bool:
    """Whether it is one: without a docstring of some letter, `dataclass` writes the signature out, half of its time."""
    return any("dataclass" in ast.unparse(one) for one in getattr(node, "decorator_list", ()))


def _is_whole_body(node: ast.AST) -> bool:
    """Whether a docstring is all that a class or function has: something must stay then."""
    return not isinstance(node, ast.Module) and len(getattr(node, "body", ())) == 1


def _bare(tree: ast.Module, nodes: list[ast.AST], field_types: bool) -> str:
    """What a program does, to be compared: its tree, which is changed, without all that is cut."""
    for field in [] if field_types else _plain_fields(nodes):
        field.annotation = ast.Constant(0)
    if variables := {id(node) for node in _variables(nodes)}:
        tree = _Untyped(variables).visit(tree)
    left_out = ("__future__", *TYPES_ONLY)
    tree.body = [n for n in tree.body if not (isinstance(n, ast.ImportFrom) and n.module in left_out)]
    for node in nodes:
        first = _docstring_of(node)
        if first is not None and isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first.value = ast.Constant("")
            node.body = node.body if _is_whole_body(node) else node.body[1:]
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
    return ast.dump(tree)


class _Untyped(ast.NodeTransformer):
    """Makes plain assignments of typed ones."""

    def __init__(self, variables: set[int]) -> None:
        self._variables = variables

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if id(node) not in self._variables or node.value is None:
            return node
        return ast.Assign([node.target], node.value)
