"""Resolves the pinned requirements of every group again and writes what they bring along."""

import subprocess
import tempfile
import venv
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.options import switches
from build_scripts.paths import ROOT, configuration
from build_scripts.setup.environment import constraints_file, requirements

HEAD = """\
# Written by `python3 -m build_scripts build lock`: every version that the dependency groups of
# pyproject.toml resolve to. Used as pip constraints.
"""


def run(argv: list[str]) -> int:
    """Writes the constraints file and says how many packages it holds."""
    switches("lock", "Resolves the pins again and writes the constraints file.", argv)
    wanted = requirements(configuration()["dependency-groups"])
    with tempfile.TemporaryDirectory() as folder:
        venv.EnvBuilder(with_pip=True).create(folder)
        python = next(p for p in (Path(folder) / "bin/python", Path(folder) / "Scripts/python.exe") if p.exists())
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q"]
        if subprocess.run([*pip, "install", *wanted], cwd=ROOT).returncode:
            raise BuildError("the pinned requirements do not fit together; pip says why above")
        frozen = subprocess.run([*pip, "freeze"], capture_output=True, text=True, check=True).stdout
    names = sorted((line for line in frozen.splitlines() if "==" in line), key=str.lower)
    constraints_file().write_text(HEAD + "\n".join(names) + "\n")
    print(f"{constraints_file().relative_to(ROOT)}: {len(names)} packages")
    return 0
