"""The models that webinfer knows by name: where each comes from, what was published, and its numbers.

`layouts` says how pictures go in and how raw outputs are read; `registry` is the list. No code of the engine.
"""
