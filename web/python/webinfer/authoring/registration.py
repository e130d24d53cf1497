"""Custom operators: registering one makes it an operator like the built-in ones, in graphs and in files.

webinfer.register_operator(
    "my.scaled_relu",
    params={"scale": 1.0},
    wgsl="max(load_x(i), 0.0) * params.scale",
    reference=lambda x, scale: x.clip(0) * scale,
)
"""

from __future__ import annotations

import dataclasses
import inspect
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webinfer.errors import InputError, ShapeError
from webinfer.graph.ir import TensorType
from webinfer.graph.printer import safe_name
from webinfer.importers.tflite.custom import CONVERTERS
from webinfer.ops import OPS
from webinfer.ops.custom import BY_CODE, CUSTOM, CustomOp, Form, arguments, call, result_types
from webinfer.ops.registry import ONE_ROUNDING, elementwise_cost

MAX_WGSL = 65536  # characters
MAX_TENSORS = 8
MAX_ENTRIES = 8  # of a parameter that is a tuple
NAME = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)+", re.ASCII)
WORD = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
KEYWORDS = frozenset(
    "alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if "
    "let loop override requires return struct switch true var while".split()
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
CALL = re.compile(r"(?<!fn )\b(load4?|store4?|index|place)_(\w+)\s*\(", re.ASCII)
PARAM = re.compile(r"\bparams\s*\.\s*(\w+)", re.ASCII)
PAIRS = {")": "(", "]": "[", "}": "{"}


def register_operator(
    name: str,
    *,
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
    params: Mapping[str, float | int | bool | tuple[int, ...]] | None = None,
    shape: Callable[..., Any] | None = None,
    wgsl: str = "",
    form: str = "element",
    workgroups: Callable[..., Sequence[int]] | None = None,
    reference: Callable[..., Any] | None = None,
    custom_code: str = "",
    read_options: Callable[[bytes], Mapping[str, Any]] | None = None,
    replace: bool = False,
) -> None:
    """Registers a custom operator. Its name contains a dot, such as "my.scaled_relu".

    `params` are its attributes with their defaults. `shape(*types, **params)` gives the output's shape or
    `TensorType` (a tuple of them for several outputs); without it every output is typed as the first input.

    `wgsl` is what a GPU computes. Per input `x` it may use `load_x(k)` and `load4_x(q)` (element k, elements
    4q..4q+3), per tensor `x_count`, `x_shape[d]`, `place_x(i)` (element i's indices) and `index_x(place)`
    (the way back), and `params.NAME` (`NAME_at(d)` for a tuple). `form` says what it is:
    "element": an expression, or statements that return, of element `i` of the output `y`, a `y_t`;
    "quad": the same of elements 4q..4q+3 at once, a `y_v`;
    "shader": a whole shader with its own `main`, `workgroups(*types, **params)` of which run. It writes by
    `store4_y(q, v)`, for types of 32 bits also by `store_y(i, v)`.

    `reference(*arrays, **params)` computes it on the host: NumPy arrays, or `Tensor`s where there is no NumPy.
    It judges the shader in `verify` and stands in for it where the operator runs on wasm.

    `custom_code` is the operator's name in TFLite files; its options are a FlexBuffer map of params, or what
    `read_options(bytes)` makes of them.

    Raises:  InputError saying what is wrong
    """
    _check_name(name, custom_code, replace)
    op = CustomOp(
        name, _attributes(name, params or {}), lambda types, attrs: _infer(op, shape, types, attrs), elementwise_cost,
        ONE_ROUNDING, (), tuple(inputs), tuple(outputs), wgsl, _form(name, form), workgroups, reference, custom_code,
        read_options,
    )  # fmt: skip
    _check(op)
    for what, function in (("shape", shape), ("workgroups", workgroups), ("reference", reference)):
        _check_function(op, what, function)
    unregister_operator(name, missing_ok=True)
    CUSTOM[name] = op
    if custom_code:
        BY_CODE[custom_code] = op


def unregister_operator(name: str, *, missing_ok: bool = False) -> None:
    """Removes a custom operator; existing sessions and graphs keep it.

    Raises:  InputError if there is none of this name
    """
    op = CUSTOM.pop(name, None)
    if op is not None:
        if BY_CODE.get(op.custom_code) is op:
            del BY_CODE[op.custom_code]
    elif not missing_ok:
        raise InputError(f"no custom operator is called {safe_name(name)}; there are {', '.join(CUSTOM) or 'none'}")


def operators() -> list[str]:
    """The names of all operators, built-in and registered."""
    return sorted([*OPS, *CUSTOM])


def _infer(
    op: CustomOp, shape: Callable[..., Any] | None, types: Sequence[TensorType | None], attrs: Any
) -> tuple[TensorType, ...]:
    _check_numbers(op, attrs)
    if shape is None:
        return (call(op, lambda first, *_, **__: first, types, attrs),) * len(op.outputs)
    return result_types(op, call(op, shape, types, attrs), types[0] or TensorType(()))


def _check(op: CustomOp) -> None:
    """What can be told without a compiler and without inputs."""
    _check_tensors(op)
    if op.wgsl:
        _check_wgsl(op)
    elif op.reference is None:
        raise InputError(f"{op.name} has neither wgsl nor reference; nothing could run it")
    if (op.workgroups is not None) != (op.form is Form.SHADER):
        raise InputError(f"{op.name}: `workgroups` belongs to form 'shader', and that needs it")


def _check_name(name: str, custom_code: str, replace: bool) -> None:
    if len(name) > 64 or not NAME.fullmatch(name):
        raise InputError(f"{safe_name(name)} cannot name an operator; give words with a dot between, as my.scaled_relu")
    if not replace and name in CUSTOM:
        raise InputError(f"{name} is already registered; pass replace=True, or unregister_operator first")
    holder = BY_CODE.get(custom_code)
    if not replace and ((holder and holder.name != name) or custom_code in CONVERTERS):
        raise InputError(f"{name}: the custom code {safe_name(custom_code)} already has a meaning; pass replace=True")


def _form(name: str, form: str) -> Form:
    try:
        return Form(form)
    except ValueError:
        raise InputError(f"{name}: there is no form {form!r}; there are {', '.join(Form)}") from None


def _attributes(name: str, params: Mapping[str, Any]) -> type:
    """A class with a field for each parameter."""
    for param, default in params.items():
        _check_word(name, param)
        if type(default) not in (float, int, bool, tuple):
            raise InputError(f"{name}: parameter {param} is {default!r}; give a number, a boolean or a tuple of ints")
    fields = [(param, type(default), default) for param, default in params.items()]
    return dataclasses.make_dataclass("CustomAttrs", fields, frozen=True)


def _check_word(name: str, word: str) -> None:
    if len(word) > 32 or not WORD.fullmatch(word) or word in KEYWORDS or keyword.iskeyword(word):
        raise InputError(f"{name}: {safe_name(word)} cannot name a tensor or parameter; give a word of a-z, 0-9 and _")


def _check_numbers(op: CustomOp, attrs: Any) -> None:
    for param, value in arguments(attrs).items():
        numbers = value if isinstance(value, tuple) else (value,)
        whole = all(type(n) in (int, bool) and abs(n) < 2**31 for n in numbers) and len(numbers) <= MAX_ENTRIES
        if not whole and not (type(value) is float and abs(value) <= 3.4e38):
            raise ShapeError(f"{op.name}: {param} is {value!r}; WGSL has 32-bit numbers, tuples up to {MAX_ENTRIES}")


def _check_tensors(op: CustomOp) -> None:
    names = (*op.inputs, *op.outputs)
    for word in names:
        _check_word(op.name, word)
    if len(set(names)) < len(names) or not op.inputs or not op.outputs or len(names) > MAX_TENSORS:
        raise InputError(f"{op.name}: inputs and outputs are {names}; give 2 to {MAX_TENSORS} different names")
    if op.form is not Form.SHADER and op.wgsl and op.outputs != ("y",):
        raise InputError(f"{op.name}: form {op.form} computes one output called y; for others take form 'shader'")


def _check_wgsl(op: CustomOp) -> None:
    """What can be told without a compiler; the rest is a GpuError when a session is loaded."""
    if len(op.wgsl) > MAX_WGSL:
        raise InputError(f"{op.name}: its wgsl has {len(op.wgsl)} characters, the limit is {MAX_WGSL}")
    text = COMMENT.sub(" ", op.wgsl)
    if not text.strip() or "\0" in text:
        raise InputError(f"{op.name}: its wgsl is not text")
    _check_brackets(op.name, text)
    if op.form is Form.SHADER and not re.search(r"@compute\b[^;{]*\bfn\s+main\s*\(", text):
        raise InputError(f"{op.name}: form 'shader' needs a function main with @compute")
    known = {"load": op.inputs, "store": op.outputs if op.form is Form.SHADER else ()}
    for verb, word in CALL.findall(text):
        names = known.get(verb.rstrip("4"), (*op.inputs, *op.outputs))
        if word not in names and not re.search(rf"\bfn\s+{verb}_{word}\b", text):
            raise InputError(f"{op.name}: its wgsl calls {verb}_{word}; {verb}_ goes with {', '.join(names) or 'none'}")
    params = [field.name for field in dataclasses.fields(op.attrs)]
    for word in PARAM.findall(text):
        if word not in params:
            raise InputError(f"{op.name}: its wgsl reads params.{word}; there are {', '.join(params) or 'none'}")


def _check_brackets(name: str, text: str) -> None:
    opened: list[str] = []
    for character in text:
        if character in PAIRS.values():
            opened.append(character)
        elif character in PAIRS and (not opened or opened.pop() != PAIRS[character]):
            raise InputError(f"{name}: its wgsl has a {character} too many")
    if opened:
        raise InputError(f"{name}: its wgsl does not close a {opened[-1]}")


def _check_function(op: CustomOp, what: str, function: Callable[..., Any] | None) -> None:
    """Whether a function takes the inputs and the parameters, where Python can tell."""
    if function is None:
        return
    try:
        signature = inspect.signature(function)
    except ValueError:
        return
    except TypeError:
        raise InputError(f"{op.name}: {what} is a {type(function).__name__}, needs a function") from None
    try:
        signature.bind(*op.inputs, **{field.name: None for field in dataclasses.fields(op.attrs)})
    except TypeError as error:
        raise InputError(f"{op.name}: {what} must take {', '.join(op.inputs)} and the params: {error}") from None
