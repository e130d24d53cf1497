"""`demo`: set up, then serve the page, or look at it headless."""

import argparse
import contextlib
import sys
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.setup.sequence import set_up
from build_scripts.site.serve import HOST, serve
from server.settings import Settings, SettingsError, settings_from


def run(argv: list[str]) -> int:
    """Serves until stopped; with --headless the status tells whether every backend found the face."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts demo")
    parser.add_argument("--port", type=int, default=8000, help="the first port to try (default 8000)")
    parser.add_argument(
        "--headless",
        nargs="?",
        const="",
        metavar="PHOTO",
        help="detect in headless Chromium, on every backend; else the sample photo",
    )
    parser.add_argument("--model", default="", help="of --headless: one of the models of the face detection page")
    parser.add_argument(
        "--json", action="store_true", help="with --headless: print the results as JSON and nothing else"
    )
    parser.add_argument("--all", action="store_true", help="with --headless: every demo on its sample, a row each")
    parser.add_argument("--backend", default="wasm", help="of --all (default wasm)")
    parser.add_argument("--record", action="store_true", help="with --all: what the home page shows of each demo")
    parser.add_argument("--not-isolated", action="store_true", help="serve without the isolation headers")
    options = parser.parse_args(argv)
    settings = _settings(not options.not_isolated)
    if options.headless is None and (options.model or options.json):
        parser.error("--model and --json are for --headless")
    if options.headless and not Path(options.headless).is_file():
        parser.error(f"there is no photo {options.headless}")
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        set_up()
    if options.headless is not None:
        from build_scripts.setup.environment import ensure_groups

        ensure_groups(("browser",))
        if options.all:
            from build_scripts.site.gallery import run_all

            return run_all(not options.not_isolated, options.backend, options.record)
        from build_scripts.site.headless import Asked, run_headless

        asked = Asked(Path(options.headless) if options.headless else None, options.model, options.json)
        return run_headless(not options.not_isolated, asked)
    return serve(options.port, settings, HOST)


def _settings(isolated: bool) -> Settings:
    """The server's settings, with what the environment says."""
    try:
        return settings_from() if isolated else settings_from(isolated=False)
    except SettingsError as error:
        raise BuildError(str(error)) from error
