"""Programs of tests that Node.js runs, with the player from its sources."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from build_scripts.setup.node import node_commands
from build_scripts.site.player import SOURCE

PLAYER = (SOURCE / "src/player.js").as_uri()


@pytest.fixture(scope="module")
def node() -> str:
    """The command that runs Node.js."""
    found = next((node for node in node_commands() if shutil.which(node) or Path(node).exists()), None)
    return found or pytest.skip("Node.js is missing: python3 -m build_scripts setup")


def answer_of(command: list[Any], seconds: int = 100) -> Any:
    """The JSON that a command writes."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
