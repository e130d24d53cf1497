"""The columns of the benchmark: which system runs on which backend with how many threads."""

import argparse
from dataclasses import dataclass

SYSTEMS = ("webinfer", "litertjs", "ortweb", "tfjs", "native")
PLAYER, AUTO = "player", "auto"  # compiled packages; webinfer as it chooses a backend itself
NAMED = (PLAYER, AUTO)  # only for who names them
THREADS = (1, 2)


@dataclass(frozen=True)
class Entry:
    """One column of the benchmark: a system on a backend with a number of threads."""

    system: str
    backend: str
    threads: int


def entries_of(options: argparse.Namespace) -> list[Entry]:
    """The columns, those with fewer threads first."""
    entries = []
    for threads in options.threads:
        for system in options.systems:
            if system == "native":
                if options.backend == "wasm" and not options.static:
                    entries.append(Entry("native", "cpu", threads))
                continue
            entries.append(Entry(system, options.backend, threads))
            if system == "tfjs" and options.backend == "wasm" and threads == 1:
                entries.append(Entry("tfjs", "cpu", 1))
    return entries
