"""A script and all that it imports as one file: each file that a page asks for, and has checked, costs a visit time.

Every module becomes a function of its own, so that names stay apart; nothing else of its text is changed.
"""

import os
import re
import sys
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import STATIC, WEB, page_script

OF_THE_ENGINE = ("gpu", "thread_worker")  # what the engine runs in a page that is not of our site
# What the lab's page loads: scripts as they are, scripts with all that they import, and others.
LAB_ALONE, LAB_WHOLE = ("first", "integrity", "offline", "service_worker", "thread_worker"), ("engine_worker", "lab")
LAB_FILES = ("demo.css", "icon.svg", "model.css", "site.webmanifest")
PLAYER = WEB / "player"
PLAYER_PAGE = ("index.html", "demo.css", "demo.js")
IMPORT = re.compile(r'^import (?:(\* as \w+|\{[^}]*\}) from )?"(\.{1,2}/[\w./]+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
EXPORTED_NAMES = re.compile(r"^export \{ [\w, ]+ \};$", re.MULTILINE)  # of others' names
LEFT_OVER = re.compile(r"^(import|export)\b.*", re.MULTILINE)


def bundled(folder: Path, name: str, exports: bool = False) -> bytes:
    """The script `name`.js of a folder, behind the modules that it imports, each once and behind its own.

    With `exports` others can import it. Imports are of files below web/.

    Raises: BuildError if a script imports or exports in a way that cannot be put together
    """
    parts: dict[str, str] = {}
    _collect(folder, name, parts, (), exports)
    return "".join(parts.values()).encode()


def bundled_page(name: str, exports: bool = False) -> bytes:
    """As `bundled`, of the script NAME.js wherever it lies in web/static."""
    return bundled(STATIC, page_script(name).relative_to(STATIC).with_suffix("").as_posix(), exports)


def _collect(folder: Path, name: str, parts: dict[str, str], above: tuple[str, ...], exports: bool = False) -> None:
    if name in above:
        raise BuildError(f"{name}.js imports itself by way of {', '.join(above)}")
    text = (folder / f"{name}.js").read_text()

    def named(path: str) -> str:
        return os.path.relpath((folder / name).parent / path, folder).replace(os.sep, "/")

    def taken(found: re.Match[str]) -> str:
        """What takes the place of an import."""
        if not found[1]:
            return ""
        names = found[1].removeprefix("* as ") if found[1][0] == "*" else found[1].replace(" as ", ": ")
        return f"const {names} = {_module(named(found[2]))};"

    for _, path in IMPORT.findall(text):
        if (other := named(path)) not in parts:
            _collect(folder, other, parts, (*above, name))
    exported = [match[2] for match in EXPORT.finditer(text)]
    whole, text = IMPORT.sub(taken, text), EXPORT.sub(r"\1", IMPORT.sub(taken, text))
    if left := LEFT_OVER.search(EXPORTED_NAMES.sub("", text) if exports else text):
        raise BuildError(f"{name}.js cannot be put into one file with others because of the line {left[0]!r}")
    if above:
        text = f"const {_module(name)} = (() => {{\n{text}return {{ {', '.join(exported)} }};\n}})();\n"
    parts[name] = f"// ----- {name}.js\n{whole if exports else text}"


def _module(name: str) -> str:
    return "$" + name.replace("../", "").replace("/", "_")


def write_scripts(folder: Path) -> None:
    """Writes the scripts of web/static that a wheel holds, each with all that it imports."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in OF_THE_ENGINE:
        (folder / f"{name}.js").write_bytes(bundled_page(name, exports=True))


def player_page() -> dict[str, bytes]:
    """The files of a page that runs a package: the player, and what shows a picture and what is found in it."""
    files = {"player.js": bundled(PLAYER / "src", "player", exports=True)}
    files["player_worker.js"] = bundled(PLAYER / "src", "player_worker")
    files["player_tasks.js"] = bundled(PLAYER / "src", "player_tasks", exports=True)
    return files | {name: (PLAYER / "demo" / name).read_bytes() for name in PLAYER_PAGE}


def lab_page() -> dict[str, bytes]:
    """What the page of a lab loads that is neither Python nor a kernel."""
    files = {name: (STATIC / name).read_bytes() for name in LAB_FILES}
    files |= {f"{name}.js": page_script(name).read_bytes() for name in LAB_ALONE}
    return files | {f"{name}.js": bundled_page(name) for name in LAB_WHOLE}


if __name__ == "__main__":
    write_scripts(Path(sys.argv[1]))
    for prefix, files in (("player_", player_page()), ("lab_", lab_page())):
        for file, data in files.items():
            (Path(sys.argv[1]) / f"{prefix}{file}").write_bytes(data)
