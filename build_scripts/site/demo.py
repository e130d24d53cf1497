"""The verb `demo`: set up, then serve the page, or look at it headless."""

import argparse
import logging

from build_scripts.paths import BUILD, ROOT
from build_scripts.setup.sequence import set_up


def run(argv: list[str]) -> int:
    """Serves until stopped; with --headless the status tells whether every backend found the face."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts demo")
    parser.add_argument("--port", type=int, default=8000, help="the first port to try (default 8000)")
    parser.add_argument("--headless", action="store_true", help="detect on the sample photo in headless Chromium")
    parser.add_argument("--not-isolated", action="store_true", help="serve without the isolation headers")
    options = parser.parse_args(argv)
    set_up()
    if options.headless:
        from build_scripts.setup.environment import ensure_groups

        ensure_groups(("browser",))
        from build_scripts.site.headless import run_headless

        return run_headless(not options.not_isolated)
    return _serve(options.port, not options.not_isolated)


def _serve(port: int, isolated: bool) -> int:
    from build_scripts.site.serving import address_of, bound_socket, make_server
    from server.settings import Settings

    log = BUILD / "server.log"
    logging.basicConfig(filename=log, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    server = make_server(Settings(isolated=isolated))
    listener = bound_socket(port)
    print(f"\nwebinfer is served at {address_of(listener)}   (stop with Ctrl-C; log in {log.relative_to(ROOT)})")
    server.run(sockets=[listener])
    return 0
