"""The command line: verbs, ports, the headless verdict, sizes and tables."""

import re
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest

from build_scripts.errors import BuildError
from build_scripts.judge import sizes, tables
from build_scripts.paths import ROOT
from build_scripts.setup.environment import requirements
from build_scripts.site import demo
from build_scripts.site.headless import Outcome, intersection_over_union, readable, verdict
from build_scripts.verbs import OLD_NAMES, VERBS, named
from server.running import AddressError, address_of, bound_socket


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_a_module_with_run(name: str) -> None:
    assert callable(import_module(f"build_scripts.{VERBS[name].module}").run)


@pytest.mark.parametrize("groups", sorted({verb.groups for verb in VERBS.values()}))
def test_a_verb_imports_what_its_groups_install_and_nothing_else(groups: tuple[str, ...]) -> None:
    """A fresh machine has no other package yet when the verb's module is imported."""
    modules = [f"build_scripts.{verb.module}" for verb in VERBS.values() if verb.groups == groups]
    there = _installed_by(groups)
    elsewhere = {name for name, packages in packages_distributions().items() if not there & set(map(_plain, packages))}
    hidden = "".join(f"sys.modules[{name!r}] = None; " for name in sorted(elsewhere - {"build_scripts", "server"}))
    code = f"import sys; {hidden}import importlib; [importlib.import_module(name) for name in {modules}]"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1500:]


def _installed_by(groups: tuple[str, ...]) -> set[str]:
    """The distributions of these groups and what they require, by plain name."""
    found: set[str] = set()
    wanted = requirements(groups)
    while wanted:
        name = _plain(re.split(r"[^\w.-]", wanted.pop(), maxsplit=1)[0])
        if name not in found:
            found.add(name)
            with suppress(PackageNotFoundError):  # of another system
                wanted += [r for r in distribution(name).requires or () if "extra ==" not in r]
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_verbs_are_found_alone_in_their_group_and_by_their_old_names() -> None:
    assert named(["test", "--ring", "static"]) == ("test", ["--ring", "static"])
    assert named(["measure", "bench", "--rounds", "5"]) == ("measure bench", ["--rounds", "5"])
    assert named(["zoo", "--models", "x"]) == ("judge model-zoo", ["--models", "x"])
    assert named(["measure", "nothing"])[0] == named(["measure"])[0] == named(["nope"])[0] == ""
    assert set(OLD_NAMES.values()) <= set(VERBS)


@pytest.mark.parametrize(
    ("argv", "status", "text"),
    [
        ([], 2, "demo"),
        (["--help"], 0, "demo"),
        (["nope"], 2, "no verb"),
        (["measure", "--help"], 0, "measure bench"),
        (["judge"], 0, "judge fuzz"),
        (["judge", "bench"], 2, "no verb 'judge bench'"),
    ],
)
def test_a_wrong_command_line_lists_the_verbs(argv: list[str], status: int, text: str) -> None:
    done = subprocess.run([sys.executable, "-m", "build_scripts", *argv], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == status
    assert text in done.stdout + done.stderr
    assert ("setup" in done.stdout + done.stderr) == (status == 2 or argv == ["--help"])  # or a group's alone
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["setup", "check", "build wheel", "build lock", "build sizes", "build tables"])
def test_an_unknown_option_stops_a_verb_before_it_works(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        VERBS[name].run(["--no-such-option"])
    assert stopped.value.code == 2
    assert "--no-such-option" in capsys.readouterr().err


def test_a_taken_port_gives_the_next_free_one() -> None:
    first = bound_socket(0)
    port = first.getsockname()[1]
    second = bound_socket(port)
    assert port < second.getsockname()[1] < port + 50
    assert address_of(second).startswith("http://127.0.0.1:")
    first.close()
    second.close()


def test_an_address_of_another_machine_is_refused_by_its_name() -> None:
    with pytest.raises(AddressError, match=r"--host 192\.0\.2\.1 is not an address of this machine"):
        bound_socket(0, "192.0.2.1")


def test_a_setting_that_does_not_fit_stops_the_demo_before_it_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBINFER_SERVER_CLIENT_REQUESTS", "many")
    monkeypatch.setattr(demo, "set_up", lambda: pytest.fail("it was built"))
    with pytest.raises(BuildError, match="WEBINFER_SERVER_CLIENT_REQUESTS"):
        demo.run([])


def outcome(backend: str, left: float = 10.0, used: str = "", faces: int = 1) -> Outcome:
    box = {"left": left, "top": 20.0, "width": 100.0, "height": 100.0}
    result: dict[str, Any] = {"backend": used or backend, "faces": [{"box": box, "score": 0.9}] * faces}
    return Outcome(backend, result, "")


def test_two_backends_that_agree_are_green() -> None:
    assert verdict([outcome("wasm"), outcome("webgpu", left=11)]) == 0


def test_a_photo_of_ones_own_may_have_no_face_but_no_two_answers() -> None:
    assert verdict([outcome("wasm", faces=0), outcome("webgpu", faces=0)], faces=False) == 0
    assert verdict([outcome("wasm"), outcome("webgpu", faces=0)], faces=False) == 1
    assert verdict([outcome("wasm", faces=0), outcome("webgpu", used="wasm", faces=0)], faces=False) == 1


@pytest.mark.parametrize("arguments", [["--json"], ["--model", "x"], ["--headless", "/nowhere.png"]])
def test_options_that_do_not_fit_are_refused_before_anything_is_built(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "set_up", lambda: pytest.fail("it was built"))
    with pytest.raises(SystemExit):
        demo.run(arguments)
    assert "--headless" in (told := capsys.readouterr().err) or "no photo" in told


@pytest.mark.parametrize(
    "second",
    [
        outcome("webgpu", left=60),
        outcome("webgpu", used="wasm"),
        outcome("webgpu", faces=0),
        Outcome("webgpu", None, "engine-start: no"),
        Outcome("webgpu", outcome("webgpu").result, "an error in the console"),
    ],
    ids=["far apart", "fell back", "no face", "failed", "console"],
)
def test_anything_else_is_red(second: Outcome) -> None:
    assert verdict([outcome("wasm"), second]) == 1


def test_overlap_of_boxes() -> None:
    a = {"left": 0.0, "top": 0.0, "width": 2.0, "height": 2.0}
    assert intersection_over_union(a, a) == 1
    assert intersection_over_union(a, {**a, "left": 1.0}) == pytest.approx(1 / 3)
    assert intersection_over_union(a, {**a, "top": 5.0}) == 0


def test_a_failure_is_readable_in_both_of_its_forms() -> None:
    assert readable('{"code": "no-gpu", "message": "none"}') == "no-gpu: none"
    assert readable("plain") == "plain"


def test_a_file_over_its_hard_budget_is_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "long.py").write_text("x = 1\n" * 601)
    (tmp_path / "short.py").write_text("def f():\n" + "    x = 1\n" * 50)
    monkeypatch.setattr(sizes, "ROOT", tmp_path)
    red = {m.name for m in sizes.file_measures([tmp_path / "long.py", tmp_path / "short.py"]) if m.red}
    assert red == {"long.py", "short.py:f"}


def test_a_table_is_renewed_between_its_marks_only() -> None:
    text = "before\n<!-- table: debug -->\nstale words\n<!-- end -->\nafter"
    file = "web/docs/debugging.md"
    fresh = tables.renewed(text, file)
    assert fresh.startswith("before\n<!-- table: debug -->\n| `DEBUG=`")
    assert fresh.endswith("<!-- end -->\nafter")
    assert "stale words" not in fresh
    assert tables.renewed(fresh, file) == fresh
