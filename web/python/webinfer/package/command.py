"""What makes a standalone module a WASI command: inputs come from standard input, outputs go to standard output.

The functions are short, so that they are written here instruction by instruction. Source: WASI preview 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.lazy_dataclass import dataclass
from webinfer.package.module import IS_MEMORY, Module, signed, unsigned
from webinfer.package.pruning import with_imports

I32 = 0x7F
WASI = "wasi_snapshot_preview1"
NPY_MARK = 6  # bytes that every .npy file begins with
FAILED = 2  # exit status
Text = tuple[int, int]  # address and bytes of a text in the module's memory


def signature(params: int, results: int = 0) -> bytes:
    """A function's type: so many i32 in, so many out."""
    return b"\x60" + unsigned(params) + bytes([I32] * params) + unsigned(results) + bytes([I32] * results)


# Instructions, as WebAssembly writes them.
RETURN, DROP, END, ELSE, LOOP, BLOCK, IF = b"\x0f", b"\x1a", b"\x0b", b"\x05", b"\x03\x40", b"\x02\x40", b"\x04\x40"
EQZ, EQ, NE, LESS, ADD, SUB = b"\x45", b"\x46", b"\x47", b"\x49", b"\x6a", b"\x6b"
LOAD, LOAD_BYTE, STORE = b"\x28\x02\x00", b"\x2d\x00\x00", b"\x36\x02\x00"
TRAP = b"\x00"


def const(value: int) -> bytes:
    """Puts a number on the stack."""
    return b"\x41" + signed(value - (1 << 32) if value >= 1 << 31 else value)


def get(local: int) -> bytes:
    """Puts a local on the stack."""
    return b"\x20" + unsigned(local)


def put(local: int) -> bytes:
    """Takes a local from the stack."""
    return b"\x21" + unsigned(local)


def call(function: int) -> bytes:
    """Calls a function."""
    return b"\x10" + unsigned(function)


def leave(depth: int) -> bytes:
    """Goes to the end of a block around, or back to the start of a loop."""
    return b"\x0c" + unsigned(depth)


def leave_if(depth: int) -> bytes:
    """As `leave`, if the number on the stack is not 0."""
    return b"\x0d" + unsigned(depth)


def body(*code: bytes, locals_: int = 0) -> bytes:
    """A function's body with so many i32 locals besides its parameters."""
    head = b"\x01" + unsigned(locals_) + bytes([I32]) if locals_ else b"\0"
    return head + b"".join(code) + END


@dataclass(frozen=True, slots=True)
class Stream:
    """A tensor that is read or written: where its bytes lie, and where the head of its .npy form does.

    Units:  addresses and bytes of the module's memory
    """

    address: int
    nbytes: int
    head: int
    head_bytes: int
    complaint: Text  # what is said when the input is not this tensor


def add_command(
    module: Module,
    run: int,
    inputs: Sequence[Stream],
    outputs: Sequence[Stream],
    scratch: int,
    too_long: Text,
) -> None:
    """Makes the module a command. `scratch` is the address of 32 free bytes, and as many as the longest head has.

    `run` is the number of the function that runs the model, before imports are added.
    """
    with_imports(
        module,
        [(WASI, "fd_read", signature(4, 1)), (WASI, "fd_write", signature(4, 1)), (WASI, "proc_exit", signature(1))],
    )
    fd_read, fd_write, proc_exit = range(3)
    run += 3
    fail = module.function(signature(2), b"", "")  # text, bytes
    moved = scratch + 8  # where WASI says how many bytes it moved; the vector is at `scratch`, the rest behind
    some = module.function(signature(2, 1), _one(fd_read, 0, scratch, moved))  # address, bytes -> bytes that came
    write = module.function(signature(3), _all_written(fd_write, proc_exit, scratch, moved))  # file, address, bytes
    read = module.function(signature(4), _all_read(some, fail))  # address, bytes, complaint's address and bytes
    same = module.function(signature(3, 1), _same())  # address, address, bytes -> 1 if equal
    module.bodies[fail - module.imported] = body(
        const(2), get(0), get(1), call(write), const(FAILED), call(proc_exit), TRAP
    )
    code = b"".join(_taken(stream, scratch + 32, read, same, fail) for stream in inputs if stream.nbytes)
    more = const(scratch + 16) + const(1) + call(some) + IF + const(too_long[0]) + const(too_long[1]) + call(fail) + END
    sent = b"".join(
        const(1) + const(at) + const(count) + call(write)
        for stream in outputs
        for at, count in ((stream.head, stream.head_bytes), (stream.address, stream.nbytes))
    )
    module.function(signature(0), body(code, more, call(run), sent), "_start")
    assert module.exports["memory"][0] == IS_MEMORY  # which WASI asks for


def _one(fd_read: int, file: int, vector: int, moved: int) -> bytes:
    """Reads once; 0 bytes at the end, and on any error."""
    return body(
        const(vector), get(0), STORE, const(vector + 4), get(1), STORE,
        const(file), const(vector), const(1), const(moved), call(fd_read),
        IF, const(0), RETURN, END, const(moved), LOAD,
    )  # fmt: skip


def _all_read(some: int, fail: int) -> bytes:
    """Reads until so many bytes are there; complains if there are fewer."""
    return body(
        BLOCK, LOOP, get(1), EQZ, leave_if(1), get(0), get(1), call(some), put(4),
        get(4), EQZ, IF, get(2), get(3), call(fail), END,
        get(0), get(4), ADD, put(0), get(1), get(4), SUB, put(1), leave(0), END, END,
        locals_=1,
    )  # fmt: skip


def _all_written(fd_write: int, proc_exit: int, vector: int, moved: int) -> bytes:
    """Writes until all is gone; ends the process if nobody takes it."""
    return body(
        BLOCK, LOOP, get(2), EQZ, leave_if(1),
        const(vector), get(1), STORE, const(vector + 4), get(2), STORE,
        get(0), const(vector), const(1), const(moved), call(fd_write), IF, const(FAILED), call(proc_exit), TRAP, END,
        get(1), const(moved), LOAD, ADD, put(1), get(2), const(moved), LOAD, SUB, put(2), leave(0), END, END,
    )  # fmt: skip


def _same() -> bytes:
    """Compares bytes one by one."""
    return body(
        BLOCK, LOOP, get(2), EQZ, leave_if(1),
        get(0), LOAD_BYTE, get(1), LOAD_BYTE, NE, IF, const(0), RETURN, END,
        get(0), const(1), ADD, put(0), get(1), const(1), ADD, put(1), get(2), const(1), SUB, put(2), leave(0), END, END,
        const(1),
    )  # fmt: skip


def _taken(stream: Stream, spare: int, read: int, same: int, fail: int) -> bytes:
    """Reads one input: raw bytes, or a .npy file with exactly the head that NumPy writes for such a tensor."""
    mark, (text, length) = min(NPY_MARK, stream.nbytes), stream.complaint
    complain = const(text) + const(length)
    return b"".join(
        (
            const(stream.address), const(mark), complain, call(read),
            const(stream.address), const(stream.head), const(mark), call(same), IF,
            const(spare), const(stream.head_bytes - mark), complain, call(read),
            const(spare), const(stream.head + mark), const(stream.head_bytes - mark), call(same), EQZ,
            IF, complain, call(fail), END,
            const(stream.address), const(stream.nbytes), complain, call(read),
            ELSE, const(stream.address + mark), const(stream.nbytes - mark), complain, call(read), END,
        )
    )  # fmt: skip
