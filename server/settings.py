"""Everything that can be set about the server."""

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Settings:
    """The server's settings; the defaults serve this checkout's build on loopback."""

    site: Path = ROOT / "build" / "site"  # folder with manifest.json and assets/
    templates: Path = ROOT / "server" / "templates"  # folder of Jinja2 templates
    docs: Path = ROOT / "web" / "docs"  # folder of the documentation: Markdown, SVG and contents.toml
    isolated: bool = True  # send COOP and COEP, so that pages may share memory between threads
    hosts: frozenset[str] = field(default=frozenset({"127.0.0.1", "localhost", "::1"}))  # accepted Host names, no port
    hashed_max_age_s: int = 31_536_000  # seconds that a file with a hash in its name may be kept
    max_path_chars: int = 1024  # of a request; longer paths are answered with 404
    header_timeout_s: float = 10.0  # seconds that a client may take to send the head of a request
    keep_alive_timeout_s: int = 5  # seconds that an idle connection is kept
    write_timeout_s: float = 20.0  # seconds that a client may leave 64 kB of an answer unread
    max_requests: int = 4096  # requests that are answered at a time; more get 503 and are asked to come again
    retry_after_s: int = 2  # seconds after which those may come again
