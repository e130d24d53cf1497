"""Pyodide's glue code as the site serves it, shorter: without what names functions of the runtime that no code names.

Emscripten writes a variable and a statement for each of some thousands of functions that other modules may ask for.
Browsers read all of that on each visit. These functions are linked late (late_linking.py), or, where that cannot be
done, put where they belong by one loop.
"""

import re
from collections import Counter
from pathlib import Path

from build_scripts.site.late_linking import linked_late

NAME = re.compile(r"[\w$]+")
BEGIN = "function assignWasmExports(wasmExports){"
STATEMENT = re.compile(r'_([\w$]+)=Module\["_\1"\]=wasmExports\["\1"\];')
VARIABLES = re.compile(r"var ((?:[\w$]+,)+[\w$]+)[;}]")
WHOLE = re.compile(r"async function ([\w$]+)(\(.*\})export default \1;\s*", re.DOTALL)
MENTIONS = 3  # of a variable that nobody uses: where it is declared, in its statement, and there in quotes


def published_glue(path: Path) -> str:
    """The glue code at this path as it is served, and as the interpreter of the snapshot runs it."""
    glue = path.read_text()
    late = linked_late(glue)
    return compiled_at_once(shortened(late, loop=late == glue))


def compiled_at_once(glue: str) -> str:
    """The same program, whose one function browsers compile when they read it, not when Python's start waits for it.

    They do so with functions in parentheses.
    """
    match = WHOLE.fullmatch(glue)
    return f"const {match[1]}=(async function{match[2]});export default {match[1]};\n" if match else glue


def shortened(glue: str, *, loop: bool = True) -> str:
    """The same program; glue code that is written in another way is left as it is.

    Without the `loop` the caller has to keep the functions that no code names.
    """
    begin = glue.find(BEGIN) + len(BEGIN)
    end = glue.find("}", begin)
    if begin < len(BEGIN) or glue.count(BEGIN) != 1:
        return glue
    mentions = Counter(NAME.findall(glue))
    unused = [name for name in STATEMENT.findall(glue, begin, end) if mentions[f"_{name}"] == MENTIONS]
    gone = set(unused)
    lists = [names for names in VARIABLES.findall(glue) if not gone.isdisjoint(name[1:] for name in names.split(","))]
    if len(lists) != 1 or not gone <= {name[1:] for name in lists[0].split(",")}:
        return glue
    kept = STATEMENT.sub(lambda match: "" if match[1] in gone else match[0], glue[begin:end])
    names = f'for(const name of"{" ".join(unused)}".split(" "))Module["_"+name]=wasmExports[name];' if loop else ""
    glue = glue[:begin] + names + kept + glue[end:]
    declared = ",".join(name for name in lists[0].split(",") if name[1:] not in gone)
    return glue.replace(lists[0], declared, 1)
