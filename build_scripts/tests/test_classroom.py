"""`serve --classroom`: a certificate that TLS takes for its address and no other, kept until it ends, and a QR code."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="pip group classroom: cryptography")
segno = pytest.importorskip("segno", reason="pip group classroom: segno")

from build_scripts.site import classroom  # noqa: E402


def shaken(certificate: Path, key: Path, host: str) -> None:
    """A TLS handshake with a server of this certificate, by a client that trusts it and asks for this host."""
    ours, theirs = socket.socketpair()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    client = ssl.create_default_context(cafile=str(certificate))

    def serve() -> None:
        try:
            server.wrap_socket(ours, server_side=True).close()
        except (ssl.SSLError, OSError):
            ours.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        client.wrap_socket(theirs, server_hostname=host).close()
    finally:
        theirs.close()
        thread.join(10)


def test_a_certificate_is_for_its_address_and_kept(tmp_path: Path) -> None:
    certificate, key = classroom.certificate_of("192.168.7.9", tmp_path)
    first = certificate.read_bytes()
    assert key.stat().st_mode & 0o077 == 0
    shaken(certificate, key, "192.168.7.9")
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(certificate, key, "192.168.7.10")
    assert classroom.certificate_of("192.168.7.9", tmp_path)[0].read_bytes() == first
    assert classroom.certificate_of("school.local", tmp_path)[0].read_bytes() != first
    shaken(certificate, key, "school.local")


def test_the_code_holds_the_address() -> None:
    address = "https://192.168.7.9:8000/"
    lines = classroom.qr_code(address).splitlines()
    size = segno.make(address, error="m").symbol_size(border=4)[1]
    assert len(lines) == -(-size // 2)  # two rows of the code in a line


def test_a_machine_in_no_network_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classroom, "ELSEWHERE", "not an address")
    with pytest.raises(classroom.BuildError, match="--host"):
        classroom.own_address()
