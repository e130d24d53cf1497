"""Programs that were started here."""

import subprocess

END_S = 10  # to end by itself


def end(process: "subprocess.Popen[bytes]") -> None:
    """Asks a program to end, and makes it if it does not in time."""
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
