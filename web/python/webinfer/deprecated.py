"""Old public names. They work until release 0.3, with a DeprecationWarning that gives the new name."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def warn(old: str, new: str) -> None:
    """Says once per calling line that a name has changed."""
    warnings.warn(f"{old} is deprecated and will go in webinfer 0.3; use {new}", DeprecationWarning, stacklevel=3)


def renamed_arguments(**names: str) -> Callable[[Function], Function]:
    """A decorator that accepts old keyword arguments, with a warning; `names` maps each old name to the new one."""
    return _accepting(names, True)


def aliased_arguments(**names: str) -> Callable[[Function], Function]:
    """A decorator that accepts other libraries' names of keyword arguments; `names` maps each to our own name."""
    return _accepting(names, False)


def _accepting(names: Mapping[str, str], deprecated: bool) -> Callable[[Function], Function]:

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old in names.keys() & kwargs.keys():
                if deprecated:
                    warn(f"{old}=", f"{names[old]}=")
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def renamed(old: str, new: str) -> Any:
    """A property that stands for an attribute or method under its old name."""

    def get(owner: Any) -> Any:
        warn(f"{type(owner).__name__}.{old}", new)
        return getattr(owner, new)

    return property(get, doc=f"Deprecated: use `{new}`.")
