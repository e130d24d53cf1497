"""ONNX models → graphs.

Images stay in the order of the file only for users: inside, a value that was transposed is remembered as its source
and an order of axes, and converters follow that order where they can. The tables say what becomes what; one family a
file.
"""

from webinfer.importers.onnx.convert import read_onnx

__all__ = ["read_onnx"]
