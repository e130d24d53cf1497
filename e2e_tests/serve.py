"""A server process for tests: `python -m e2e_tests.serve` prints its address and serves; `--lab` names a token."""

import argparse

from build_scripts.site.serving import make_server
from server.running import address_of, bound_socket
from server.settings import settings_from


def main() -> None:
    """Serves the built site until the process is ended, on a free port unless one is named."""
    parser = argparse.ArgumentParser(prog="python -m e2e_tests.serve")
    parser.add_argument("--not-isolated", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--lab", metavar="TOKEN", default="")
    options = parser.parse_args()
    lab = {"lab": bool(options.lab), "lab_token": options.lab}
    server = make_server(settings_from(isolated=not options.not_isolated, **lab))
    listener = bound_socket(options.port)
    print(address_of(listener), flush=True)
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
