"""WGSL files rendered by Jinja2: `$$` line statements, `{$ $}` blocks, `{{ }}` values.

Values are integers, booleans, finite floats and enum words, never code; what a file needs beyond them comes from the
generated prelude and from the operator's formula: `op`, its name, a chain of them, a described kernel or the row of a
reduction, brings the function `{{ formula }}` along. The text is found inside the wheel or, in a checkout, in
web/shaders.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import importlib.resources
import json
import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any

import jinja2

from webinfer.codegen.chains import Chain
from webinfer.codegen.formulas import FormulaName, needs_math, shader_function
from webinfer.codegen.kernels import Described
from webinfer.codegen.prelude import Param, Slot, prelude
from webinfer.codegen.reductions import Reduced
from webinfer.lazy_dataclass import dataclass

_INCLUDE = re.compile(r'^\{\$ include "([^"]+)" \$\}\n', re.MULTILINE)  # a line of its own
SUBGROUPS = ("subgroups",)  # extensions of WGSL that a shader names
MATRICES = ("f16", "subgroups", "chromium_experimental_subgroup_matrix")
Variable = int | float | bool | enum.StrEnum | Chain | Described | Reduced


@dataclass(frozen=True, slots=True)
class Shader:
    """A rendered shader. Equal digests mean equal text, hence one pipeline."""

    name: str
    code: str
    digest: str


def shader_folder() -> Traversable:
    """Where the templates lie: inside the package, which may be an archive, or in the checkout.

    Raises:  FileNotFoundError naming both places
    """
    inside = importlib.resources.files("webinfer") / "_shaders"
    checkout = Path(__file__).resolve().parents[3] / "shaders"
    for folder in (inside, checkout):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"no shaders: neither {inside} nor {checkout} exists; reinstall webinfer")


@functools.cache
def _texts() -> dict[str, str]:
    """File name → text of every template. The browser's wheel holds all in one file, which is much smaller."""
    bundle = shader_folder() / "all.json"
    if bundle.is_file():
        texts: dict[str, str] = json.loads(bundle.read_text("utf-8"))
        return texts
    return {file.name: file.read_text("utf-8") for file in _wgsl_files(shader_folder())}


def add_bundle(package: str) -> None:
    """Adds the templates that a late part brings along, if it has any: elsewhere they lie among the others."""
    spec: Any = find_spec(package)
    with suppress(FileNotFoundError):
        _texts().update(json.loads(spec.loader.get_data(str(PurePath(spec.origin).with_name("shaders.json")))))


def _wgsl_files(folder: Traversable) -> Iterator[Traversable]:
    """The templates of all families; a file's name is its own in all of them."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _wgsl_files(entry)
        elif entry.name.endswith(".wgsl"):
            yield entry


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        line_statement_prefix="$$",
        block_start_string="{$",
        block_end_string="$}",
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        finalize=_written,
    )


def _written(value: object) -> object:
    """How a value stands in WGSL: booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else value


def preload_templates() -> None:
    """Parses every template, so that rendering one reads and compiles nothing."""
    for name in _texts():
        _environment().get_template(name)
        _source_digest(name)


@functools.cache
def _source(name: str) -> str:
    """The text of a template with the texts of all that it includes in their places: so they are rendered as one."""
    text = _texts().get(name)
    if text is None:
        raise jinja2.TemplateNotFound(name)
    return _INCLUDE.sub(lambda found: _source(found[1]), text)


@functools.cache
def _source_digest(name: str) -> str:
    """A hash of the text of a template and of all that it includes."""
    return hashlib.sha256(_source(name).encode()).hexdigest()


def check_variables(name: str, variables: Mapping[str, Variable]) -> None:
    """Refuses values that could carry code.

    Raises:  TypeError or ValueError naming shader and variable
    """
    for key, value in variables.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"shader {name}: {key} is {value}, which WGSL cannot write")
        if isinstance(value, str) and not isinstance(value, enum.StrEnum):
            raise TypeError(f"shader {name}: {key} is text; give a number, a boolean or an enum word")
        if not isinstance(value, int | float | enum.StrEnum | Chain | Described | Reduced):
            raise TypeError(
                f"shader {name}: {key} is a {type(value).__name__}; give a number, a boolean or an enum word"
            )


def digest(name: str, variables: Mapping[str, Variable], head: str) -> str:
    """The pipeline key: a hash of the text, its includes, the sorted variables and the prelude."""
    hasher = hashlib.sha256()
    words = [f"{key}={type(value).__name__}:{value!r}" for key, value in sorted(variables.items())]
    for part in (name, _source_digest(f"{name}.wgsl"), *words, head):
        hasher.update(f"{len(part)} {part}".encode())
    return hasher.hexdigest()


_rendered: dict[str, Shader] = {}
_asked: dict[Hashable, Shader] = {}  # by what `render` was given


def render(
    name: str, variables: Mapping[str, Variable], slots: Sequence[Slot], params: Sequence[Param], text: str = ""
) -> Shader:
    """The shader `name` for these variables and this signature. `text` is a custom operator's own WGSL: it comes first,
    so that a compiler counts lines as its author does.

    Raises:  TypeError or ValueError for a variable that is not plain; jinja2.UndefinedError for a missing one
    """
    kinds = tuple(map(type, variables.values()))  # 1, 1.0 and True are equal
    zeros = str(variables) if float in kinds else ""  # and so are 0.0 and -0.0
    signature = tuple([(param.name, param.type) for param in params])
    asked = (name, tuple(variables.items()), kinds, zeros, tuple(slots), signature, text)
    try:
        found = _asked.get(asked)
    except TypeError:  # a value that has no hash
        check_variables(name, variables)
        raise
    if found is None:
        found = _asked[asked] = _render(name, variables, prelude(slots, params), text)
    return found


def _render(name: str, variables: Mapping[str, Variable], head: str, text: str) -> Shader:
    check_variables(name, variables)
    op = variables.get("op")
    enabled = SUBGROUPS if variables.get("subgroups") else MATRICES if "subgroup_matrices" in variables else ()
    head = "".join(f"enable {name};\n" for name in enabled) + head  # such lines come first
    generated: dict[str, str | bool] = {"prelude": head}
    if isinstance(op, FormulaName):
        formula = shader_function(op, bool(variables["integer"]), bool(variables.get("wide")))
        generated |= {"formula": formula, "needs_math": needs_math(op)}
    elif isinstance(op, Chain):
        generated |= {"formula": op.text(), "needs_math": op.needs_math}
    elif isinstance(op, Described):
        generated |= {"formula": op.text}
    elif isinstance(op, Reduced):
        generated |= {"formula": op.text(bool(variables.get("subgroups")))}
    key = digest(name, variables, "".join(map(str, (text, *generated.values()))))
    if key not in _rendered:
        code = text + _environment().get_template(f"{name}.wgsl").render(**variables, **generated)
        _rendered[key] = Shader(name, code, key)
    return _rendered[key]
