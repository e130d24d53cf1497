"""A Jinja2 environment for chat templates out of model files: nothing that they say runs for long or fills the memory.

Jinja2's sandbox keeps a template from Python's attributes. It leaves open how much a template computes: constants are
folded when it is compiled, loops nest, texts multiply. Here nothing is folded, every operator, call, filter, loop and
output is counted, and a run ends with a TemplateError at a limit.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from jinja2 import Template, TemplateError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_SOURCE = 400_000  # characters of a template; real ones have up to 20,000
MAX_TEXT = 10_000_000  # characters of a chat, and of any text on the way
MAX_ITEMS = 1_000_000  # of a list with the lists in it
MAX_STEPS = 1_000_000
MAX_SECONDS = 5.0
MAX_BITS = 4096  # of a whole number
SMALL = 64  # a width or a count that any text may have
REMOVED = ("urlize", "wordwrap", "pprint", "xmlattr", "striptags", "random")  # filters; no chat needs them
_WIDTH = re.compile(r"%(?:\([^)]*\))?[-+ #0]*(?:\d{3,}|\*)|%[^A-Za-z%]*\.(?:\d{3,}|\*)")  # of % formatting, large
_FIELD = re.compile(r"\{[^{}]*:[^{}]*(?:\d{3,}|\{)")  # of str.format: a large width, or one that is an argument
_DATE = re.compile(r"(?:[^%]|%[-_0^#]?[A-Za-z%])*")


class _Budget:
    """What a run may still spend."""

    def __init__(self) -> None:
        self.steps, self.text, self.end = MAX_STEPS, 4 * MAX_TEXT, time.monotonic() + MAX_SECONDS

    def spend(self, steps: int = 1, text: int = 0) -> None:
        self.steps -= steps
        self.text -= text
        if self.steps < 0 or self.text < 0 or time.monotonic() > self.end:
            raise TemplateError("it computes too much: it repeats itself, or its text grows without end")


_budget: ContextVar[_Budget] = ContextVar("budget of a chat template")


def size_of(value: Any) -> int:
    """Elements and thousands of characters in a value with those in it, counted up to MAX_ITEMS."""
    waiting, count = [value], 0
    while waiting and count <= MAX_ITEMS:
        one = waiting.pop()
        count += 1 + (len(one) // 1000 if isinstance(one, str) else 0)
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple)):
            if len(one) > MAX_ITEMS:
                return len(one)
            waiting += one
    return count


def checked(value: Any) -> Any:
    """The value, which is small enough to go on with."""
    large = isinstance(value, str) and len(value) > MAX_TEXT
    if not large and isinstance(value, int):
        large = value.bit_length() > MAX_BITS
    if not large and isinstance(value, (list, tuple, dict)):
        large = size_of(value) > MAX_ITEMS
    if large:
        raise TemplateError("it makes a text, a list or a number that is too large")
    _budget.get().spend()
    return value


def _check_product(left: Any, right: Any) -> None:
    for count, other in ((left, right), (right, left)):
        if isinstance(count, int) and isinstance(other, (str, list, tuple, bytes)):
            size, limit = (len(other), MAX_TEXT) if isinstance(other, (str, bytes)) else (size_of(other), MAX_ITEMS)
            if size * count > limit:
                raise TemplateError(f"it repeats something {count} times")
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > MAX_BITS:
        raise TemplateError("it multiplies large numbers")


def _check_power(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * max(right, 0) > MAX_BITS:
        raise TemplateError("it raises to a large power")


def _check_format(text: Any, _: Any = None) -> None:
    if isinstance(text, str) and _WIDTH.search(text):
        raise TemplateError("it formats to a large width")


_BEFORE: dict[str, Callable[[Any, Any], None]] = {"*": _check_product, "**": _check_power, "%": _check_format}


def _check_arguments(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Refuses what would make much out of little: widths, counts, replacements of every letter by a long text."""
    texts = [one for one in given if isinstance(one, str)]
    longest = max(map(len, texts), default=1)
    for one in (*given, *named.values()):
        if isinstance(one, int) and name != "range" and abs(one) > SMALL and abs(one) * longest > MAX_TEXT:
            raise TemplateError(f"{name} is given the number {one}")
        checked(one)
    if name == "replace" and len(texts) >= 3:
        text, old, new = texts[:3]
        if (text.count(old) if old else len(text) + 1) * len(new) > MAX_TEXT:
            raise TemplateError("it replaces so that a text grows too long")
    if name == "join":
        separator = sum(map(len, texts))
        parts = [one for one in given if isinstance(one, (list, tuple))]
        if any(separator * len(part) + sum(len(s) for s in part if isinstance(s, str)) > MAX_TEXT for part in parts):
            raise TemplateError("it joins too much")
    if name in ("format", "format_map") and texts and (_FIELD.search(texts[0]) or _WIDTH.search(texts[0])):
        raise TemplateError("it formats to a large width")


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose arguments and result are checked."""

    @functools.wraps(function)  # its marks for Jinja2 too
    def guarded(*given: Any, **named: Any) -> Any:
        _check_arguments(name, given, named)
        return checked(function(*given, **named))

    return guarded


class _Counted:
    """What a loop goes over; each turn is counted, with the text that stands in it."""

    def __init__(self, items: Any, text: int) -> None:
        self._items, self._text = items, text

    def __iter__(self) -> Iterator[Any]:
        budget = _budget.get()
        for item in self._items:
            budget.spend(1, self._text)
            yield item

    def __len__(self) -> int:
        return len(self._items)


class _Unfolded(CodeGenerator):
    """Evaluates no expression when a template is compiled, and joins texts by `Environment.joined`."""

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")

    def visit_EvalContextModifier(self, node: nodes.EvalContextModifier, frame: Frame) -> None:
        raise TemplateError("it changes how text is escaped, which chats do not need")

    visit_ScopedEvalContextModifier = visit_EvalContextModifier


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """The environment of one template."""

    code_generator_class = _Unfolded
    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"], optimized=False,
            finalize=self.written,
        )  # fmt: skip
        del self.globals["lipsum"]
        for name in REMOVED:
            del self.filters[name]
        self.filters.update({name: _guarded(name, function) for name, function in self.filters.items()})
        self.globals["raise_exception"] = _refuse
        self.globals["strftime_now"] = _now
        self.counted, self.counted_text = _Counted, _count_text
        self.checked = checked

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The value of an operator, within limits."""
        if operator in _BEFORE:
            _BEFORE[operator](left, right)
        return checked(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *given: Any, **named: Any) -> Any:
        """The value of a call, within limits."""
        name = getattr(__obj, "__name__", "")
        owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)  # Jinja2 wraps str.format
        held = (owner, *given) if isinstance(owner, (str, bytes)) else given
        if __obj is not _Counted:
            _check_arguments(name, held, named)
        return checked(super().call(__context, __obj, *given, **named))

    def joined(self, parts: tuple[Any, ...]) -> str:
        """Texts and other values behind each other."""
        for part in parts:
            checked(part)
        return str(checked("".join(map(str, parts))))

    def written(self, value: Any) -> Any:
        """A value that is written to the chat, counted."""
        text = str(checked(value)) if not isinstance(value, str) else value
        _budget.get().spend(1, len(text))
        return text

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for loop in list(tree.find_all(nodes.For)):
            loop.iter = _call("counted", loop.iter, nodes.Const(_text_below(loop)))
        macros: list[Any] = list(tree.find_all((nodes.Macro, nodes.CallBlock)))
        for macro in macros:
            macro.body.insert(0, nodes.ExprStmt(_call("counted_text", nodes.Const(_text_below(macro)))))
        _check_literals(tree)
        return tree


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _now(form: str) -> str:
    if len(form) > SMALL or not _DATE.fullmatch(form):
        raise TemplateError("strftime_now is given another form than those of dates")
    return datetime.now().strftime(form)


def _count_text(size: int) -> str:
    _budget.get().spend(1, size)
    return ""


def _call(name: str, *given: Any) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(name), list(given), [], None, None)


def _text_below(node: nodes.Node) -> int:
    return sum(len(data.data) for data in node.find_all(nodes.TemplateData))


def _check_literals(node: nodes.Node) -> None:
    """Has each list that is written out checked: lists of lists of lists are large, and small to write."""
    for field, value in node.iter_fields():
        children = value if isinstance(value, list) else [value]
        for i, child in enumerate(children):
            if not isinstance(child, nodes.Node):
                continue
            _check_literals(child)
            literal = isinstance(child, (nodes.List, nodes.Dict)) or (
                isinstance(child, nodes.Tuple) and child.ctx == "load"
            )
            if literal and isinstance(value, list):
                value[i] = _call("checked", child)
            elif literal:
                setattr(node, field, _call("checked", child))


def compiled(source: str) -> Template:
    """A chat template in a sandbox; `generate` it with `run`.

    Raises:  TemplateError if it is none
    """
    if len(source) > MAX_SOURCE:
        raise TemplateError(f"it has {len(source)} characters; {MAX_SOURCE} are read")
    token = _budget.set(_Budget())
    try:
        return TemplateSandbox().from_string(source)
    finally:
        _budget.reset(token)


def run(template: Template, **values: Any) -> str:
    """What a template writes.

    Raises:  TemplateError at a limit; whatever else the template's code runs into
    """
    token = _budget.set(_Budget())
    parts, length = list[str](), 0
    try:
        for part in template.generate(**values):
            length += len(part)
            if length > MAX_TEXT:
                raise TemplateError(f"the chat is more than {MAX_TEXT} characters long")
            parts.append(part)
    finally:
        _budget.reset(token)
    return "".join(parts)
