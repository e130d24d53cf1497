"""WebNN graph descriptions → graphs.

A description is what a builder's calls amount to: inputs and constants with descriptors, operators
with named arguments, outputs. Layouts become NHWC with transposes, recurrent operators and
normalisations are taken apart. The tables say what becomes what; `reader` and `description` know no operator.
"""

from webinfer.importers.webnn.description import read_graph

__all__ = ["read_graph"]
