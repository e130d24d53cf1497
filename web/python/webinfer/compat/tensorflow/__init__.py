"""TensorFlow's TFLite interpreter as `tensorflow.lite`, for packages that use nothing else of TensorFlow."""

from __future__ import annotations

from typing import Any

from webinfer.compat.tflite_runtime import interpreter as lite

__version__ = "2.20.0"  # the release whose `lite` this is
__all__ = ["lite"]


def __getattr__(name: str) -> Any:
    """Raises AttributeError, which says what there is."""
    raise AttributeError(f"webinfer's stand-in for tensorflow has `lite` alone, and no {name!r}")
