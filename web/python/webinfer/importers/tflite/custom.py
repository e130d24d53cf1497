"""Custom operators, by the name in the file."""

from __future__ import annotations

from webinfer.importers.tflite.operation import Row

CONVERTERS: dict[str, Row] = {}
