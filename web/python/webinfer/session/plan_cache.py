"""The plan cache: compiled models that the host stores from one visit to the next.

An entry's name holds the model's hash and the name of what a task put behind the model. Which plans there are, and
what is in their bytes, is the backends' matter.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from webinfer.backends import registry
from webinfer.backends.base import PlanEntry, StoredPlan, StoredRegimes
from webinfer.flags import debug
from webinfer.graph.deferred import DeferredGraph
from webinfer.graph.ir import Graph, Value
from webinfer.host.interface import Host
from webinfer.importers.core.partial_evaluation import OpenSizes
from webinfer.lazy_dataclass import dataclass

# Of a model whose plan is looked for: hashing a larger one and reading its plan back takes longer than compiling it
# (without a browser, 96 MB of matrices 0.70 s of CPU against 0.59, 64 MB of windows 0.61 against 0.56).
MAX_MODEL_BYTES = 32 << 20


class OpenGraph(Graph):
    """Stands for a model until its first run: its inputs and outputs as the file says, names in place of open sizes."""


@dataclass(frozen=True, slots=True)
class WithPostprocessing:
    """A source of `webinfer.load`: a model, and nodes that a task puts behind it.

    `extend` changes the graph that was read, always in the same way: plans are stored under its `name`. The plan may
    lie in the memory of `shared_memory_with`, a session of another model of the task. With `reads_metadata` the graph
    knows the format and the metadata of its file, which is read a second time for that.
    """

    model: Any
    name: str = ""
    extend: Callable[[Graph], None] = lambda graph: None
    shared_memory_with: Any = None
    reads_metadata: bool = False


def entry_name(sha256: str, extension: str = "") -> str:
    """The name under which the plan of a model, with an extension of this name, is stored."""
    return f"plan-{sha256[:32]}{extension and '-'}{extension}"


async def open_graph(
    parts: Sequence[memoryview], name: str, host: Host, read: Callable[[], Graph], order: Collection[str],
    extension: str = "", sha256: str = "",
) -> tuple[Graph, PlanEntry | None]:  # fmt: skip
    """The graph that `read` returns, and its entry in the plan cache; None if no backend of the order stores plans.

    `parts` are the bytes of the model's files, `sha256` is theirs where it is known.

    If a plan of this very engine was found, the graph's nodes are read on first use. Of a model whose sizes are open
    there is an `OpenGraph`.
    """
    storing = registry.storing_plans(order)
    custom = sys.modules.get("webinfer.ops.custom")  # what the caller registered may be another thing next time
    large = not sha256 and sum(part.nbytes for part in parts) > MAX_MODEL_BYTES
    if large or not storing or (custom is not None and custom.CUSTOM) or not (identity := host.identity()):
        return read(), None
    entry = PlanEntry(entry_name(sha256 or await _hashed(parts, host), extension))
    for row in storing:
        found = await host.recall_bytes(entry.name + row.plan_suffix)
        plan = registry.open_backend(row.name).deserialize(found, identity)
        whose = "the" if plan else "another engine’s" if found else "no"
        debug(1, f"{name}: {whose} plan of an earlier visit for {row.name}")
        if plan is not None:
            entry.plans.append(plan)
            if registry.AUTO not in order:  # which compiles for all of them
                break
    if entry.plans:
        return _deferred(name, entry.plans[0], read), entry
    try:
        graph = read()
    except OpenSizes as error:
        return OpenGraph(name, error.inputs, error.outputs, ()), entry
    return graph, None if graph.states or graph.outer else entry  # which a plan does not say


async def _hashed(parts: Sequence[memoryview], host: Host) -> str:
    if len(parts) == 1:
        return await host.sha256(parts[0])
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _deferred(name: str, plan: StoredPlan | StoredRegimes, read: Callable[[], Graph]) -> Graph:
    inputs, outputs = ([Value(*end) for end in ends] for ends in (plan.inputs, plan.outputs))
    is_open = isinstance(plan, StoredRegimes)
    graph = OpenGraph(name, inputs, outputs, ()) if is_open else DeferredGraph(name, inputs, outputs, read)
    graph.notes += plan.notes
    return graph
