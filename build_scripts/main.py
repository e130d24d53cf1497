"""From the command line to a verb that runs inside .venv."""

import os
import subprocess
import sys

from build_scripts.errors import BuildError
from build_scripts.paths import ROOT, VENV, VENV_PYTHON
from build_scripts.verbs import GROUPS, OLD_NAMES, VERBS, named

READY = "WEBINFER_ENVIRONMENT_READY"  # set for the second half of a command, inside .venv


def usage(group: str = "") -> str:
    """The list of verbs, or of those of a group: "measure", for example."""
    rows = [f"  {name:23} {verb.what}" for name, verb in VERBS.items() if not group or name.startswith(f"{group} ")]
    verb = f"{group} <what>" if group else "<verb>"
    return "\n".join([f"usage: python3 -m build_scripts {verb} [options]", "", *rows])


def main(argv: list[str]) -> int:
    """The exit status of the verb named by argv[0]."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if argv else 2
    if argv[0] in GROUPS and argv[1:2] in ([], ["-h"], ["--help"], ["help"]):
        print(usage(argv[0]))
        return 0
    name, options = named(argv)
    if not name:
        print(f"there is no verb {' '.join(argv[:2])!r}\n\n{usage()}", file=sys.stderr)
        return 2
    if argv[0] in OLD_NAMES:
        print(f"`{argv[0]}` is called `{name}` now; the old name goes with release 0.3", file=sys.stderr)
    try:
        return _run(name, options)
    except BuildError as error:
        print(f"\nerror: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        command = error.cmd if isinstance(error.cmd, str) else " ".join(map(str, error.cmd))
        print(f"\nerror: this command ended with status {error.returncode}: {command}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped")
        return 130


def _run(name: str, options: list[str]) -> int:
    if not (ROOT / "pyproject.toml").is_file() or not (ROOT / "web").is_dir():
        raise BuildError(f"{ROOT} is not a whole checkout of webinfer; clone it with git and start again")
    os.chdir(ROOT)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    verb = VERBS[name]
    if name.split()[0] in ("judge", "measure"):
        os.environ.setdefault("WEBINFER_PLANS", "off")  # of the engine as it is, not of what an earlier run stored
    if verb.groups:
        from build_scripts.setup.environment import ensure_groups

        if not os.environ.pop(READY, ""):
            ensure_groups(verb.groups)
        if not inside_venv():
            return _again_in_venv([*name.split(), *options])
    return verb.run(options)


def inside_venv() -> bool:
    """Whether this interpreter is the one of .venv."""
    return os.path.realpath(sys.prefix) == os.path.realpath(VENV)


def _again_in_venv(argv: list[str]) -> int:
    command = [str(VENV_PYTHON), "-m", "build_scripts", *argv]
    environment = {**os.environ, READY: "1"}
    if os.name == "nt":  # there, exec starts a second process and lets the shell go on
        return subprocess.run(command, env=environment).returncode
    sys.stdout.flush()
    os.execve(command[0], command, environment)
