"""`python3 -m build_scripts <verb>`: checks the ground, sets up .venv, goes on inside it."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("webinfer needs Python 3.11 or newer; this is Python %d.%d" % sys.version_info[:2])  # noqa: UP031

from build_scripts import main

if __name__ == "__main__":
    sys.exit(main.main(sys.argv[1:]))
