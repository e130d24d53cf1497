"""The lab's address, and what it offers: devices, results and tunings."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from webinfer.lab.errors import LabError
from webinfer.lazy_dataclass import dataclass

VARIABLE = "WEBINFER_LAB"
ANSWER_S = 20.0
PROTOCOL = "webinfer.lab"


@dataclass(frozen=True, slots=True)
class Place:
    """A lab's server: where it is, and the token that opens it."""

    root: str
    token: str

    @property
    def protocols(self) -> tuple[str, str]:
        """What a WebSocket offers: the lab's protocol, and the token in a second one."""
        return PROTOCOL, f"token.{self.token}"

    def socket(self, device: str) -> str:
        """The address of the WebSocket that drives a device."""
        return f"ws{self.root.removeprefix('http')}/api/lab/drive?device={quote(device)}"


def place_of(address: str | None) -> Place:
    """The lab at an address as its server printed it; without one, that of the environment.

    Raises:  LabError if there is none, or it has no token
    """
    text = address or os.environ.get(VARIABLE, "")
    if not text:
        raise LabError(
            f"the lab's address is not known: pass address=, or set {VARIABLE}, to the address that its server printed"
        )
    parts = urlsplit(text)
    token = parse_qs(parts.fragment).get("token", [""])[0]
    if parts.scheme not in ("http", "https") or not parts.netloc or not token:
        raise LabError(f"{text!r} is not an address of a lab; it looks like http://192.168.1.5:8000/lab#token=…")
    return Place(f"{parts.scheme}://{parts.netloc}", token)


async def devices(address: str | None = None) -> list[dict[str, Any]]:
    """The devices that are here: name, what it is, since when, whether a program drives it, and what it does.

    Raises:  LabError
    """
    return await _rows(address, "devices")


async def results(address: str | None = None) -> list[dict[str, Any]]:
    """What devices answered, the newest first: at, device, about, action, model, backend, value.

    Raises:  LabError
    """
    return await _rows(address, "results")


async def tunings(address: str | None = None) -> str:
    """All that was tuned in this lab, as the lines of a tuning log: `Session.import_tuning` takes those of its device.

    Raises:  LabError
    """
    return await _text(address, "tunings")


async def _rows(address: str | None, what: str) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads(await _text(address, what))
    except ValueError as error:
        raise LabError(f"the server at {place_of(address).root} is not a lab: {error}") from error
    return found


async def _text(address: str | None, what: str) -> str:
    place = place_of(address)
    headers = {"Authorization": f"Bearer {place.token}"}
    request = urllib.request.Request(f"{place.root}/api/lab/{what}", headers=headers)

    def asked() -> str:
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            return str(answer.read().decode())

    try:
        return await asyncio.to_thread(asked)
    except urllib.error.HTTPError as error:
        raise LabError(f"{place.root} refuses: {refused(error.code, error.read())}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise LabError(f"the lab at {place.root} cannot be reached: {error}") from error


def refused(status: int, body: bytes) -> str:
    """What a problem document says."""
    try:
        return str(json.loads(body)["title"])
    except (ValueError, KeyError, TypeError):
        return f"status {status}"
