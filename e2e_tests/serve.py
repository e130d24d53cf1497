"""A server process for the tests: `python -m e2e_tests.serve [--not-isolated]` prints its address and serves."""

import sys

from build_scripts.site.serving import address_of, bound_socket, make_server
from server.settings import Settings


def main(argv: list[str]) -> None:
    """Serves the built site on a free port until the process is ended."""
    server = make_server(Settings(isolated="--not-isolated" not in argv))
    listener = bound_socket(0)
    print(address_of(listener), flush=True)
    server.run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1:])
