"""A WebAssembly module taken apart into sections and their rows, and put together again; no instruction is decoded."""

from collections.abc import Callable, Iterable, Iterator, Mapping

I32 = 0x7F
FUNCTION, TABLE, MEMORY, GLOBAL, TAG = range(5)  # kinds of imports and exports
ORDER = (1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11)  # of sections


def number(value: int) -> bytes:
    """An unsigned number as modules hold them (LEB128)."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def signed(value: int) -> bytes:
    """A signed number as modules hold them."""
    parts = bytearray()
    while not -64 <= value < 64:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value & 0x7F])


def vector(rows: Iterable[bytes | int]) -> bytes:
    """Rows behind their number."""
    whole = [bytes([row]) if isinstance(row, int) else row for row in rows]
    return number(len(whole)) + b"".join(whole)


def joined(segments: Iterable[tuple[int, bytes]], gap: int) -> list[tuple[int, bytes]]:
    """Segments in the order of their addresses; what lies at most `gap` zeros apart becomes one."""
    rows: list[tuple[int, bytearray]] = []
    for begin, data in segments:
        space = begin - rows[-1][0] - len(rows[-1][1]) if rows else 0
        if space < 0:
            raise ValueError(f"data at {begin} do not come behind those before them")
        if rows and space <= gap:
            rows[-1][1].extend(bytes(space) + data)
        else:
            rows.append((begin, bytearray(data)))
    return [(begin, bytes(data)) for begin, data in rows]


def body(code: bytes) -> bytes:
    """A function without locals, as its row in the code section."""
    inside = b"\x00" + code + b"\x0b"
    return number(len(inside)) + inside


def export(name: str, kind: int, index: int) -> bytes:
    """A row of the export section."""
    return _text(name) + bytes([kind]) + number(index)


def custom(name: str, content: bytes) -> bytes:
    """A custom section, as it stands at a module's end."""
    inside = _text(name) + content
    return b"\x00" + number(len(inside)) + inside


def function_import(module: str, name: str, what: bytes) -> bytes:
    """A row of the import section; `what` is its kind and type."""
    return _text(module) + _text(name) + what


def _text(text: str) -> bytes:
    return number(len(text.encode())) + text.encode()


class Reader:
    """Reads forwards through bytes."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def number(self) -> int:
        """An unsigned number."""
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        """A signed number."""
        begin = self.at
        value = self.number()
        bits = 7 * (self.at - begin)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def take(self, count: int) -> bytes:
        """So many bytes."""
        self.at += count
        return self.data[self.at - count : self.at]

    def text(self) -> str:
        """A name."""
        return self.take(self.number()).decode()

    def limits(self) -> bytes:
        """Bounds of a table or memory."""
        begin = self.at
        bounded = self.take(1)[0] & 1
        self.number()
        if bounded:
            self.number()
        return self.data[begin : self.at]

    def expression(self) -> bytes:
        """A constant expression of one instruction: a number or another global."""
        begin = self.at
        if self.take(1)[0] not in (0x41, 0x42, 0x23):
            raise ValueError(f"a constant begins with 0x{self.data[begin]:02x}, which is not read here")
        while self.take(1)[0] >= 0x80:
            pass
        if self.take(1) != b"\x0b":
            raise ValueError("a constant has more than one instruction")
        return self.data[begin : self.at]


class Module:
    """A module's sections, and those rows that a split of it must know. Types are plain functions."""

    def __init__(self, data: bytes) -> None:
        self._custom: list[bytes] = []
        self._sections: dict[int, bytes] = {}
        reader = Reader(data, 8)
        while reader.at < len(data):
            number_ = reader.take(1)[0]
            content = reader.take(reader.number())
            if number_ == 0:
                self._custom.append(content)
            else:
                self._sections[number_] = content
        self.types = self._rows(1, self._type)
        self._imports = self._rows(2, self._import)
        self.kinds = self._rows(3, lambda reader: number(reader.number()))
        self._tables = self._rows(4, lambda reader: reader.take(1) + reader.limits())
        self.bodies = self._rows(10, self._body)
        self._globals = self._rows(6, lambda reader: reader.take(2) + reader.expression())
        self.imported = self._imports.count(bytes([FUNCTION]))
        self.imported_globals = self._imports.count(bytes([GLOBAL]))
        self.functions = self.imported + len(self.bodies)
        self.count_of_globals = self.imported_globals + len(self._globals)
        self.mutable = sum(row[1] for row in self._globals)
        if any(row[:2] != bytes([I32, 1]) for row in self._globals[: self.mutable]):
            raise ValueError("globals that change do not come first, or are no 32-bit integers")

    def _rows(self, section: int, read: Callable[[Reader], bytes]) -> list[bytes]:
        reader = Reader(self._sections.get(section, b"\x00"))
        return [read(reader) for _ in range(reader.number())]

    @staticmethod
    def _type(reader: Reader) -> bytes:
        begin = reader.at
        if reader.take(1) != b"\x60":
            raise ValueError("a type is not a function's")
        reader.take(reader.number())
        reader.take(reader.number())
        return reader.data[begin : reader.at]

    @staticmethod
    def _import(reader: Reader) -> bytes:
        reader.text()
        reader.text()
        kind = reader.take(1)
        if kind == bytes([FUNCTION]):
            reader.number()
        elif kind == bytes([GLOBAL]):
            reader.take(2)
        else:
            raise ValueError(f"an import is of kind {kind[0]}")
        return kind

    @staticmethod
    def _body(reader: Reader) -> bytes:
        begin = reader.at
        reader.take(reader.number())
        return reader.data[begin : reader.at]

    def type_of(self, function: int) -> int:
        """The number of the type of a function that is not an import."""
        return Reader(self.kinds[function - self.imported]).number()

    def signature(self, kind: int) -> tuple[bytes, bytes]:
        """Types of parameters and of results."""
        reader = Reader(self.types[kind], 1)
        return reader.take(reader.number()), reader.take(reader.number())

    @property
    def tables(self) -> int:
        """How many tables there are."""
        return len(self._tables)

    @property
    def open_tables(self) -> list[bytes]:
        """The types of the tables, of any size."""
        return [row[:1] + b"\x00\x00" for row in self._tables]

    @property
    def open_memory(self) -> bytes:
        """The bounds of the memory as an import must have them: from nothing to the same end."""
        reader = Reader(self._sections[5], 1)
        flags = reader.take(1)
        reader.number()
        return flags + b"\x00" + (number(reader.number()) if flags[0] & 1 else b"")

    @property
    def constants(self) -> list[bytes]:
        """The globals that never change."""
        return self._globals[self.mutable :]

    @property
    def tags(self) -> list[tuple[str, bytes]]:
        """Tags of exceptions: under which name they are exported, and their type."""
        reader = Reader(self._sections.get(13, b"\x00"))
        kinds = [reader.take(1) + number(reader.number()) for _ in range(reader.number())]
        names = {index: name for name, kind, index in self.exports if kind == TAG}
        return [(names[i], kind) for i, kind in enumerate(kinds)]

    @property
    def exports(self) -> list[tuple[str, int, int]]:
        """Name, kind and number of what is exported."""
        reader = Reader(self._sections.get(7, b"\x00"))
        return [(reader.text(), reader.take(1)[0], reader.number()) for _ in range(reader.number())]

    @property
    def exported_functions(self) -> dict[str, int]:
        """The numbers of functions by the names of their exports."""
        return {name: index for name, kind, index in self.exports if kind == FUNCTION}

    def constant(self, index: int) -> int | None:
        """What a global always is; None if that is not written down as one 32-bit integer."""
        own = index - self.imported_globals
        if own < self.mutable or self._globals[own][:3] != bytes([I32, 0, 0x41]):
            return None
        reader = Reader(self._globals[own], 3)
        value = reader.signed()
        return value if reader.data[reader.at :] == b"\x0b" else None

    def joined_data(self, gap: int) -> list[tuple[int, bytes]]:
        """What memory, which is the module's own, begins with besides zeros: addresses and bytes."""
        return joined(self._rows_of_data(), gap)

    def _rows_of_data(self) -> Iterator[tuple[int, bytes]]:
        if 5 not in self._sections:
            raise ValueError("the memory is another module's")
        reader = Reader(self._sections.get(11, b"\x00"))
        for _ in range(reader.number()):
            if reader.take(2) != b"\x00\x41":
                raise ValueError("data have no constant address")
            begin = reader.signed()
            if reader.take(1) != b"\x0b":
                raise ValueError("an address has more than one instruction")
            yield begin, reader.take(reader.number())

    def more(self, section: int, rows: list[bytes]) -> bytes:
        """A section with further rows at its end."""
        reader = Reader(self._sections[section])
        count = reader.number()
        return number(count + len(rows)) + reader.data[reader.at :] + b"".join(rows)

    def prefixed(self, row: bytes, code: bytes) -> bytes:
        """A function's row in the code section with code before its own."""
        reader = Reader(row)
        reader.number()
        begin = reader.at
        for _ in range(reader.number()):
            reader.number()
            reader.take(1)
        inside = row[begin : reader.at] + code + row[reader.at :]
        return number(len(inside)) + inside

    def written(self, changed: Mapping[int, bytes | None]) -> bytes:
        """The module with other sections in the place of some, or without these; 0 stands for custom sections."""
        sections = {**self._sections, **changed}
        parts = [b"\x00asm\x01\x00\x00\x00"]
        if 0 not in changed:
            parts += [b"\x00" + number(len(content)) + content for content in self._custom]
        for section in ORDER:
            if (content := sections.get(section)) is not None:
                parts.append(bytes([section]) + number(len(content)) + content)
        return b"".join(parts)
