"""Puts a mutant into a copy of the checkout, and takes it out again."""

from __future__ import annotations

import os

from build_scripts.mutants.making import module_of
from build_scripts.mutants.model import Mutant
from build_scripts.mutants.trees import Tree


class planted_in:
    """A mutant in its place, for the length of a `with`. Bytecode is cached by a file's time, so each has its own."""

    def __init__(self, mutant: Mutant, tree: Tree) -> None:
        self.module = module_of(mutant) if mutant.build else None
        name = f"build/kernels/webinfer-{mutant.build}.wasm" if mutant.build else mutant.path
        self.mutant, self.path = mutant, tree.folder / name
        self.kept, self.times = self.path.read_bytes(), self.path.stat()

    def __enter__(self) -> None:
        if self.module is not None:
            self.path.write_bytes(self.module.read_bytes())
        else:
            self.path.write_text(self.mutant.applied(self.kept.decode()))
            os.utime(self.path, (self.times.st_atime, self.times.st_mtime + 1000 + self.mutant.offset))

    def __exit__(self, *_: object) -> None:
        self.path.write_bytes(self.kept)
        os.utime(self.path, ns=(self.times.st_atime_ns, self.times.st_mtime_ns))
