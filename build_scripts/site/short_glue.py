"""Pyodide's glue code, shorter: functions of the runtime that no code names are put where they belong by one loop.

Emscripten writes a variable and a statement for each of some thousands of functions that other modules may ask for.
Browsers read all of that on each visit.
"""

import re
from collections import Counter

NAME = re.compile(r"[\w$]+")
BEGIN = "function assignWasmExports(wasmExports){"
STATEMENT = re.compile(r'_([\w$]+)=Module\["_\1"\]=wasmExports\["\1"\];')
VARIABLES = re.compile(r"var ((?:[\w$]+,)+[\w$]+)[;}]")
MENTIONS = 3  # of a variable that nobody uses: where it is declared, in its statement, and there in quotes


def shortened(glue: str) -> str:
    """The same program; glue code that is written in another way is left as it is."""
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
    loop = f'for(const name of"{" ".join(unused)}".split(" "))Module["_"+name]=wasmExports[name];'
    glue = glue[:begin] + loop + kept + glue[end:]
    declared = ",".join(name for name in lists[0].split(",") if name[1:] not in gone)
    return glue.replace(lists[0], declared, 1)
