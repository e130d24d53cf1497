"""Checks of what callers ask for by number or by name, before anything is done with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from webinfer.errors import InputError

MAX_THREADS = 64
MAX_REGIMES = 6  # plans with symbols that a session keeps: a few thresholds, and sizes of 1
MAX_PACKAGED_REGIMES = 24  # of a package, which cannot make more when sizes of another kind come
MAX_ROUNDS = 1_000_000
MAX_SIZE = 2**31 - 1  # of one dimension
FINITE = 3e38  # larger than any number of milliseconds


def whole_number(option: str, value: Any, low: int, high: int, more: str = "") -> int:
    """The option's value, a whole number from `low` to `high`; `more` says what else is allowed.

    Raises:  InputError naming the option, what was found and what is allowed
    """
    if not _is(Integral, value) or not low <= value <= high:
        raise InputError(f"{option} is {value!r}, needs a whole number from {low} to {high}{more}")
    return int(value)


def real_number(
    option: str, value: Any, high: float = FINITE, unit: str = "", more: str = "", *, low: float = 0
) -> float:
    """The option's value, a number from `low` to `high`; `more` says what else is allowed.

    Raises:  InputError naming the option, what was found and what is allowed
    """
    if not _is(Real, value) or not low <= value <= high:
        upper = " up" if high == FINITE else f" to {high:g}"
        raise InputError(f"{option} is {value!r}, needs a number{unit} from {low:g}{upper}{more}")
    return float(value)


def threshold(named: Mapping[str, float | None], default: Any) -> Any:
    """The score of 0..1 that is given by one of several names for it; the default where it is given by none.

    Raises:  InputError naming the option, what was found and what is allowed, also if it is given twice
    """
    given = {name: value for name, value in named.items() if value is not None}
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are two names of one option; pass one of them")
    for name, value in given.items():
        return real_number(name, value, high=1)
    return default


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def check_names(option: str, given: Any, what: str) -> Mapping[str, Any]:
    """An option that is a mapping from names of inputs; an empty one for None.

    Raises:  InputError
    """
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{option} is {given!r}, needs a mapping from names of inputs to their {what}, or None")
    found: Mapping[str, Any] = given or {}
    for name, one in found.items():
        if not isinstance(name, str):
            raise InputError(f"{option} has {name!r}: {one!r}, needs an input's name and {what}")
    return found


def checked_shapes(shapes: Any) -> dict[str, tuple[int, ...]] | None:
    """The sizes that `shapes` binds, by input; None for None.

    Raises:  InputError naming the input, what was found and what is allowed
    """
    if shapes is None:
        return None
    found = {}
    for name, sizes in check_names("shapes", shapes, "sizes").items():
        if not isinstance(sizes, Sequence) or isinstance(sizes, (str, bytes)):
            raise InputError(f"shapes has {name!r}: {sizes!r}, needs an input's name and a sequence of its sizes")
        found[name] = tuple(whole_number(f"shapes, a size of {name!r},", size, 0, MAX_SIZE) for size in sizes)
    return found
