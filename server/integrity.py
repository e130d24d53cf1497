"""The hashes by which a browser refuses altered scripts and style sheets of a page (Subresource Integrity)."""

import hashlib
import json
import re
from base64 import b64encode

from markupsafe import Markup

from server.manifest import Manifest

INLINE = re.compile(r'<script (?:type="importmap"|id="first"|id="chosen-language")>(.*?)</script>', re.DOTALL)
FETCHES = re.compile(r"<html [^>]*data-fetches\b")
OTHER_SITES = "https: http://localhost:* http://127.0.0.1:*"
COMMENT = re.compile(r"^ *(?:// .*|/\*\* .* \*/)\n", re.MULTILINE)  # of one line


def integrity_of(sha256: str) -> str:
    """The value of an `integrity` attribute, from a hash as hexadecimal digits."""
    return f"sha256-{b64encode(bytes.fromhex(sha256)).decode()}"


def import_map(manifest: Manifest) -> Markup:
    """The JSON of an import map with the hash of every script that pages import, so that these are checked too."""
    urls = [url for name, url in sorted(manifest.urls.items()) if re.fullmatch(r"static/.*\.js", name)]
    return Markup(json.dumps({"integrity": {url: integrity_of(manifest.assets[url].sha256) for url in urls}}))


def inline_script(manifest: Manifest, name: str) -> Markup:
    """The text of a script as it stands in a page; "" if the site has none of that name."""
    if name not in manifest.urls:
        return Markup()
    text = COMMENT.sub("", manifest.assets[manifest.urls[name]].file.read_text())
    if "</script" in text or "<!--" in text:
        raise ValueError(f"{name} cannot stand in a page: it has '</script' or '<!--' in it")
    return Markup(text)


def policy_with(policy: str, page: str) -> str:
    """The Content-Security-Policy, which allows the inline scripts of this page besides, by their hashes.

    A page that says so reads files of other sites, too: over https, and of this device for those who try something.
    """
    if FETCHES.search(page):
        policy = policy.replace("connect-src 'self'", f"connect-src 'self' {OTHER_SITES}")
    hashes = {integrity_of(hashlib.sha256(text.encode()).hexdigest()) for text in INLINE.findall(page)}
    return policy.replace("script-src 'self'", " ".join(["script-src 'self'", *(f"'{one}'" for one in sorted(hashes))]))
