"""WebAssembly modules as sections and functions that can be changed. Reads what build_scripts/kernels makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from webinfer.errors import ModelFormatError
from webinfer.lazy_dataclass import dataclass

HEAD = b"\0asm\x01\0\0\0"
CUSTOM, TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT, START, ELEMENT, CODE, DATA, DATA_COUNT = range(13)
ORDER = (TYPE, IMPORT, FUNCTION, MEMORY, GLOBAL, EXPORT, START, DATA_COUNT, CODE, DATA)
IS_FUNCTION, IS_MEMORY, IS_GLOBAL = 0, 2, 3  # kinds of imports and exports
CALL = 0x10


def unsigned(value: int) -> bytes:
    """A whole number from 0 up in LEB128."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def signed(value: int) -> bytes:
    """A whole number in signed LEB128."""
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value & 0x7F))


def sized(data: bytes) -> bytes:
    """Bytes behind their number."""
    return unsigned(len(data)) + data


def vector(items: Iterable[bytes]) -> bytes:
    """Encoded items behind their number."""
    found = list(items)
    return unsigned(len(found)) + b"".join(found)


class Cursor:
    """Reads along bytes.

    Raises:  ModelFormatError where they end too early
    """

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def byte(self) -> int:
        """The next byte."""
        self.at += 1
        try:
            return self.data[self.at - 1]
        except IndexError:
            raise ModelFormatError(f"a WebAssembly module ends after {len(self.data)} bytes, within a part") from None

    def number(self) -> int:
        """A LEB128 number, read as unsigned."""
        value = shift = 0
        while (byte := self.byte()) > 0x7F:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def take(self, count: int) -> bytes:
        """So many bytes."""
        found = self.data[self.at : self.at + count]
        if len(found) != count:
            raise ModelFormatError(f"a WebAssembly module of {len(self.data)} bytes ends {count - len(found)} early")
        self.at += count
        return found

    def name(self) -> str:
        """A text."""
        return self.take(self.number()).decode()


@dataclass(slots=True)
class Module:
    """A module of one memory, without tables. Numbers of functions count the imported ones first."""

    types: list[bytes] = field(default_factory=list)  # as encoded
    imports: list[tuple[str, str, int, bytes]] = field(default_factory=list)  # module, name, kind, what it must be
    signatures: list[int] = field(default_factory=list)  # of own functions: the number of the type
    bodies: list[bytes] = field(default_factory=list)  # of own functions
    memory: bytes = b""  # limits; empty where it is imported
    globals: list[bytes] = field(default_factory=list)
    exports: dict[str, tuple[int, int]] = field(default_factory=dict)  # name -> kind, number
    start: int | None = None
    data: list[bytes] = field(default_factory=list)  # segments
    custom: dict[str, bytes] = field(default_factory=dict)

    @property
    def imported(self) -> int:
        """How many functions are imported."""
        return sum(kind == IS_FUNCTION for _, _, kind, _ in self.imports)

    @classmethod
    def read(cls, data: bytes) -> Module:
        """The module in these bytes; custom sections are left out.

        Raises:  ModelFormatError if they are none, or one with tables, passive data or several memories
        """
        if data[:8] != HEAD:
            raise ModelFormatError(f"{data[:8].hex(' ')} does not begin a WebAssembly module")
        found, cursor = cls(), Cursor(data, 8)
        while cursor.at < len(data):
            number = cursor.byte()
            part = Cursor(cursor.take(cursor.number()))
            if number in _READERS:
                _READERS[number](found, part)
            elif number not in (CUSTOM, DATA_COUNT, TABLE, ELEMENT):
                raise ModelFormatError(f"a WebAssembly module has section {number}, which kernels have not")
        return found

    def function(self, type_: bytes, body: bytes, name: str = "") -> int:
        """Adds a function, exported if it has a name; its number."""
        if type_ not in self.types:
            self.types.append(type_)
        self.signatures.append(self.types.index(type_))
        self.bodies.append(body)
        number = self.imported + len(self.bodies) - 1
        if name:
            self.exports[name] = (IS_FUNCTION, number)
        return number

    def constant(self, name: str) -> int:
        """The value of an exported global that never changes, or of a function that returns a number and no more."""
        kind, number = self.exports[name]
        data, begin = (self.bodies[number - self.imported], 2) if kind == IS_FUNCTION else (self.globals[number], 3)
        cursor = Cursor(data, begin)  # behind locals, or type and mutability; and i32.const
        value, width = cursor.number(), 7 * (cursor.at - begin)
        return value - (1 << width) if value >> (width - 1) else value

    def written(self) -> bytes:
        """The module's bytes."""
        imports = [
            sized(module.encode()) + sized(name.encode()) + bytes((kind,)) + what
            for module, name, kind, what in self.imports
        ]
        exports = [
            sized(name.encode()) + bytes((kind,)) + unsigned(number) for name, (kind, number) in self.exports.items()
        ]
        parts = {
            TYPE: vector(self.types),
            IMPORT: vector(imports) if imports else b"",
            FUNCTION: vector(map(unsigned, self.signatures)),
            MEMORY: vector([self.memory]) if self.memory else b"",
            GLOBAL: vector(self.globals),
            EXPORT: vector(exports),
            START: b"" if self.start is None else unsigned(self.start),
            DATA_COUNT: unsigned(len(self.data)),
            CODE: vector(map(sized, self.bodies)),
            DATA: vector(self.data),
        }
        whole = b"".join(bytes((number,)) + sized(parts[number]) for number in ORDER if parts[number])
        custom = b"".join(b"\0" + sized(sized(name.encode()) + data) for name, data in self.custom.items())
        return HEAD + whole + custom


def _each(cursor: Cursor) -> Iterator[int]:
    yield from range(cursor.number())


def _slice(cursor: Cursor, begin: int) -> bytes:
    return cursor.data[begin : cursor.at]


def _types(module: Module, part: Cursor) -> None:
    for _ in _each(part):
        begin = part.at
        part.byte()
        part.take(part.number())
        part.take(part.number())
        module.types.append(_slice(part, begin))


def _imports(module: Module, part: Cursor) -> None:
    for _ in _each(part):
        place, name, kind = part.name(), part.name(), part.byte()
        begin = part.at
        if kind == IS_MEMORY:
            _limits(part)
        elif kind == IS_FUNCTION:
            part.number()
        else:
            raise ModelFormatError(f"a WebAssembly module imports {place}.{name}, which kernels do not")
        module.imports.append((place, name, kind, _slice(part, begin)))


def _limits(part: Cursor) -> None:
    bounded = part.byte() & 1
    part.number()
    if bounded:
        part.number()


def _functions(module: Module, part: Cursor) -> None:
    module.signatures += [part.number() for _ in _each(part)]


def _memory(module: Module, part: Cursor) -> None:
    for _ in _each(part):
        begin = part.at
        _limits(part)
        module.memory = _slice(part, begin)


def _globals(module: Module, part: Cursor) -> None:
    for _ in _each(part):
        begin = part.at
        part.take(2)
        if part.byte() != 0x41:
            raise ModelFormatError(
                "a WebAssembly module has a global that is not an i32 number, which kernels have not"
            )
        part.number()
        part.byte()
        module.globals.append(_slice(part, begin))


def _exports(module: Module, part: Cursor) -> None:
    for _ in _each(part):
        name = part.name()
        module.exports[name] = (part.byte(), part.number())


def _start(module: Module, part: Cursor) -> None:
    module.start = part.number()


def _code(module: Module, part: Cursor) -> None:
    module.bodies += [part.take(part.number()) for _ in _each(part)]


def _data(module: Module, part: Cursor) -> None:
    for _ in _each(part):
        begin = part.at
        mode = part.number()
        if mode == 0:
            if part.byte() != 0x41:
                raise ModelFormatError("a WebAssembly module has data at an address that is not a constant")
            part.number()
            part.byte()
        elif mode != 1:
            raise ModelFormatError(f"a WebAssembly module has data of mode {mode}, which kernels have not")
        part.take(part.number())
        module.data.append(_slice(part, begin))


_READERS = {
    TYPE: _types, IMPORT: _imports, FUNCTION: _functions, MEMORY: _memory, GLOBAL: _globals, EXPORT: _exports,
    START: _start, CODE: _code, DATA: _data,
}  # fmt: skip


def segment(address: int, data: bytes) -> bytes:
    """A data segment that is there from the start."""
    return b"\0\x41" + signed(address) + b"\x0b" + sized(data)


def with_calls(body: bytes, calls: Iterable[tuple[int, int, int]], numbers: Mapping[int, int]) -> bytes:
    """A body whose calls (first byte of the number, byte behind it, number) are of functions of new numbers."""
    out, done = bytearray(), 0
    for begin, end, number in calls:
        out += body[done:begin] + unsigned(numbers[number])
        done = end
    return bytes(out + body[done:])
