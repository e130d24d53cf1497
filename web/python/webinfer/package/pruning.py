"""A kernels' module without the functions that a plan does not reach. Source: WebAssembly core specification 3.0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webinfer.errors import ModelFormatError
from webinfer.package.module import CALL, IS_FUNCTION, Cursor, Module, unsigned, with_calls

TRAPS = b"\0\0\x0b"  # a body: no locals, unreachable, end
Call = tuple[int, int, int]  # where in the body the function's number begins and ends, and the number

_NUMBERS = {  # opcodes with so many LEB128 numbers behind them; those that are not listed have none
    **dict.fromkeys((0x02, 0x03, 0x04, 0x0C, 0x0D, 0x10, 0x12, 0x3F, 0x40, 0x41, 0x42, 0xD0, 0xD2), 1),
    **dict.fromkeys(range(0x20, 0x27), 1),
    **dict.fromkeys((0x11, 0x13, *range(0x28, 0x3F)), 2),
}
_BYTES = {0x43: 4, 0x44: 8}  # constants
_BULK = {8: 2, 9: 1, 10: 2, 11: 1, 12: 2, 13: 1, 14: 2, 15: 1, 16: 1, 17: 1}  # numbers behind 0xFC and these
_KNOWN = {*range(0x00, 0x06), *range(0x0B, 0x14), 0x1A, 0x1B, 0x1C, *range(0x20, 0x27), *range(0x28, 0xC5), 0xD0, 0xD1,
          0xD2, 0xFC, 0xFD, 0xFE}  # fmt: skip


def calls_of(body: bytes) -> list[Call]:
    """The calls in a function's body.

    Raises:  ModelFormatError at an instruction that is not known here
    """
    cursor, found, end = Cursor(body), list[Call](), len(body)
    for _ in range(cursor.number()):  # locals
        cursor.number()
        cursor.byte()
    while cursor.at < end:
        code = cursor.byte()
        begin = cursor.at
        if code not in _KNOWN:
            raise ModelFormatError(f"a kernel has the instruction {code:#x}, which is not known here")
        if code >= 0xFC:
            _skip_prefixed(cursor, code)
        elif code == 0x0E:  # br_table
            for _ in range(cursor.number() + 1):
                cursor.number()
        elif code == 0x1C:  # select with types
            cursor.take(cursor.number())
        elif code in _BYTES:
            cursor.take(_BYTES[code])
        else:
            first = [cursor.number() for _ in range(_NUMBERS.get(code, 0))]
            if code == CALL:
                found.append((begin, cursor.at, first[0]))
    return found


def _skip_prefixed(cursor: Cursor, prefix: int) -> None:
    sub = cursor.number()
    if prefix == 0xFC:
        count = _BULK.get(sub, 0)
    elif prefix == 0xFE:  # atomics; a fence has one byte
        count = 1 if sub == 3 else 2
    else:
        count = 2 if sub <= 11 or 0x54 <= sub <= 0x5D else 0
        if sub in (12, 13):
            cursor.take(16)
    for _ in range(count):
        cursor.number()
    if prefix == 0xFD and (0x15 <= sub <= 0x22 or 0x54 <= sub <= 0x5B):
        cursor.byte()


def pruned(module: Module, kernels: Iterable[str], dropped: Iterable[str], exports: Sequence[str]) -> Module:
    """The module with what `exports` and `kernels` reach and nothing else.

    `dropped` are kernels that no plan of the package calls: who calls one of them all the same, traps, but for
    `kernels`, which may end in another one. One function of each type does that for all.

    Raises:  ModelFormatError if the module lacks one of the names, or has code that is not known here
    """
    numbers = {name: number for name, (kind, number) in module.exports.items() if kind == IS_FUNCTION}
    kept = {name for name in (*kernels, *exports) if name in numbers}
    if missing := {*kernels} - kept:
        raise ModelFormatError(f"the kernel module has no function {min(missing)!r}; rebuild the kernels")
    alive = {numbers[name] for name in kept} | _reached(module, [numbers[name] for name in kernels])
    traps = {numbers[name] for name in dropped if name in numbers} - alive
    bodies, calls, first = dict[int, bytes](), dict[int, list[Call]](), dict[int, int]()
    stands = {n: first.setdefault(module.signatures[n - module.imported], n) for n in sorted(traps)}
    waiting = sorted(alive | ({module.start} if module.start is not None else set()))
    imported = module.imported
    while waiting:
        number = waiting.pop()
        number = stands.get(number, number)
        if number in bodies or number < imported:
            continue
        bodies[number] = TRAPS if number in traps else module.bodies[number - imported]
        calls[number] = calls_of(bodies[number])
        waiting += [called for _, _, called in calls[number]]
    order = sorted(bodies)
    new = {n: n for n in range(imported)} | {old: imported + i for i, old in enumerate(order)}
    new |= {old: new[stand] for old, stand in stands.items() if stand in new}
    return Module(
        module.types,
        module.imports,
        [module.signatures[n - imported] for n in order],
        [with_calls(bodies[n], calls[n], new) for n in order],
        module.memory,
        module.globals,
        {
            name: (kind, new[number] if kind == IS_FUNCTION else number)
            for name, (kind, number) in module.exports.items()
            if name in kept or (kind != IS_FUNCTION and name in exports)
        },
        None if module.start is None else new[module.start],
        module.data,
    )


def _reached(module: Module, numbers: Sequence[int]) -> set[int]:
    """These functions and all that they call."""
    found, waiting = set[int](), list(numbers)
    while waiting:
        number = waiting.pop()
        if number not in found and number >= module.imported:
            found.add(number)
            waiting += [called for _, _, called in calls_of(module.bodies[number - module.imported])]
    return found


def with_imports(module: Module, functions: Sequence[tuple[str, str, bytes]]) -> None:
    """Adds imported functions (module, name, type) in front of all others, whose numbers change."""
    count, before = len(functions), module.imported
    numbers = {n: n if n < before else n + count for n in range(before + len(module.bodies))}
    module.bodies = [with_calls(body, calls_of(body), numbers) for body in module.bodies]
    module.exports = {
        name: (kind, numbers[number] if kind == IS_FUNCTION else number)
        for name, (kind, number) in module.exports.items()
    }
    module.start = None if module.start is None else numbers[module.start]
    for place, name, type_ in functions:
        if type_ not in module.types:
            module.types.append(type_)
        module.imports.append((place, name, IS_FUNCTION, unsigned(module.types.index(type_))))
