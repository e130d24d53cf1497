"""WebNN graph descriptions → graphs.

A description is what a builder's calls amount to: inputs and constants with descriptors, operators
with named arguments, outputs. Layouts become NHWC with transposes, recurrent operators and
normalisations are taken apart. The tables say what becomes what; one family a file.
"""

from webinfer.importers.webnn.convert import read_graph

__all__ = ["read_graph"]
