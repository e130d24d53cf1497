"""What `serve --classroom` adds: this machine's address, a certificate made for it, and a QR code of the page.

Browsers give cameras, WebGPU and threads to pages that come over HTTPS only. A certificate that this machine made is
enough for that once each device was told to go on; no authority vouches for it, and pages are not kept for offline use.
"""

import datetime
import io
import ipaddress
import os
import socket
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.paths import BUILD

FOLDER = BUILD / "classroom"
DAYS = 30  # that a certificate holds
ELSEWHERE = "192.0.2.1"  # of no machine (RFC 5737): asking for the way there sends nothing


def own_address() -> str:
    """This machine's address in its network.

    Raises: BuildError if it is in none
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((ELSEWHERE, 9))
            return str(probe.getsockname()[0])
        except OSError as error:
            raise BuildError(f"this machine is in no network ({error}); name its address with --host") from error


def certificate_of(host: str, folder: Path = FOLDER) -> tuple[Path, Path]:
    """A certificate and its key for this address, kept in the folder until they end soon."""
    from cryptography import x509

    certificate, key = folder / "certificate.pem", folder / "key.pem"
    if certificate.is_file() and key.is_file():
        known = x509.load_pem_x509_certificate(certificate.read_bytes())
        names = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        left = known.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
        if list(names) == [_name(host)] and left > datetime.timedelta(days=1):
            return certificate, key
    folder.mkdir(parents=True, exist_ok=True)
    proof, secret = _made(host)
    certificate.write_bytes(proof)
    with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # nobody else reads it
        file.write(secret)
    return certificate, key


def qr_code(address: str) -> str:
    """The address as a QR code of characters, for a terminal."""
    import segno

    out = io.StringIO()
    segno.make(address, error="m").terminal(out, compact=True)
    return out.getvalue()


def _name(host: str) -> Any:
    """The host as certificates name it."""
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _made(host: str) -> tuple[bytes, bytes]:
    """A new certificate for this host, signed by its own key, and the key; both as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"webinfer in this classroom, {host}")])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName([_name(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    proof = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = serialization.PrivateFormat.PKCS8
    return proof, key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
