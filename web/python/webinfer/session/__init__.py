"""Sessions: a model loaded on one backend, and what is behind that: loading, selection, recovery, reports.

Knows backends only through `backends.base` and `backends.registry`; names none of them.
"""
