"""A script and all that it imports as one file: each file that a page asks for, and has checked, costs a visit time.

Every module becomes a function of its own, so that names stay apart; nothing else of its text is changed.
"""

import re
import sys
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import WEB

OF_THE_ENGINE = ("gpu", "thread_worker")  # what the engine runs in a page that is not of our site
IMPORT = re.compile(r'^import (\* as \w+|\{[^}]*\}) from "\.{1,2}/([\w/]+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
LEFT_OVER = re.compile(r"^(import|export)\b.*", re.MULTILINE)


def bundled(folder: Path, name: str, exports: bool = False) -> bytes:
    """The script `name`.js of a folder, behind the modules that it imports, each once and behind its own.

    With `exports` others can import it. Imports are of files of this folder.

    Raises: BuildError if a script imports or exports in a way that cannot be put together
    """
    parts: dict[str, str] = {}
    _collect(folder, name, parts, (), exports)
    return "".join(parts.values()).encode()


def _collect(folder: Path, name: str, parts: dict[str, str], above: tuple[str, ...], exports: bool = False) -> None:
    if name in above:
        raise BuildError(f"{name}.js imports itself by way of {', '.join(above)}")
    text = (folder / f"{name}.js").read_text()
    for _, other in IMPORT.findall(text):
        if other not in parts:
            _collect(folder, other, parts, (*above, name))
    exported = [match[2] for match in EXPORT.finditer(text)]
    whole, text = IMPORT.sub(_taken, text), EXPORT.sub(r"\1", IMPORT.sub(_taken, text))
    if left := LEFT_OVER.search(text):
        raise BuildError(f"{name}.js cannot be put into one file with others because of the line {left[0]!r}")
    if above:
        text = f"const {_module(name)} = (() => {{\n{text}return {{ {', '.join(exported)} }};\n}})();\n"
    parts[name] = f"// ----- {name}.js\n{whole if exports else text}"


def _taken(found: re.Match[str]) -> str:
    """What takes the place of an import."""
    names = found[1].removeprefix("* as ") if found[1][0] == "*" else found[1].replace(" as ", ": ")
    return f"const {names} = {_module(found[2])};"


def _module(name: str) -> str:
    return "$" + name.replace("/", "_")


def write_scripts(folder: Path) -> None:
    """Writes the scripts of web/static that a wheel holds, each with all that it imports."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in OF_THE_ENGINE:
        (folder / f"{name}.js").write_bytes(bundled(WEB / "static", name, exports=True))


if __name__ == "__main__":
    write_scripts(Path(sys.argv[1]))
