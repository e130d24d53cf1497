"""Interfaces of other libraries over webinfer's sessions, so that packages written for them run unchanged.

    webinfer.compat.install("onnxruntime")
    import magika  # imports onnxruntime, and gets webinfer.compat.onnxruntime

`install` never takes the place of a library that is installed. Thin: the room knows the public names only.
"""

from webinfer.compat.registration import STAND_INS, install, uninstall

__all__ = ["STAND_INS", "install", "uninstall"]
