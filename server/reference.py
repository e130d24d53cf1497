"""The API reference: pages of the documentation made of the engine's signatures and docstrings.

The sources are read, never imported: the server knows nothing of the engine. What a page shows is a row of
web/docs/contents.toml, so a public name that no row lists is found by a test.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import griffe

LONG_SIGNATURE = 100  # characters; a longer one has a line for each parameter, as the formatter would write it
PUBLIC_BASES = re.compile(r"Error$|Exception$|^enum\.|^Task\b|^Results\b")  # others are parts that no user names
PARAMETER = re.compile(r"(?:\A|(?<=[.:;]\n))(?=`)")  # where the prose of a docstring goes on to the next parameter
HEADS = ("Raises", "Returns", "Units", "Shapes", "Source")
OUTSIDE_CODE = re.compile(r"(`[^`]*`)")


class MissingNameError(Exception):
    """A name of the reference is not in the sources; the message says which."""


class Sources:
    """The engine's modules, each parsed when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._modules: dict[str, griffe.Module] = {}

    def module(self, name: str) -> griffe.Module | None:
        """The module with this dotted name; None if there is no such file."""
        if name not in self._modules:
            base = self.folder.joinpath(*name.split("."))
            file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
            if not file.is_file():
                return None
            code = file.read_text(encoding="utf-8")
            self._modules[name] = griffe.visit(name, file, code)
        return self._modules[name]

    def find(self, path: str) -> griffe.Object:
        """What a dotted name stands for, through every import on the way.

        Raises: MissingNameError if the sources have no such name
        """
        if (module := self.module(path)) is not None:
            return module
        home, _, name = path.rpartition(".")
        scope = self.find(home) if home else None
        if scope is None or name not in scope.members:
            raise MissingNameError(f"the sources in {self.folder} have no {path}")
        found = scope.members[name]
        return self.find(found.target_path) if isinstance(found, griffe.Alias) else found

    def exports(self, module: str) -> list[str]:
        """The names in a module's `__all__`."""
        found = self.module(module)
        return sorted(map(str, found.exports or ())) if found is not None else []


def reference_page(title: str, text: str, names: Iterable[str], sources: Sources) -> str:
    """A page as Markdown: what the row says, then each name with its signature, its docstring and its members.

    Raises: MissingNameError if the sources lack a name
    """
    parts = [f"# {title}", text]
    for path in names:
        parts += _entry(path, sources.find(path))
    return "\n\n".join(parts) + "\n"


def _entry(path: str, found: griffe.Object) -> Iterator[str]:
    name = path.rpartition(".")[2]
    yield f"## {name}"
    if isinstance(found, griffe.Function):
        yield _code(_signature(path, found))
    elif isinstance(found, griffe.Class):
        bases = ", ".join(str(base) for base in found.bases if PUBLIC_BASES.search(str(base)))
        fields = "\n".join(_fields(found))
        yield _code(f"class {path}" + (f"({bases})" if bases else "") + (f":\n{fields}" if fields else ""))
    elif isinstance(found, griffe.Attribute):
        yield _code(f"{path}: {found.annotation}" if found.annotation else path)
    yield from _docstring(found)
    if isinstance(found, griffe.Class):
        for member in found.members.values():
            if isinstance(member, griffe.Function | griffe.Attribute) and _is_shown(member):
                yield f"### {name}.{member.name}"
                yield _code(_signature(f"{name}.{member.name}", member))
                yield from _docstring(member)


def _is_shown(member: griffe.Function | griffe.Attribute) -> bool:
    return not member.name.startswith("_") and member.docstring is not None


def _signature(path: str, found: griffe.Function | griffe.Attribute) -> str:
    """As a reader would write the call: `await` where the result is awaited, no `self`."""
    if isinstance(found, griffe.Attribute):
        return f"{path}: {found.annotation}" if found.annotation else path
    told, keyword_only = list[str](), False
    for parameter in found.parameters:
        if parameter.name in ("self", "cls"):
            continue
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}
        if parameter.kind is griffe.ParameterKind.keyword_only and not keyword_only:
            keyword_only = True
            if not any(text.startswith("*") for text in told):
                told.append("*")
        hint = f": {_plain(parameter.annotation)}" if parameter.annotation is not None else ""
        has_default = parameter.default is not None and parameter.kind not in stars
        default = (f" = {parameter.default}" if hint else f"={parameter.default}") if has_default else ""
        told.append(f"{stars.get(parameter.kind, '')}{parameter.name}{hint}{default}")
    result = f" -> {_plain(found.returns)}" if found.returns is not None else ""
    start = "await " if "async" in found.labels and "Iterator" not in result else ""
    line = f"{start}{path}({', '.join(told)}){result}"
    if len(line) <= LONG_SIGNATURE:
        return line
    return f"{start}{path}(\n" + "".join(f"    {text},\n" for text in told) + f"){result}"


def _plain(annotation: object) -> str:
    """The annotation without the quotes of a name that is imported for checks only."""
    return str(annotation).strip("\"'")


def _fields(found: griffe.Class) -> Iterator[str]:
    """The lines of the class that declare its fields, with the comments that explain them."""
    source = Path(str(found.filepath)).read_text(encoding="utf-8").splitlines()
    for member in found.members.values():
        plain = isinstance(member, griffe.Attribute) and not member.name.startswith("_") and member.docstring is None
        if plain and member.lineno and "instance-attribute" in member.labels and "property" not in member.labels:
            lines = source[member.lineno - 1 : member.endlineno]
            if not lines[0].lstrip().startswith("self."):
                yield textwrap.indent(textwrap.dedent("\n".join(lines)), "    ")


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _docstring(found: griffe.Object) -> Iterator[str]:
    if found.docstring is None:
        return
    for block in found.docstring.value.split("\n\n"):
        if block.startswith("    "):
            yield _code(textwrap.dedent(block))
        elif (head := block.partition(":")[0]) in HEADS:
            yield f"**{head}:** {_escaped(' '.join(block[len(head) + 1 :].split()))}"
        elif len(parameters := PARAMETER.split(block)) > 2:  # prose begins with one, perhaps
            before, *each = parameters
            yield (
                _escaped(before.strip()) + "\n\n" + "\n".join(f"- {_escaped(' '.join(text.split()))}" for text in each)
            )
        else:
            yield _escaped(block)


def _escaped(text: str) -> str:
    """Prose of a docstring as Markdown: what would be emphasis or a link there is a plain sign here."""
    parts = OUTSIDE_CODE.split(text)
    return "".join(part if part.startswith("`") else re.sub(r"([*<\[\]])", r"\\\1", part) for part in parts)
