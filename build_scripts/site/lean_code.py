"""Code objects without most of their line tables. Read by late_code.mjs and snapshot.mjs, which run it in Pyodide."""

import types

ONE_LINE, UNITS = 0x80 | 13 << 3, 8  # an entry of a line table: as many units of code as that are of the same line


def lean(code: types.CodeType) -> types.CodeType:
    """The code with tables that know of a function's lines only the first; so for the functions inside."""
    units = len(code.co_code) // 2
    table = b"".join(bytes([ONE_LINE | min(UNITS, units - at) - 1, 0]) for at in range(0, units, UNITS))
    inner = tuple(lean(c) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_linetable=table, co_consts=inner)
