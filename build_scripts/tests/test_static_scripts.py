"""The scripts of the page fit each other."""

import re

from build_scripts.paths import WEB

STATIC = WEB / "static"
IMPORT = re.compile(r'^import .* from "\./([\w/]+)\.js";$', re.MULTILINE)


def imported(name: str) -> set[str]:
    """The names of a script and of all that it imports."""
    found, open_names = set[str](), [name]
    while open_names:
        script = open_names.pop()
        if script not in found:
            found.add(script)
            open_names += IMPORT.findall((STATIC / f"{script}.js").read_text())
    return found


def test_the_worker_checks_every_script_that_it_imports() -> None:
    listed = re.search(r"^const OWN = \[(.*)\];$", (STATIC / "engine_worker.js").read_text(), re.MULTILINE)
    assert listed is not None
    assert set(re.findall(r'"(\w+)"', listed[1])) == imported("engine_worker")
