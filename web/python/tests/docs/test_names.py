"""What README and documentation name in code marks exists: files, modules, functions, verbs and options.

A name that was renamed or deleted in the tree makes the page wrong; this finds it.
"""

from __future__ import annotations

import importlib
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from tests.docs.pages import PAGES, ROOT, blocks_of

from build_scripts.verbs import GROUPS, VERBS
from webinfer.cli import _parser

TEXTS = PAGES
SOURCES = {".py", ".js", ".mjs", ".wgsl", ".c", ".h", ".toml", ".html", ".css", ".json"}
BUILT = (".venv", "build", "web/node_modules")  # folders that set-up makes
FOREIGN = {
    "text/javascript",
    "gunicorn",
    "preload",
    "post_fork",
    "PYTHONPATH",
    "snake_case",
    "_us",
    "StringNormalizer",  # an operator that is refused
    "output_facial_transformation_matrixes",  # an option of MediaPipe
    "tokenizer.json",  # files beside a model
    "preprocessor_config.json",
    "config.json",
}  # words of others, and of the rules of style
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
PATH = re.compile(r"(?:[\w.*-]+/)+[\w.*-]*|[\w-]+\.(?:py|md|js|mjs|toml|html|css|wgsl|c|h|json)")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def code_marks(page: Path) -> list[str]:
    """The texts in backticks, without those in fenced blocks."""
    tokens = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    return [child.content for token in tokens for child in token.children or () if child.type == "code_inline"]


@cache
def tracked() -> tuple[str, ...]:
    """Every file of the checkout, and every folder with a slash behind it."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    present = [name for name in files if name and (ROOT / name).exists()]
    folders = {f"{parent.as_posix()}/" for name in present for parent in Path(name).parents}
    return (*present, *sorted(folders))


@cache
def words() -> frozenset[str]:
    """Every identifier in the sources and in the names of files, documentation and unit tests left out."""
    found = {word for name in tracked() for word in IDENTIFIER.findall(name)}
    for name in tracked():
        if Path(name).suffix in SOURCES and not name.startswith("web/docs/") and "/tests/" not in name:
            found.update(IDENTIFIER.findall((ROOT / name).read_text(encoding="utf-8", errors="replace")))
    return frozenset(found)


def is_path(text: str) -> bool:
    """Whether a file or folder ends so; `*` stands for any name."""
    if text.rstrip("/").startswith(BUILT):
        return True
    pattern = re.compile(r"(?:.*/)?" + re.escape(text.removeprefix("./")).replace(r"\*", "[^/]*") + "/?")
    return any(pattern.fullmatch(name) for name in tracked())


def is_dotted(text: str) -> bool:
    """Whether `webinfer.a.b` can be imported, or all parts of another dotted name are words of the sources."""
    parts = text.split(".")
    if parts[0] != "webinfer":
        return set(parts) <= words()
    for count in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError as error:
            if error.name and not error.name.startswith("webinfer"):
                return (ROOT / "web/python" / Path(*parts[:count])).with_suffix(".py").exists()  # needs a browser
            continue
        return all((found := getattr(found, part, None)) is not None for part in parts[count:])
    return False


def command_problem(text: str) -> str:
    """Why a command line is wrong, or ""."""
    if match := re.search(r"build_scripts ([a-z][a-z -]*)", text):
        words = match[1].split()
        if not {words[0], " ".join(words[:2])} & {*VERBS, *GROUPS}:
            return f"build_scripts has no verb {match[1]}"
    elif match := re.match(r"webinfer ([a-z]+)", text):
        verbs = next(action.choices for action in _parser()._actions if action.choices)
        if match[1] not in verbs:
            return f"webinfer has no verb {match[1]}"
    return ""


def problem_of(text: str) -> str:
    """Why what stands in code marks does not exist, or ""."""
    if "build_scripts " in text or text.startswith("webinfer "):
        return command_problem(text)
    head = re.split(r"[(=\[ :<]", text, maxsplit=1)[0]  # `load(…)` names load, `strict=True` names strict
    if PATH.fullmatch(head) and head not in FOREIGN:
        return "" if is_path(head) else f"no file or folder {head}"
    if DOTTED.fullmatch(head):
        return "" if is_dotted(head) else f"no {head}"
    named = IDENTIFIER.findall(re.sub(r'"[^"]*"', "", text))
    missing = [word for word in named if word not in words() | FOREIGN]
    return f"{missing[0]} is nowhere in the sources" if missing else ""


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_what_a_page_names_exists(page: Path) -> None:
    changes = [block for block in blocks_of(page) if block.kind.startswith(("python file ", "python add "))]
    made = {f"web/python/{block.kind.split()[2]}" for block in changes}
    made.update(word for block in changes for word in IDENTIFIER.findall(block.text))
    found = {text: problem for text in code_marks(page) if text not in made and (problem := problem_of(text))}
    assert not found, "\n".join(f"`{text}`: {problem}" for text, problem in found.items())


@pytest.mark.parametrize(
    "text",
    [
        "web/python/webinfer/nothing.py", "nothing.js", "webinfer.nothing", "webinfer.tasks.Nothing",
        "python3 -m build_scripts nothing", "webinfer nothing MODEL", "no_such_function(…)", "no_such_option=True",
    ],
)  # fmt: skip
def test_a_name_that_is_gone_is_found(text: str) -> None:
    assert problem_of(text)


def test_the_code_of_the_sources_counts_and_not_the_documentation() -> None:
    assert {"graph_text", "fuse_activation", "first"} <= words()
    assert not {"no_such_function", "no_such_option"} & words()
