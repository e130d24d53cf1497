"""Kernels of expr/kernel.py as statements: the part that all languages share, and WGSL.

What is used twice becomes a `let`, a reduction a loop, a select at the top a branch. The C text is made by
build_scripts/kernels/described.py, with the same writer.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from webinfer.codegen.formulas import BITS, Language
from webinfer.expr.formula import CONSTANT, Formula
from webinfer.expr.kernel import Axis, Element, Kernel, Kind, Read, Real, Reduction, Size, runs_along
from webinfer.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Syntax:
    """How a language writes statements. `expressions` writes formulas; the others are given texts."""

    expressions: Language
    let: str  # {name}, {value}
    begin: Callable[[Reduction], str]  # how one begins: {name}, {value}
    loop: str  # {name}, {end}
    grow: Mapping[str, str]  # by the reduction's name: {name}, {value}
    result: str  # {value}
    indent: str = "    "


class Statements:
    """The lines that compute a formula, each thing once."""

    def __init__(self, syntax: Syntax, root: Formula, indent: int, name_of: Callable[[Formula], str]) -> None:
        self._syntax, self._uses, self._name_of = syntax, _uses(root), name_of
        self._known: dict[Formula, Formula] = {}
        self._indent, self._count = indent, 0
        self.lines: list[str] = []

    def give(self, root: Formula) -> None:
        """Lines that end with the result; of a select only what is chosen is computed."""
        if root.name != "select":
            self._line(self._syntax.result.format(value=self.text(root)))
            return
        condition, chosen, other = root.parts
        self._block(f"if ({self.text(condition)}) {{", lambda: self.give(chosen), "} else {")
        self._block("", lambda: self.give(other))

    def text(self, part: Formula) -> str:
        """The formula as an expression, after the lines that it needs."""
        return self._syntax.expressions.write(self._settled(part))

    def _settled(self, part: Formula) -> Formula:
        """The formula with names in place of what stands in lines above."""
        if part in self._known or not part.parts:
            return self._known.get(part, part)
        if isinstance(part, Reduction):
            found = self._reduced(part)
        else:
            parts = tuple(map(self._settled, part.parts))
            found = Formula(self._name_of(part), parts)
            if self._uses[part] > 1:
                found = self._named(self._syntax.let, found)
        self._known[part] = found
        return found

    def _reduced(self, part: Reduction) -> Formula:
        assert part.axis is not None
        total = self._named(self._syntax.begin(part), self._settled(part.parts[1]))
        self._loop(part, total)
        return total

    def _loop(self, part: Reduction, total: Formula) -> None:
        """The loop of a reduction; one inside it that goes on with the same number has none of its own."""
        body, _, *where = part.parts
        grow = self._syntax.grow[part.name]

        def turn() -> None:
            if where:
                self._block(f"if ({self.text(where[0])}) {{", add)
            else:
                add()

        def add() -> None:
            if isinstance(body, Reduction) and _goes_on(body, part):
                self._loop(body, total)
            else:
                self._line(grow.format(name=total.name, value=self.text(body)))

        assert part.axis is not None
        self._block(self._syntax.loop.format(name=part.axis.name, end=self.text(part.axis.extent)), turn)

    def _named(self, form: str, value: Formula) -> Formula:
        name = f"v{self._count}"
        self._count += 1
        self._line(form.format(name=name, value=self._syntax.expressions.write(value)))
        return Formula(name)

    def _block(self, head: str, write: Callable[[], None], end: str = "}") -> None:
        """A block: what it names is unknown behind it."""
        if head:
            self._line(head)
        before = dict(self._known)
        self._indent += 1
        write()
        self._indent -= 1
        self._known = before
        self._line(end)

    def _line(self, text: str) -> None:
        self.lines.append(self._syntax.indent * self._indent + text)


def _goes_on(inner: Reduction, outer: Reduction) -> bool:
    """Whether the inner reduction adds nothing of its own to the outer one's number."""
    if (inner.name, inner.kind) != (outer.name, outer.kind):
        return False
    start = inner.parts[1]
    return (start.name, start.value) == (CONSTANT, 0) if inner.name == "sum" else start is outer.parts[1]


def _uses(root: Formula) -> Counter[Formula]:
    """How often each formula is a part of others."""
    uses: Counter[Formula] = Counter()
    waiting = [root]
    while waiting:
        for part in waiting.pop().parts:
            uses[part] += 1
            if uses[part] == 1:
                waiting.append(part)
    return uses


def calls_of(kernel: Kernel, load: Callable[[Kind, str], str], table: str) -> dict[str, str]:
    """The texts of a kernel's reads, by name; `load` and `table` have `$` for the name of what is read."""
    found = {f"load_{t.name}": load(t.kind, t.name).replace("$", t.name) for t in kernel.inputs}
    return found | {f"{t.name}_at": table.replace("$", t.name) for t in kernel.tables}


def constant(value: float) -> str:
    """A number: whole ones serve as indices and as floats."""
    return str(int(value)) if value.is_integer() else repr(value)


_SHADER_CALLS = {
    **{name: name + "({})" for name in ("abs", "ceil", "exp", "floor", "log", "sign", "sqrt")},
    "**": "pow({}, {})", "//": "({} / {})", "clamp": "clamp({}, {}, {})", "larger": "max({}, {})", "max": "max({}, {})",
    "min": "min({}, {})", "real": "f32({})", "round_even": "round({})", "select": "select({2}, {1}, {0})",
    "shift_right": "({} >> u32({}))", "smaller": "min({}, {})", "whole": "i32({})", **BITS,
}  # fmt: skip
_FOUR = "four_"  # before the name of what is read or computed four at a time
_FOUR_CALLS = {  # where numbers and vectors need different texts
    "clamp": "clamp({}, vec4({}), vec4({}))", "larger": "max(vec4({}), vec4({}))", "max": "max(vec4({}), vec4({}))",
    "min": "min(vec4({}), vec4({}))", "real": "vec4<f32>({})", "select": "select(vec4({2}), vec4({1}), {0})",
    "shift_right": "({} >> vec4(u32({})))", "smaller": "min(vec4({}), vec4({}))", "whole": "vec4<i32>({})",
    "bit_and": "(vec4({}) & vec4({}))", "bit_or": "(vec4({}) | vec4({}))", "bit_xor": "(vec4({}) ^ vec4({}))",
}  # fmt: skip
_EACH_PLACE = """fn each_$(at: vec4<i32>) -> $_v {
    let i = vec4<u32>(at);
    return $_v(load_$(i.x), load_$(i.y), load_$(i.z), load_$(i.w));
}"""
_SHADER_GROW = {"largest": "{name} = max({name}, {value});", "sum": "{name} += {value};"}


@dataclass(frozen=True, slots=True)
class ShaderForm:
    """What a kernel's WGSL depends on beside its structure.

    `quads` are neighbours along the last axis taken four at a time, `wide` elements pairs of words; `unsigned` are the
    inputs whose indices have no sign.
    """

    quads: bool = False
    wide: bool = False
    unsigned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Described:
    """A kernel's WGSL, as a value of a template: equal texts are one shader."""

    text: str


def described(kernel: Kernel, form: ShaderForm) -> Described:
    """`element(at)`, the element of y with this row-major number; by quads `four(at)`, the quad with this number."""
    calls = dict(_SHADER_CALLS)
    calls |= calls_of(kernel, lambda kind, name: _load(kind, name in form.unsigned), "$_at(u32({}))")
    calls |= {f"{_FOUR}load_{t.name}": f"load4_{t.name}(u32({{}}))" for t in kernel.inputs}
    calls |= {f"{_FOUR}places_{t.name}": f"each_{t.name}({{}})" for t in kernel.inputs}
    calls |= {_FOUR + name: text for name, text in _FOUR_CALLS.items()}

    def in_fours(part: Formula) -> bool:
        return form.quads and runs_along(part, kernel.space[-1])

    def name_of(part: Formula) -> str:
        if isinstance(part, Read) and part.last is not kernel.space[-1] and in_fours(part):
            return f"{_FOUR}places_{part.tensor.name}"
        return _FOUR + part.name if _FOUR + part.name in calls and in_fours(part) else part.name

    def begin(part: Reduction) -> str:
        if part.kind is Kind.INDEX:
            return "var {name}: i32 = {value};"
        if not form.quads:
            return "var {name} = y_t({value});"
        return "var {name} = y_v({value});" if in_fours(part.parts[1]) else "var {name} = y_v(y_t({value}));"

    language = Language(functools.partial(_shader_leaf, form=form), calls)
    syntax = Syntax(
        language, "let {name} = {value};", begin, "for (var {name} = 0; {name} < {end}; {name}++) {{", _SHADER_GROW,
        f"return {_result(kernel, form)};",
    )  # fmt: skip
    statements = Statements(syntax, kernel.value, 1, name_of)
    statements.give(kernel.value)
    head = "fn four(at: u32) -> y_v {" if form.quads else "fn element(at: u32) -> y_t {"
    text = "\n".join([head, *_indices(kernel), *statements.lines, "}"])
    each = [_EACH_PLACE.replace("$", t.name) for t in kernel.inputs if f"each_{t.name}(" in text]
    return Described("\n".join([*each, text]))


def index_text(formula: Formula) -> str:
    """A formula of indices in WGSL; its variables stand as they are called."""
    plain = ShaderForm()
    return Language(functools.partial(_shader_leaf, form=plain), _SHADER_CALLS).write(formula)


def _result(kernel: Kernel, form: ShaderForm) -> str:
    """How a value becomes the element or the quad that a function gives."""
    if form.quads:
        return "{value}" if form.wide else "y_v({value})"
    return "y_t({value})" if kernel.gives is Kind.NUMBER else "{value}"


def _load(kind: Kind, unsigned: bool) -> str:
    if kind is not Kind.INDEX:
        return "load_$(u32({}))"
    return "i32(min(load_$(u32({})), 0x7fffffffu))" if unsigned else "i32(load_$(u32({})))"


def _shader_leaf(part: Formula, in_arithmetic: bool, form: ShaderForm) -> str:
    if part.name == CONSTANT:
        return constant(part.value)
    if isinstance(part, Element):
        return f"vec2<u32>(params.{part.name}, params.{part.name}_high)" if form.wide else f"params.{part.name}"
    if isinstance(part, Size) and part.fixed:
        return constant(part.value)
    return f"params.{part.name}" if isinstance(part, Size | Real) else part.name


def _indices(kernel: Kernel) -> list[str]:
    """The indices that the kernel uses, of the number `at`."""
    names, lines, rest = {part.name for part in kernel.value}, list[str](), "at"
    for axis in reversed(kernel.space):
        if f"to_{axis.name}" in names:
            lines.append(f"    let to_{axis.name} = i32({rest});")
        if axis.outer is None:
            lines += [f"    let {axis.name} = i32({rest});"] if axis.name in names else []
            break
        extent = f"u32(params.{axis.extent.name})"
        if axis.name in names:
            lines.append(f"    let {axis.name} = i32({rest} % {extent});")
        outer = axis.outer
        if not any(name in names for a in _around(outer) for name in (a.name, f"to_{a.name}")):
            break
        lines.append(f"    let at_{outer.name} = {rest} / {extent};")
        rest = f"at_{outer.name}"
    return lines


def _around(axis: Axis | None) -> Iterator[Axis]:
    """The axis and all those around it."""
    while axis is not None:
        yield axis
        axis = axis.outer
