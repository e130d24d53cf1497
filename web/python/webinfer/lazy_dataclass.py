"""`dataclass` of the standard library, with methods that are compiled on first use: a model's load calls few of them.

The standard one compiles up to six methods when a class is defined, a fifth of a first load in CPython. Here it only
makes the fields and slots, so `fields`, `replace` and `asdict` work as ever.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

Method = Callable[..., Any]
_set = object.__setattr__
_pending: dict[tuple[type, str], Callable[[type], Method]] = {}  # how each method is made that was not called yet


def _dataclass(
    found: type | None = None, /, *, repr: bool = True, eq: bool = True, frozen: bool = False, **options: Any
) -> Any:
    """As `dataclasses.dataclass`, where `init` is True."""

    def made(found: type) -> type:
        own = vars(found)
        equal, hashed = eq and "__eq__" not in own, own.get("__hash__") is not None
        settled = {name for name in ("__init__", "__repr__") if name in own}
        found.__doc__ = found.__doc__ or found.__name__  # else the standard one asks `inspect` for a signature
        cls: Any = dataclasses.dataclass(found, init=False, repr=False, eq=False, **options)
        if "__init__" not in settled:
            _later(cls, "__init__", _frozen_init if frozen else _init)
            cls.__signature__ = _SIGNATURE
        if repr and "__repr__" not in settled:
            cls.__repr__ = _repr
        if equal:
            _later(cls, "__eq__", _eq)
        if eq and not hashed:
            cls.__hash__ = None
            if frozen:
                _later(cls, "__hash__", _hash)
        if frozen:
            cls.__setattr__, cls.__delattr__ = (
                _refusal(cls, "assign to", "__setattr__"),
                _refusal(cls, "delete", "__delattr__"),
            )
            if options.get("slots"):
                cls.__getstate__, cls.__setstate__ = _state, _set_state
        return cls  # type: ignore[no-any-return]

    return made if found is None else made(found)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # whose arguments type checkers know
else:
    dataclass = _dataclass


def compile_all() -> None:
    """Compiles the methods that were not called yet: for an image of the memory, which has them once for all."""
    for cls, name in list(_pending):
        _compiled(cls, name)


def _later(cls: type, name: str, make: Callable[[type], Method]) -> None:
    def method(self: Any, *args: Any, **given: Any) -> Any:
        return _compiled(cls, name)(self, *args, **given)

    _pending[cls, name] = make
    setattr(cls, name, method)


def _compiled(cls: type, name: str) -> Method:
    if (make := _pending.get((cls, name))) is not None:
        method = make(cls)
        method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
        setattr(cls, name, method)
        _pending.pop((cls, name), None)  # another thread may have been faster
    return vars(cls)[name]  # type: ignore[no-any-return]


def _init(cls: type, line: str = "self.{0} = {1}") -> Method:
    """Assigns the fields in their order, then calls `__post_init__`."""
    places: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    values: dict[str, Any] = {"set": _set}
    for f in dataclasses.fields(cls):
        parameter = value = f.name
        if f.default_factory is not dataclasses.MISSING:
            make = f"make_{f.name}"
            values[make] = f.default_factory
            parameter, value = (
                f"{f.name}={make}",
                f"{make}() if {f.name} is {make} else {f.name}" if f.init else f"{make}()",
            )
        elif f.default is not dataclasses.MISSING:
            values[f"default_{f.name}"] = f.default
            parameter = f"{f.name}=default_{f.name}"
            value = f.name if f.init else f"default_{f.name}"
        elif not f.init:
            continue
        if f.init:
            (named if f.kw_only else places).append(parameter)
        lines.append(line.format(f.name, value))
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return _function(["self", *places, *(["*", *named] if named else [])], lines or ["pass"], values)


def _frozen_init(cls: type) -> Method:
    return _init(cls, "set(self, {0!r}, {1})")


def _eq(cls: type) -> Method:
    mine, theirs = (
        "".join(f"{side}.{f.name}, " for f in dataclasses.fields(cls) if f.compare) for side in ("self", "other")
    )
    line = f"return ({mine}) == ({theirs}) if other.__class__ is self.__class__ else NotImplemented"
    return _function(["self", "other"], [line], {})


def _hash(cls: type) -> Method:
    hashed = [f.name for f in dataclasses.fields(cls) if (f.compare if f.hash is None else f.hash)]
    return _function(["self"], [f"return hash(({''.join(f'self.{name}, ' for name in hashed)}))"], {})


def _function(parameters: Sequence[str], lines: Sequence[str], values: Mapping[str, Any]) -> Method:
    names = dict(values)
    exec(f"def function({', '.join(parameters)}):\n " + "\n ".join(lines), names)
    function: Method = names["function"]
    return function


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _refusal(cls: type, doing: str, standard: str) -> Method:
    """The `__setattr__` or `__delattr__` of a frozen class: a subclass may have attributes of its own."""

    def method(self: Any, name: str, *value: Any) -> None:
        if type(self) is cls or any(name == f.name for f in dataclasses.fields(cls)):
            raise dataclasses.FrozenInstanceError(f"cannot {doing} field {name!r}")
        getattr(super(cls, self), standard)(name, *value)

    return method


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        _set(self, f.name, value)


class _Signature:
    """What `inspect.signature` tells of a class: the parameters of its `__init__`."""

    def __get__(self, _: Any, cls: type) -> inspect.Signature:
        for base in cls.__mro__:
            if "__init__" in vars(base):
                _compiled(base, "__init__")
                break
        return inspect.Signature(list(inspect.signature(cls.__init__).parameters.values())[1:])  # type: ignore[misc]


_SIGNATURE = _Signature()
