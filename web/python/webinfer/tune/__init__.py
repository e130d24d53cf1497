"""The tuner: which of several kernels is fastest on this device, found by timing and remembered.

`search` times candidates within a budget, `log` is the file of winners, `single_node` makes small graphs to time.
Knows no backend: a backend says what may be tried and how one trial runs.
"""
