"""Everything that can be set about the server."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "WEBINFER_SERVER_"  # of the environment variables: WEBINFER_SERVER_HOSTS sets `hosts`


class SettingsError(ValueError):
    """An environment variable names no setting, or holds no value for it."""


@dataclass(frozen=True)
class Settings:
    """The server's settings; the defaults serve this checkout's build on loopback."""

    site: Path = ROOT / "build" / "site"  # folder with manifest.json and assets/
    templates: Path = ROOT / "server" / "templates"  # folder of Jinja2 templates
    tables: Path = ROOT / "server"  # folder of demos.toml and pages.toml
    docs: Path = ROOT / "web" / "docs"  # folder of the documentation: Markdown, SVG and contents.toml
    engine: Path = ROOT / "web" / "python"  # folder of the engine's package, whose docstrings are the API reference
    late: Path = ROOT / "build"  # folder below which fetched packages of models lie
    fetch_models: str = (
        "-m build_scripts build models"  # Python's arguments that fetch the package named behind; "": none is
    )
    rivals: str = ""  # folder with runtimes of others, for the benchmark's page; "": it measures this one alone
    isolated: bool = True  # send COOP and COEP, so that pages may share memory between threads
    hosts: frozenset[str] = field(default=frozenset({"127.0.0.1", "localhost", "::1"}))  # accepted Host names, no port
    hashed_max_age_s: int = 31_536_000  # seconds that a file with a hash in its name may be kept
    max_path_chars: int = 1024  # of a request; longer paths are answered with 404
    header_timeout_s: float = 10.0  # seconds that a client may take to send a request
    keep_alive_timeout_s: int = 5  # seconds that an idle connection is kept
    write_timeout_s: float = 20.0  # seconds that a client may leave 64 kB of an answer unread
    max_connections: int = 16_384  # open at a time; more are closed at once
    max_requests: int = 4096  # that are answered at a time; more wait for their turn
    turn_timeout_s: float = 300.0  # seconds that a request waits for its turn; then it gets 503
    client_connections: int = 1024  # open at a time from one address; more get 429; 0 for no limit
    client_requests: int = 1024  # waiting or answered at a time for one client; more get 429; 0 for no limit
    retry_after_s: int = 2  # seconds after which those with 429 or 503 may come again
    trusted_proxies: frozenset[str] = frozenset()  # addresses or networks of proxies, whose word on clients counts
    forwarded_header: str = "X-Forwarded-For"  # in which they name the client
    lab: bool = False  # serve the lab of devices: browsers that let programs elsewhere compute in them
    lab_token: str = ""  # who has it may bring a device, or drive one; nobody may while it is empty
    lab_database: str = "sqlite://"  # SQLAlchemy's address of where results go; this one forgets them at the end
    lab_devices: int = 512  # that may be in the lab at a time
    lab_message_bytes: int = 256 << 20  # of a message, such as a model; a longer one ends its connection
    lab_send_timeout_s: float = 120.0  # seconds that a device or a program may take to read a message


def settings_from(environment: Mapping[str, str] = os.environ, **given: Any) -> Settings:
    """The settings with what WEBINFER_SERVER_… variables say; sets are lists with commas, truth is 0 or 1.

    Raises: SettingsError if a variable names no setting or its value does not fit
    """
    known = {PREFIX + one.name.upper(): one.name for one in fields(Settings)}
    said: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        if variable not in known:
            raise SettingsError(f"{variable} names no setting of the server; there are {', '.join(sorted(known))}")
        said[known[variable]] = _value(variable, text, getattr(Settings(), known[variable]))
    return replace(Settings(), **{**said, **given})


def _value(variable: str, text: str, default: Any) -> Any:
    text = text.strip()
    try:
        if isinstance(default, frozenset):
            parts = frozenset(part.strip().lower() for part in text.split(",") if part.strip())
            return frozenset(str(ip_network(part, strict=False)) for part in parts) if "PROXIES" in variable else parts
        if isinstance(default, bool):
            return {"0": False, "1": True}[text]
        value = type(default)(text)
        if isinstance(value, int | float) and not 0 <= value < 1e9:
            raise ValueError
    except (ValueError, KeyError) as error:
        kind = {bool: "0 or 1", int: "a whole number", float: "a number"}.get(type(default), "such a value")
        raise SettingsError(f"{variable} is {text!r}; it has to be {kind}, not negative") from error
    return value
