"""Graphs that a program makes, where others are read from files."""

from __future__ import annotations

from abc import ABC, abstractmethod

from webinfer.graph.ir import Graph


class MadeGraph(ABC):
    """What makes a graph; `webinfer.load` takes it as a model. Loading a file needs no more than this of it."""

    name: str

    @abstractmethod
    def graph(self) -> Graph:
        """The graph, verified.

        Raises:  InputError if there is nothing to run
        """
