"""The order in which a graph's nodes are converted: what the outputs need, loops of the first generation as frames.

A loop's nodes lie between its Enter and Exit nodes. They form a frame of their own, which its Exit nodes wait for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from webinfer.graph.printer import safe_name
from webinfer.importers.core.limits import MAX_DEPTH, within
from webinfer.importers.tfjs.model import GraphInfo, NodeInfo, damaged
from webinfer.lazy_dataclass import dataclass

Side = tuple[str, bool]  # the key of a condition, and which of its two ways
MAX_SIDES = 64


@dataclass(slots=True)
class Frame:
    """The nodes of one loop in order, or of the graph outside of loops."""

    nodes: list[NodeInfo] = field(default_factory=list)
    merges: list[NodeInfo] = field(default_factory=list)
    condition: list[NodeInfo] = field(default_factory=list)  # of the nodes: those that LoopCond needs, itself last


@dataclass(slots=True)
class Order:
    """A graph in order: frames by path, the frame that each Exit closes, and the sides of branches of each key."""

    frames: dict[tuple[str, ...], Frame]
    exits: dict[str, tuple[str, ...]]
    sides: dict[str, frozenset[Side]]


def owner(key: str, nodes: Mapping[str, NodeInfo]) -> str:
    """The name of the node whose result a key is."""
    return key if key in nodes else key.rpartition(":")[0]


def _behind(node: NodeInfo, nodes: Mapping[str, NodeInfo]) -> list[str]:
    """The nodes that must come before a node; the way back of a loop is left out."""
    found = [owner(key, nodes) for key in node.inputs]
    if node.op == "Merge":
        found = [name for name in found if nodes[name].op != "NextIteration"]
    return found


def in_order(starts: Iterable[str], before: Mapping[str, list[str]]) -> list[str]:
    """All that the starts need, each after what it needs itself.

    Raises:  ModelFormatError naming a node that needs itself
    """
    done: dict[str, bool] = {}  # False while a node waits for others
    order = []
    waiting = [(name, False) for name in starts]
    while waiting:
        name, ready = waiting.pop()
        if ready:
            done[name] = True
            order.append(name)
        elif name not in done:
            done[name] = False
            waiting.append((name, True))
            for other in reversed(before[name]):
                if not done.get(other, True):
                    damaged(f"node {safe_name(other)} needs its own result")
                if other not in done:
                    waiting.append((other, False))
    return order


def order_of(graph: GraphInfo) -> Order:
    """The nodes that the graph's outputs need, in order."""
    nodes = graph.nodes
    roots = [owner(key, nodes) for _, key in graph.outputs]
    before = {name: _behind(node, nodes) for name, node in nodes.items()}
    needed, count = set(in_order(roots, before)), 0
    while count != len(needed):  # what goes round in a loop that is needed
        count = len(needed)
        back = {owner(key, nodes) for name in needed if nodes[name].op == "Merge" for key in nodes[name].inputs}
        roots += sorted(back - needed)
        needed = set(in_order(roots, before))
    for name in needed:  # what must have run before counts where it is needed anyway
        node = nodes[name]
        if node.op != "Merge":
            before[name] = before[name] + [c for c in node.controls if c in needed]
    order = in_order(roots, before)
    paths = _paths(order, nodes)
    exits = {name: path for name, path in paths.items() if nodes[name].op == "Exit"}
    if exits:
        for name in order:
            if paths[name] and nodes[name].op not in ("Enter", "Exit"):
                before.setdefault(_end(paths[name]), []).append(name)
        for name, path in exits.items():
            before[name] = [*before[name], _end(path)]
            before.setdefault(_end(path), [])
        order = [name for name in in_order(roots, before) if name in nodes]
    return Order(_frames(order, nodes, paths, before), exits, _sides(order, nodes))


def _end(path: tuple[str, ...]) -> str:
    """A name for the end of a frame, which no node has: names of nodes have no such sign."""
    return "\0" + "\0".join(path)


def _paths(order: list[str], nodes: Mapping[str, NodeInfo]) -> dict[str, tuple[str, ...]]:
    """The frames that each node lies in, outermost first. Of an Exit: those that it leaves."""
    deepest: dict[str, tuple[str, ...]] = {}  # path of each frame: constants enter from further out than the rest
    known = -1
    while known != sum(map(len, deepest.values())):
        known = sum(map(len, deepest.values()))
        paths = dict[str, tuple[str, ...]]()
        for name in order:
            node = nodes[name]
            behind = [n for n in (*(owner(key, nodes) for key in node.inputs), *node.controls) if n in paths]
            path = max((paths[n][:-1] if nodes[n].op == "Exit" else paths[n] for n in behind), key=len, default=())
            if node.op == "Enter":
                frame = str(node.attributes.get("frame_name"))
                path = max(deepest.get(frame, ()), (*path, frame), key=len)
                deepest[frame] = path
                within(f"node {safe_name(name)}: depth of loops", len(path), MAX_DEPTH, "use a simpler model")
            elif node.op == "Exit" and not path:
                damaged(f"node {safe_name(name)} (Exit) leaves no loop")
            paths[name] = path
    return paths


def _frames(
    order: list[str], nodes: Mapping[str, NodeInfo], paths: Mapping[str, tuple[str, ...]],
    before: Mapping[str, list[str]],
) -> dict[tuple[str, ...], Frame]:  # fmt: skip
    frames: dict[tuple[str, ...], Frame] = {(): Frame()}
    for name in order:
        node, path = nodes[name], paths[name]
        for length in range(len(path) + 1):
            frames.setdefault(path[:length], Frame())
        if node.op in ("Enter", "Exit"):  # what goes in and out is the outer frame's
            frames[path[:-1]].nodes.append(node)
        elif node.op == "Merge" and len(node.inputs) == 2 and any(_goes_round(key, nodes) for key in node.inputs):
            frames[path].merges.append(node)
        else:
            frames[path].nodes.append(node)
    for frame in frames.values():
        ends = [node.name for node in frame.nodes if node.op == "LoopCond"]
        asked = set(in_order(ends, before))
        frame.condition = [node for node in frame.nodes if node.name in asked]
        frame.nodes = [node for node in frame.nodes if node.name not in asked] if frame.merges else frame.nodes
    return frames


def _goes_round(key: str, nodes: Mapping[str, NodeInfo]) -> bool:
    return nodes[owner(key, nodes)].op == "NextIteration"


def _sides(order: list[str], nodes: Mapping[str, NodeInfo]) -> dict[str, frozenset[Side]]:
    """For each key that only one way of a condition computes: which conditions and ways."""
    sides = dict[str, frozenset[Side]]()
    for name in order:
        node = nodes[name]
        found = frozenset[Side]().union(*(sides.get(key, ()) for key in (*node.inputs, *node.controls)))
        if node.op == "Merge":
            found = frozenset(side for side in found if (side[0], not side[1]) not in found)
        within(f"node {safe_name(name)}: branches", len(found), MAX_SIDES, "use a simpler model")
        if found:
            sides.update(dict.fromkeys(node.outputs, found))
        if node.op == "Switch" and len(node.inputs) == 2 and nodes[owner(node.inputs[1], nodes)].op != "LoopCond":
            for key, way in zip(node.outputs, (False, True), strict=False):
                sides[key] = found | {(node.inputs[1], way)}
    return sides
