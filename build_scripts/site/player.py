"""The player as an npm package: build/player, from web/player and the engine's own scripts in web/static."""

import json
import shutil
import subprocess
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.options import switches
from build_scripts.paths import ROOT, WEB, version
from build_scripts.setup.node import npm_command
from build_scripts.site.npm_bundle import bundled

SOURCE = WEB / "player"
PLAYER = ROOT / "build" / "player"
WORKER_TEXT = "player_worker_text.js"  # for bundlers that build no workers: the script as a string
TASKS = "player_tasks.js"  # of few packages, loaded with them; the worker has them in it
COPIED = ("player.d.ts", "README.md")


def write_player(folder: Path = PLAYER) -> Path:
    """Writes the package's files; the folder.

    Raises: BuildError if the script cannot be put together
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("player.js", TASKS):
        (folder / name).write_bytes(bundled(SOURCE / "src" / name, external=(f"./{WORKER_TEXT}", f"./{TASKS}")))
    worker = bundled(SOURCE / "src" / "player_worker.js")
    (folder / "player_worker.js").write_bytes(worker)
    (folder / WORKER_TEXT).write_text(f"export default {json.dumps(worker.decode())};\n", encoding="utf-8")
    facts = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))
    (folder / "package.json").write_text(json.dumps({**facts, "version": version()}, indent=2) + "\n", encoding="utf-8")
    for name in COPIED:
        shutil.copyfile(SOURCE / name, folder / name)
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
    return folder


def run(argv: list[str]) -> int:
    """Writes build/player; with --pack also the archive that npm publishes."""
    options = switches("player", "The npm package of the player.", argv, pack="write npm's archive too")
    folder = write_player()
    for file in sorted(folder.iterdir()):
        print(f"{file.stat().st_size:>8} bytes  {file.relative_to(ROOT)}")
    if options.pack:
        done = subprocess.run([*npm_command(), "pack", "--loglevel=error"], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise BuildError(f"npm pack failed: {done.stderr.strip()[-400:]}")
        print(f"packed: {folder / done.stdout.strip().splitlines()[-1]}")
    return 0
