"""One command at a time: a lock that a process holds, and that ends with it.

Of the standard library alone, because the virtual environment is itself set up under a lock.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_held: set[Path] = set()  # locks of this process


@contextlib.contextmanager
def one_at_a_time(folder: Path, what: str) -> Iterator[None]:
    """Waits until no other process holds the folder's lock, says so with `what`, and holds it.

    A process that holds the lock already goes on. Windows has no such lock: there nobody waits.
    """
    if os.name == "nt" or folder in _held:
        yield
        return
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"  waiting for another {what} in this checkout ...")
            fcntl.flock(file, fcntl.LOCK_EX)
        _held.add(folder)
        try:
            yield
        finally:
            _held.discard(folder)
