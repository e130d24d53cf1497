"""The messages between page and engine worker, generated for JavaScript and Python from page/messages.toml.

Both files are committed: the engine and the type checker need theirs before anything is built. A test and the verb
`tables` fail when one is behind.
"""

import json
import runpy
import tomllib
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.paths import ENGINE, ROOT, STATIC

SOURCE = ENGINE / "page" / "messages.toml"
SIGNATURES = ENGINE / "webnn" / "signatures.py"
LINE = 120
TYPES = ("text", "number", "flag", "list", "object", "any")
DIRECTIONS = ("to_engine", "from_engine")
HEAD = "Generated from page/messages.toml by `python3 -m build_scripts build tables --write`: do not edit."

JAVASCRIPT = """
const FITS = {
  text: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  flag: (value) => typeof value === "boolean",
  list: Array.isArray,
  object: (value) => typeof value === "object" && !Array.isArray(value),
  any: () => true,
};

/** Why a message is none of `declared` (TO_ENGINE or FROM_ENGINE), in a few words; "" if it is one. */
export function complaint(message, declared) {
  const { v, type } = message;
  if (v !== VERSION) return `it has version ${v}`;
  if (!Object.hasOwn(declared, type)) return `there is no “${type}”`;
  for (const [name, rule] of Object.entries(declared[type])) {
    const value = message[name] ?? null;
    const fits = value === null ? rule.endsWith("?") : FITS[rule.replace("?", "")](value);
    if (!fits) return `“${type}” has no ${rule.replace("?", "")} “${name}”`;
  }
  return "";
}
"""


def read_messages() -> dict[str, Any]:
    """The definition: `version`, and for each direction its messages with the types of their fields.

    Raises:  BuildError naming a type that does not exist
    """
    data = tomllib.loads(SOURCE.read_text())
    for direction in DIRECTIONS:
        for name, fields in data[direction].items():
            if wrong := [field for field, rule in fields.items() if rule.removesuffix("?") not in TYPES]:
                raise BuildError(f"{SOURCE.name}: {direction}.{name} has fields of no known type: {', '.join(wrong)}")
    return data


def generated_files() -> dict[Path, str]:
    """Each generated file and its text."""
    data = read_messages()
    return {
        STATIC / "engine" / "messages.js": _javascript(data),
        ENGINE / "page" / "messages.py": _python(data),
        STATIC / "webnn" / "webnn_methods.js": _webnn_methods(),
    }


def stale_files() -> list[str]:
    """The generated files that differ from what is generated now, by their paths in the checkout."""
    files = generated_files().items()
    return [str(path.relative_to(ROOT)) for path, text in files if not path.is_file() or path.read_text() != text]


def write_files() -> None:
    """Writes the generated files."""
    for path, text in generated_files().items():
        path.write_text(text)


def _webnn_methods() -> str:
    """What JavaScript knows of WebNN's builder: the kinds of arguments and options of each method, and the types."""
    declared = runpy.run_path(str(SIGNATURES))
    lines = [f"// {HEAD.replace(SOURCE.name, SIGNATURES.name).replace('page/', 'webnn/')}", ""]
    lines += [f"export const TYPES = {json.dumps(declared['WORDS'])};", "", "export const METHODS = {"]
    lines += [f"  {name}: {json.dumps(rows, separators=(',', ':'))}," for name, rows in declared["table"]().items()]
    return "\n".join([*lines, "};", ""])


def _javascript(data: dict[str, Any]) -> str:
    lines = [f"// {HEAD}", "", f"export const VERSION = {data['version']};"]
    for direction in DIRECTIONS:
        lines += ["", f"export const {direction.upper()} = {{"]
        for name, fields in data[direction].items():
            body = [f"{field}: {json.dumps(rule)}" for field, rule in fields.items()]
            lines += _wrapped(f"  {name}: {{", body, "},", " " if body else "")
        lines.append("};")
    return "\n".join(lines) + "\n" + JAVASCRIPT


def _python(data: dict[str, Any]) -> str:
    lines = ['"""The messages between page and engine worker.', "", HEAD, '"""', "", f"VERSION = {data['version']}"]
    for direction in DIRECTIONS:
        lines += ["", f"{direction.upper()}: dict[str, dict[str, str]] = {{"]
        for name, fields in data[direction].items():
            body = [f"{json.dumps(field)}: {json.dumps(rule)}" for field, rule in fields.items()]
            lines += _wrapped(f"    {json.dumps(name)}: {{", body, "},", "")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _wrapped(opening: str, parts: list[str], closing: str, space: str) -> list[str]:
    """One line, or where that is too long one line for each part."""
    line = f"{opening}{space}{', '.join(parts)}{space}{closing}"
    if len(line) <= LINE:
        return [line]
    indent = opening[: len(opening) - len(opening.lstrip())]
    step = indent if len(indent) == 2 else "    "
    return [opening, *(f"{indent}{step}{part}," for part in parts), f"{indent}{closing}"]
