"""A PostgreSQL of a test's own, which can be started again in the middle."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = next((path for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
LIMIT_S = 20


class Postgres:
    """A running server in a folder, as its own user: it refuses to run as root."""

    def __init__(self, folder: Path) -> None:
        if PROGRAMS is None:
            pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
        pytest.importorskip("psycopg")
        self._programs, self._data, self._sockets = PROGRAMS, folder / "data", folder / "sockets"
        as_user: dict[str, Any] = {}
        if os.geteuid() == 0:
            import pwd

            try:
                user = pwd.getpwnam("postgres")
            except KeyError:
                pytest.skip("PostgreSQL has no user of its own here")
            for place in (folder, *folder.parents):
                if place.stat().st_uid == 0 and place != Path("/") and not place.stat().st_mode & 1:
                    place.chmod(place.stat().st_mode | 0o011)
            as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        for place in (self._data, self._sockets):
            place.mkdir(mode=0o700)
            shutil.chown(place, as_user.get("user", -1), as_user.get("group", -1))
        self._quiet = {"cwd": self._data, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **as_user}
        made = ["-D", self._data, "-A", "trust", "-U", "lab", "-N", "-E", "UTF8", "--locale=C"]
        subprocess.run([self._programs / "initdb", *made], check=True, **self._quiet)
        self.address = f"postgresql+psycopg://lab@/postgres?host={self._sockets}"
        self.start()

    def start(self) -> None:
        """Starts it, and waits until it takes connections."""
        settings = ["listen_addresses=", f"unix_socket_directories={self._sockets}", "shared_buffers=1MB"]
        options = [part for setting in settings for part in ("-c", setting)]
        command = [self._programs / "postgres", "-D", self._data, "-F", *options]
        self._server = subprocess.Popen(command, **{**self._quiet, "stderr": subprocess.DEVNULL})
        ready, end = [self._programs / "pg_isready", "-q", "-h", self._sockets, "-U", "lab"], time.monotonic() + LIMIT_S
        while subprocess.run(ready, **self._quiet).returncode and time.monotonic() < end:
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends it at once: who is connected is cut off."""
        self._server.send_signal(2)  # what pg_ctl calls fast
        self._server.wait(LIMIT_S)
