"""The one list of kernels: its grammar, its generated products, and the compiler's check of signatures."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from build_scripts.kernels import generate
from build_scripts.kernels import kernel_list as kernels
from build_scripts.paths import ENGINE


def rows(folder: Path, text: str, sources: tuple[str, ...] = ("one.c",)) -> list[kernels.Row]:
    """The rows of a list whose sources exist."""
    (folder / "src").mkdir()
    for name in sources:
        (folder / "src" / name).write_text("")
    (folder / "kernels.toml").write_text(text)
    return kernels.read_rows(folder / "kernels.toml")


def row(name: str = "one", rest: str = 'args = ["x:ptr", "n:i32", "lo:f32"]') -> str:
    return f'[[kernel]]\nname = "{name}"\n{rest}\n'


def test_a_row_is_read_with_its_arguments(tmp_path: Path) -> None:
    (found,) = rows(tmp_path, row(rest='args = ["x:ptr", "n:i32"]\nsplit = "rows"'))
    assert found == kernels.Row("one", "one.c", (("x", "ptr"), ("n", "i32")), "rows")


def test_what_is_written_is_told_in_bytes(tmp_path: Path) -> None:
    text = 'args = ["x:ptr", "y:ptr", "n:i32"]\nwrites = { y = "element*n" }\n'
    head = '[[kernel]]\nnames = ["b64_to_b16", "f32_to_bool", "u8_widen"]\nsource = "one.c"\n'
    found = rows(tmp_path, head + text)
    assert [r.writes for r in found] == [(("y", "2*n"),), (("y", "1*n"),), (("y", "1*n"),)]
    table = generate.signatures_source(found, {})
    assert "lambda a, units, reach: ((a[1], 2*a[2]),)" in table


def test_a_family_shares_one_source(tmp_path: Path) -> None:
    found = rows(tmp_path, '[[kernel]]\nnames = ["a", "b"]\nsource = "one.c"\nargs = []\n')
    assert [(r.name, r.source) for r in found] == [("a", "one.c"), ("b", "one.c")]


def test_operators_name_the_kernels_of_a_family(tmp_path: Path) -> None:
    found = rows(tmp_path, '[[kernel]]\nfamily = "logic"\nsource = "one.c"\nargs = []\n')
    assert [r.name for r in found] == ["b8_logical_and", "b8_logical_or", "b8_logical_xor"]


def test_like_takes_arguments_and_split(tmp_path: Path) -> None:
    text = row(rest='args = ["x:ptr"]\nsplit = "rows"') + '[[kernel]]\nname = "two"\nlike = "one"\n'
    first, second = rows(tmp_path, text, ("one.c", "two.c"))
    assert (second.args, second.split) == (first.args, first.split)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (row() + row(), "twice"),
        (row("One"), "grammar"),
        (row("two"), "does not exist"),
        (row(rest='args = ["x:double"]'), "x:double"),
        (row(rest='args = ["x:ptr", "x:i32"]'), "twice"),
        (row(rest='args = ["units:i32"]'), "units"),
        (row(rest=""), "args is missing"),
        (row(rest='args = []\nspeed = "fast"'), "speed"),
        (row(rest='like = "none"'), "like"),
        (row(rest='args = ["y:ptr"]\nwrites = { z = "4*units" }'), "writes of 'z'"),
        (row(rest='args = ["y:ptr"]\nwrites = { y = "4*n" }'), "writes of 'y'"),
        (row(rest='args = ["y:ptr"]\nwrites = { y = "units.real" }'), "writes of 'y'"),
        ('[[kernel]]\nnames = ["a"]\nargs = []\n', "without source"),
        ('[[kernel]]\nfamily = "logic"\nargs = []\n', "without source"),
        ('[[kernel]]\nfamily = "magic"\nsource = "one.c"\nargs = []\n', "magic"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(kernels.KernelListError, match=complaint):
        rows(tmp_path, text)


def test_constants_have_one_name_in_both_languages() -> None:
    found = kernels.shared_constants({"POOL_LANES": 4, "POOL_ORDER": (2, 1), "POOL_LIMIT": 0x80000000, "__name__": "x"})
    header = generate.constants_header(found)
    assert "#define POOL_LANES 4\n#define POOL_ORDER {2, 1}\n#define POOL_LIMIT 2147483648u\n" in header
    assert "do not edit" in header, "a generated file says that it is one"


@pytest.mark.parametrize("value", [4.5, True, "4", (), (1, 2.0), None])
def test_a_constant_that_c_cannot_have_is_named(value: object) -> None:
    with pytest.raises(kernels.KernelListError, match="POOL_LANES"):
        kernels.shared_constants({"POOL_LANES": value})


def test_abi_changes_with_every_constant() -> None:
    assert kernels.abi([], {"POOL_LANES": 4}) != kernels.abi([], {"POOL_LANES": 8})


def test_the_engine_is_imported_before_anything_is_built(tmp_path: Path) -> None:
    shutil.copytree(ENGINE, tmp_path / "web" / "python" / "webinfer", ignore=shutil.ignore_patterns("__pycache__"))
    lines = (
        "import webinfer, webinfer.backends.wasm.builder, webinfer.package, webinfer.dump",
        "from webinfer.backends.wasm.kernel_table import KERNELS",
        "try: KERNELS['f32_clamp']",
        "except webinfer.errors.BackendUnavailableError as error: print(error)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=tmp_path / "web" / "python", capture_output=True, text=True
    )
    assert "run `python3 -m build_scripts build kernels`" in done.stdout, done.stderr


def test_every_source_is_in_the_list() -> None:
    assert kernels.unlisted_sources(kernels.read_rows()) == []


def test_abi_changes_with_every_signature(tmp_path: Path) -> None:
    one = kernels.Row("one", "one.c", (("x", "ptr"),), "")
    others = [
        kernels.Row("two", "one.c", (("x", "ptr"),), ""),
        kernels.Row("one", "one.c", (("x", "i32"),), ""),
        kernels.Row("one", "one.c", (("x", "ptr"),), "rows"),
    ]
    assert len({kernels.abi([r], {}) for r in (one, *others)}) == 4


def test_split_kernels_get_their_share_and_others_run_once() -> None:
    text = generate.dispatch_source(
        [
            kernels.Row("one", "one.c", (("x", "ptr"), ("n", "i32"), ("lo", "f32")), "rows"),
            kernels.Row("two", "two.c", (), ""),
        ],
        {},
    )
    assert "case 0: one(POINTER(0), ARGUMENT(1), FLOAT(2), begin, end); return;" in text
    assert "case 1: two(); return;" in text
