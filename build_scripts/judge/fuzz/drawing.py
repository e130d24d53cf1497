"""One random graph: nodes drawn from a format's rows, each tried by the runtime before the next one is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from build_scripts.judge.fuzz.draw import Draw
from build_scripts.judge.fuzz.graphs import FuzzGraph, FuzzNode, read_names

NODES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
NODE_ODDS = (1, 4, 4, 3, 3, 2, 2, 1, 1, 1)
SHOWN = 0.25  # odds that a value that another node reads is an output too
MOST_ELEMENTS = 20_000  # of a result
EVERYDAY = 0.4  # share of graphs of what networks are made of, on float32
ODD = 0.2  # share of the others in which NaN, infinities and extreme integers occur
TRIES = 3  # rows drawn for each node that is wanted


@dataclass
class Drawn:
    """A graph that the runtime runs node by node, and pieces that it refused. `failed` names rows that drew nothing."""

    seed: tuple[int, ...]
    graph: FuzzGraph
    refused: list[FuzzGraph] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def drawn(format: Any, seed: Sequence[int], only: Sequence[str] = (), open_sizes: bool = False) -> Drawn:
    """The graph of a seed. With `only`, nodes of these rows alone; with `open_sizes`, files name no sizes of inputs."""
    d = format.start(seed)
    d.open_sizes = open_sizes
    result = Drawn(tuple(seed), FuzzGraph(d.version))
    wanted, tries = d.pick(NODES, NODE_ODDS), 0
    everyday = not only and d.chance(EVERYDAY)
    names = list(only or (format.everyday if everyday else format.rows))
    d.odd = not everyday and d.chance(ODD)
    d.weights = {"float32": 1.0, **dict.fromkeys(d.weights, 0.02)} | {"float32": 1.0} if everyday else d.weights
    while len(result.graph.nodes) < wanted and tries < TRIES * wanted:
        tries += 1
        _add(format, d, str(d.pick(names)), result)
    outputs = _outputs(d, result.graph)
    result.graph = _graph(d, result.graph.nodes, result.graph.hidden, outputs)
    return result


def _add(format: Any, d: Draw, row: str, result: Drawn) -> None:
    """Draws a node and adds it if the runtime runs it."""
    d.fresh.clear()
    try:
        made = format.rows[row](d)
    except (ValueError, IndexError, ZeroDivisionError):  # nothing that is there suits the row
        result.failed.append(row)
        return
    nodes = made if isinstance(made, list) else [made] if made is not None else []
    if not nodes:
        return
    hidden = format.hidden(nodes)
    quants = {**d.quants}
    whole = FuzzGraph(
        d.version,
        tuple(nodes),
        {},
        {n: a for n, a in d.fresh.items() if n in d.stored},
        (),
        {},
        quants,
        frozenset(hidden),
    )
    piece = format.piece(whole, nodes, {**d.values, **d.fresh})
    try:
        arrays = dict(zip(piece.outputs, format.run_piece(piece), strict=True))
    except Exception as error:  # its errors have no common base but this
        if format.is_refusal(error):
            result.refused.append(piece)
            return
        raise
    if any(a.size > MOST_ELEMENTS or a.ndim > 6 for a in arrays.values()):
        return
    used = set().union(*map(read_names, nodes))
    d.values |= {name: a for name, a in d.fresh.items() if name in used} | arrays
    graph = result.graph
    result.graph = FuzzGraph(d.version, (*graph.nodes, *nodes), hidden=graph.hidden | hidden)


def _outputs(d: Draw, graph: FuzzGraph) -> tuple[str, ...]:
    """What nobody reads, and some of what is read."""
    read = set().union(*map(read_names, graph.nodes)) if graph.nodes else set()
    made = [name for node in graph.nodes for name in node.outputs if name and name not in graph.hidden]
    return tuple(name for name in made if name not in read or d.chance(SHOWN))


def _graph(d: Draw, nodes: tuple[FuzzNode, ...], hidden: frozenset[str], outputs: tuple[str, ...]) -> FuzzGraph:
    made = {name for node in nodes for name in node.outputs}
    given = {name: a for name, a in d.values.items() if name not in made}
    stored = {name: a for name, a in given.items() if name in d.stored}
    fed = {name: a for name, a in given.items() if name not in d.stored}
    return FuzzGraph(d.version, nodes, fed, stored, outputs, dict(d.values), dict(d.quants), hidden, d.open_sizes)
