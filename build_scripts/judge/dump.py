"""`judge dump`: what every model of a folder is compiled to, and whether two such dumps are equal.

A change that only moves or renames code must leave the dump as it was; renamed kernels stand in a mapping file.
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import ENGINE, MODELS

SUFFIXES = {".tflite", ".onnx"}


def run(argv: list[str]) -> int:
    """0 when the dump is written, or when the compared dumps are equal; 1 when they differ."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts judge dump", description=__doc__)
    parser.add_argument("--models", type=Path, default=MODELS, help="a folder of model files (default: the demo's)")
    parser.add_argument("--to", type=Path, metavar="DIR", help="where the files go, a folder for each model")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("A", "B"), help="two folders that dump wrote")
    parser.add_argument("--names", type=Path, help='a JSON file {"old name": "new name"}, applied to A')
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(argv)
    if options.compare:
        names = json.loads(options.names.read_text()) if options.names else {}
        equal, different = compare(options.compare[0], options.compare[1], names)
        return _report(equal, different, options.json)
    if options.to is None:
        raise BuildError("say where the dump goes with --to DIR, or name two dumps with --compare A B")
    models = sorted(path for path in options.models.iterdir() if path.suffix in SUFFIXES)
    if not models:
        raise BuildError(f"{options.models} holds no model file; name another folder with --models DIR")
    refused = dump_models(models, options.to)
    text = [f"{len(models) - len(refused)} models dumped to {options.to}, {len(refused)} not read"]
    text += [f"  {name}: {reason}" for name, reason in refused.items()]
    print(json.dumps({"models": len(models) - len(refused), "refused": refused}) if options.json else "\n".join(text))
    return 0


def dump_models(models: Sequence[Path], folder: Path) -> dict[str, str]:
    """Writes one folder for each model; the models that could not be read, with the reason."""
    sys.path.insert(0, str(ENGINE.parent))
    from webinfer.dump import dump
    from webinfer.errors import WebinferError

    refused = dict[str, str]()
    for path in models:
        try:
            asyncio.run(dump(path, folder / path.stem))
        except WebinferError as error:
            refused[path.name] = str(error)
    return refused


def compare(old: Path, new: Path, names: Mapping[str, str]) -> tuple[int, dict[str, str]]:
    """How many files are equal, and the others with what is different about them.

    `names` maps whole words of the old dump, in contents and in file names, to the words of the new one. Comments in
    shaders do not count.
    """
    before, after = _texts(old, names), _texts(new, {})
    equal, different = 0, dict[str, str]()
    for name in sorted({*before, *after}):
        if name not in after:
            different[name] = f"only in {old.name}"
        elif name not in before:
            different[name] = f"only in {new.name}"
        elif before[name] == after[name]:
            equal += 1
        else:
            different[name] = _first_difference(before[name], after[name])
    return equal, different


def _texts(folder: Path, names: Mapping[str, str]) -> dict[str, str]:
    if not folder.is_dir():
        raise BuildError(f"{folder} is not a folder that `dump --to` wrote")
    whole = "|".join(map(re.escape, names))  # a number may follow: that of a shader's file
    words = re.compile(rf"(?<!\w)({whole})(?=(_\d+)?(?!\w))") if names else None

    def renamed(text: str) -> str:
        return words.sub(lambda found: names[found[1]], text) if words else text

    files = sorted(path for path in folder.rglob("*") if path.is_file())
    texts = {path: _program(path.read_text()) if path.suffix == ".wgsl" else path.read_text() for path in files}
    return {renamed(path.relative_to(folder).as_posix()): renamed(text) for path, text in texts.items()}


def _program(shader: str) -> str:
    """The shader without comments and empty lines."""
    lines = (line.partition("//")[0].rstrip() for line in shader.splitlines())
    return "\n".join(line for line in lines if line)


def _first_difference(before: str, after: str) -> str:
    old, new = before.splitlines(), after.splitlines()
    for i, (one, other) in enumerate(zip(old, new, strict=False), 1):
        if one != other:
            return f"line {i}: {one.strip()[:100]!r} became {other.strip()[:100]!r}"
    return f"{len(old)} lines became {len(new)}"


def _report(equal: int, different: Mapping[str, str], as_json: bool) -> int:
    if as_json:
        print(json.dumps({"equal": equal, "differ": different}, indent=1))
    else:
        for name, reason in different.items():
            print(f"{name}: {reason}")
        print(f"{equal} equal, {len(different)} differ")
    return 1 if different else 0
