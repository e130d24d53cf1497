"""The plan: where every tensor lies, when it lives, and the program that a backend executes.

`lowering/aliasing` says which values share bytes, `arena` packs lifetimes into one block, `program` is the
binary form. Knows no operator's arithmetic and no device; never imports importers or backends.
"""
