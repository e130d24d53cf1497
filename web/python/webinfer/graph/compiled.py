"""Models that are compiled already: what is known of them is their inputs and outputs, no node."""

from __future__ import annotations

from typing import Any

from webinfer.graph.ir import Graph


class CompiledGraph(Graph):
    """Stands for a compiled model. Passes and importers have nothing to do with it."""

    async def build(self, backend: str, host: Any, options: Any) -> Any:
        """The executor of this model on a backend; `options` are a `BuildOptions`.

        Raises:  BackendUnavailableError if the model was not compiled for this backend
        """
        raise NotImplementedError
