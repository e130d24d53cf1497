"""How many threads this process should use: its share of the machine, and of what runs it."""

from __future__ import annotations

import os
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: microseconds of processor time in each period of so many
MOST = 8  # threads that one run of a model is cut into, as in the browser


def usable_cores() -> int:
    """The cores that this process may use: by its affinity and by the limit of its container."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min(cores, _quota() or cores))


def _quota() -> int:
    """The container's limit in whole cores, rounded up; 0 where there is none."""
    try:
        allowed, period = QUOTA.read_text(encoding="ascii").split()
        return -(-int(allowed) // int(period))
    except (OSError, ValueError, ZeroDivisionError):  # no container, "max", or no Linux
        return 0


def default_threads() -> int:
    """Threads of a session that asks for none: OMP_NUM_THREADS where it is set, as by Ray and Slurm for their workers.

    Else the usable cores up to four, half of them above, at most eight.
    """
    told = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if told.strip().isdecimal() and int(told) > 0:
        return min(int(told), 64)
    cores = usable_cores()
    return cores if cores <= 4 else max(4, min(cores // 2, MOST))
