"""The backends: each turns a graph into an executor, each in a room of its own.

`base` is what they have in common. A backend never imports another one, nor an importer.
"""
