"""Errors of the lab, and which error stands for the code in a message."""

from __future__ import annotations

from webinfer import errors
from webinfer.errors import UnsupportedOpError, WebinferError


class LabError(WebinferError):
    """The lab cannot be reached, lets nobody in, or does not understand what it is told."""

    code = "lab"


class NoDeviceError(LabError):
    """No device of this name is in the lab."""

    code = "no-device"


class DeviceBusyError(LabError):
    """Another program drives this device."""

    code = "device-busy"


class DeviceGoneError(LabError):
    """The device went while something was asked of it: its page was closed or stopped, or its network failed."""

    code = "device-gone"


class NoSiteError(LabError):
    """What is installed holds the engine and no site, so it can serve neither the demo nor the lab's page."""

    code = "no-site"


OWN = (NoDeviceError, DeviceBusyError, DeviceGoneError)


def error_of(code: str, message: str) -> WebinferError:
    """The error of this code, as the engine there raised it; a LabError where the code is the lab's own."""
    if code == UnsupportedOpError.code:
        return UnsupportedOpError(message.split("\n  ")[1:] or [message])
    for kind in (*OWN, *(value for value in vars(errors).values() if isinstance(value, type))):
        if issubclass(kind, WebinferError) and kind.code == code and kind is not errors.LimitError:
            return kind(message)
    found = LabError(f"{message} ({code})")
    found.code = code
    return found
