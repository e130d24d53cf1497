"""Rewrites of the graph, one a file: each takes a graph, changes it in place, returns how many times.

A pass runs in linear time, keeps the graph sound (graph/verify.py) and its inputs' and outputs' names,
and never computes with weights: that is the kernels' work. Imports ops and graph, never importers or backends.
"""
