"""The interpreter of LiteRT (TensorFlow Lite) over webinfer's sessions, with its interface from Python.

Written after the public documentation of tflite_runtime and ai_edge_litert, whose `interpreter` modules are the same.
"""

__version__ = "2.14.0"
