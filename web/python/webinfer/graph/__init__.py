"""The graph: typed values, nodes in topological order, a verifier and a printer.

Knows what an operator is, not which operators there are. Imports only the leaves.
"""
