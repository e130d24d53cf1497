"""The tuner: which of several right ways is fastest on this device, found by timing, remembered.

`search` times candidates within a budget, `log` keeps winners. Knows no backend: a backend says what
may be tried and how one trial runs.
"""
