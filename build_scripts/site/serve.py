"""`serve`: set up, then serve the site until it is stopped; with --lab, to other devices of this network."""

import argparse
import logging
import secrets
from dataclasses import replace
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import BUILD, ROOT
from build_scripts.setup.environment import ensure_groups
from build_scripts.setup.sequence import set_up
from build_scripts.site.classroom import certificate_of, own_address, qr_code
from server.settings import Settings, SettingsError, settings_from

HOST = "127.0.0.1"
DATABASE = BUILD / "lab.sqlite"
TOKEN_BYTES = 16


def run(argv: list[str]) -> int:
    """Serves until stopped."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts serve", description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="the first port to try (default 8000)")
    parser.add_argument("--host", help=f"an address of this machine in its network (default {HOST})")
    parser.add_argument("--lab", action="store_true", help="let browsers become devices that programs drive")
    parser.add_argument("--database", help=f"where the lab's results go, as SQLAlchemy says it (default {DATABASE})")
    lesson = "serve to this network over HTTPS, with a certificate made for it, and print a QR code"
    parser.add_argument("--classroom", action="store_true", help=lesson)
    secure = "PEM file: serve over HTTPS, without which other devices have no WebGPU and no threads"
    parser.add_argument("--certificate", type=Path, help=secure)
    parser.add_argument("--key", type=Path, help="PEM file of the certificate's key, if it is a file of its own")
    beside = "the page /benchmark also measures LiteRT.js, ONNX Runtime Web and TensorFlow.js (from npm, 200 MB)"
    parser.add_argument("--rivals", action="store_true", help=beside)
    parser.add_argument("--not-isolated", action="store_true", help="serve without the isolation headers")
    options = parser.parse_args(argv)
    if options.lab:
        ensure_groups(("lab",))
    if options.classroom:
        ensure_groups(("classroom",))
        options.host = options.host or own_address()
        if not options.certificate:
            options.certificate, options.key = certificate_of(options.host)
    options.host = options.host or HOST
    settings = settings_of(options)
    set_up()
    if options.rivals:
        ensure_groups(("native", "test"))
        from build_scripts.site.rivals import rivals_folder

        settings = replace(settings, rivals=str(rivals_folder()))
    return serve(options.port, settings, options.host, options.certificate, options.key, options.classroom)


def settings_of(options: argparse.Namespace) -> Settings:
    """The server's settings: what the command line says, then the environment.

    Raises: BuildError
    """
    try:
        settings = settings_from(lab=options.lab)
    except SettingsError as error:
        raise BuildError(str(error)) from error
    known = settings.lab_database if settings.lab_database != Settings().lab_database else f"sqlite:///{DATABASE}"
    return replace(
        settings,
        isolated=settings.isolated and not options.not_isolated,
        hosts=settings.hosts | {options.host.lower()},
        lab_token=settings.lab_token or secrets.token_urlsafe(TOKEN_BYTES),
        lab_database=options.database or known,
    )


def serve(
    port: int,
    settings: Settings,
    host: str,
    certificate: Path | None = None,
    key: Path | None = None,
    classroom: bool = False,
) -> int:
    """Prints the addresses to open, with a QR code in a `classroom`, and serves until stopped.

    Raises: BuildError if the address is none of this machine, or the lab's database cannot be opened
    """
    from build_scripts.site.serving import make_server
    from server.running import AddressError, address_of, bound_socket

    log = BUILD / "server.log"
    logging.basicConfig(filename=log, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    try:
        listener = bound_socket(port, host)
    except AddressError as error:
        raise BuildError(str(error)) from error
    server = make_server(settings, certificate, key)
    address = address_of(listener, bool(certificate))
    print(f"\nwebinfer is served at {address}   (stop with Ctrl-C; log in {log.relative_to(ROOT)})")
    if classroom:
        print(f"\n{qr_code(address)}\nThe certificate is self-signed, so browsers warn once.")
    if settings.lab:
        lab = f"{address}/lab#token={settings.lab_token}"
        print(f"the lab: open {lab} on each device")
        print(f"programs: export WEBINFER_LAB='{lab}'")
    server.run(sockets=[listener])
    return 0
