"""The hashes by which a browser refuses altered scripts and style sheets of a page (Subresource Integrity)."""

import hashlib
import json
import re
from base64 import b64encode

from markupsafe import Markup

from server.manifest import Manifest

IMPORT_MAP = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)


def integrity_of(sha256: str) -> str:
    """The value of an `integrity` attribute, from a hash as hexadecimal digits."""
    return f"sha256-{b64encode(bytes.fromhex(sha256)).decode()}"


def import_map(manifest: Manifest) -> Markup:
    """The JSON of an import map with the hash of every script that pages import, so that these are checked too."""
    urls = [url for name, url in sorted(manifest.urls.items()) if re.fullmatch(r"static/.*\.js", name)]
    return Markup(json.dumps({"integrity": {url: integrity_of(manifest.assets[url].sha256) for url in urls}}))


def policy_with(policy: str, page: str) -> str:
    """The Content-Security-Policy, which allows the import map of this page besides: by its hash, for it is inline."""
    hashes = {integrity_of(hashlib.sha256(text.encode()).hexdigest()) for text in IMPORT_MAP.findall(page)}
    return policy.replace("script-src 'self'", " ".join(["script-src 'self'", *(f"'{one}'" for one in sorted(hashes))]))
