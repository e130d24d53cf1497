"""What is different between two models, by what their files say: operators, the ends of the graph, weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from webinfer.importers.core.outline import Outline, OutlineNode, StoredWeight
from webinfer.lazy_dataclass import dataclass
from webinfer.page.model_graph import plain_bytes

MAX_SHOWN = 256 << 20  # bytes of weights of two models that are compared number by number
MAX_ALIGNED = 30_000_000  # pairs of operators that are looked at by order; longer graphs are matched by name only
Pairs = Mapping[int, int]  # operators of the first model with those of the second


@dataclass(frozen=True, slots=True)
class Change:
    """What is different between an operator and its counterpart: `kind` is operator, attribute, input, or result."""

    kind: str
    name: str
    was: str
    now: str


def matched(one: Outline, other: Outline) -> Pairs:
    """The operators that correspond: by name or by order, whichever leaves fewer differences."""
    found = [_by_name(one, other)]
    if len(one.nodes) * len(other.nodes) <= MAX_ALIGNED:
        found.append(_by_order(one, other))
    return min(found, key=lambda pairs: _cost(one, other, pairs))


def node_differences(one: Outline, other: Outline, pairs: Pairs) -> dict[str, Any]:
    """Numbers of operators that were removed, added, or changed, and what changed of each."""
    changed = []
    makers = _makers(one), _makers(other)
    for was, now in pairs.items():
        if changes := list(_changes(one, other, was, now, pairs, makers)):
            rows = [{"kind": c.kind, "name": c.name, "was": c.was, "now": c.now} for c in changes]
            changed.append({"node": was, "other": now, "changes": rows})
    partners = set(pairs.values())
    return {
        "same": len(pairs) - len(changed),
        "removed": [i for i in range(len(one.nodes)) if i not in pairs],
        "added": [i for i in range(len(other.nodes)) if i not in partners],
        "changed": changed,
    }


def weight_pairs(one: Outline, other: Outline, pairs: Pairs) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Keys of weights that correspond, of those that only the first model has, and only the second.

    The inputs of operators that correspond do, then weights of equal names.
    """
    found = dict[str, str]()
    taken = set[str]()

    def pair(was: str, now: str) -> None:
        if was not in found and now not in taken:
            found[was] = now
            taken.add(now)

    for first, second in pairs.items():
        for was, now in zip(one.nodes[first].inputs, other.nodes[second].inputs, strict=False):
            if _weighs(one, was) and _weighs(other, now):
                pair(was, now)
    names = {value.name: key for key, value in other.values.items() if value.bytes and key not in taken}
    own = [key for key, value in one.values.items() if value.bytes]
    for key in own:
        if key not in found and (same := names.get(one.values[key].name)):
            pair(key, same)
    lost = [key for key in own if key not in found]
    return list(found.items()), lost, [key for key, value in other.values.items() if value.bytes and key not in taken]


def weight_differences(
    one: Outline,
    other: Outline,
    pairs: Pairs,
    stored: Mapping[str, StoredWeight],
    other_stored: Mapping[str, StoredWeight],
) -> tuple[dict[str, Any], list[memoryview]]:
    """Weights that differ, were removed or added, and how many are the same or `unread`.

    The bytes of those that differ follow in pairs as long as they are not too many: their row has `dtypes` then.
    """
    both, removed, added = weight_pairs(one, other, pairs)
    rows, buffers, left, same, unread = list[dict[str, Any]](), list[memoryview](), MAX_SHOWN, 0, 0
    for was, now in both:
        first, second = stored.get(was), other_stored.get(now)
        if first is None or second is None:
            unread += 1
            continue
        types = one.values[was].type, other.values[now].type
        size = len(first.data) + len(second.data)
        if types[0] == types[1] and bytes(first.data) == bytes(second.data):
            same += 1
            continue
        row: dict[str, Any] = {"name": one.values[was].name, "was": types[0], "now": types[1], "dtypes": None}
        if first.dtype is not None and second.dtype is not None and size <= left:
            left -= size
            (kind, a), (other_kind, b) = plain_bytes(first.data, first.dtype), plain_bytes(second.data, second.dtype)
            row["dtypes"] = [kind, other_kind]
            buffers += [memoryview(bytes(a)), memoryview(bytes(b))]
        rows.append(row)
    told = {"same": same, "unread": unread, "differ": rows}
    told |= {"removed": [one.values[key].name for key in removed], "added": [other.values[key].name for key in added]}
    return told, buffers


def _weighs(outline: Outline, key: str) -> bool:
    return bool(key) and key in outline.values and outline.values[key].bytes > 0


def _by_name(one: Outline, other: Outline) -> Pairs:
    """Operators whose names are unique in both models and equal, and whose kinds are."""
    counts = [Counter(node.name for node in outline.nodes) for outline in (one, other)]
    places = {node.name: i for i, node in enumerate(other.nodes)}
    found = {}
    for i, node in enumerate(one.nodes):
        if node.name and all(count[node.name] == 1 for count in counts):
            found[i] = places[node.name]
    return found


def _by_order(one: Outline, other: Outline) -> Pairs:
    """The longest runs of operators that look alike, then of those of a kind between them."""
    found = dict[int, int]()
    first, second = ([_look(outline, node) for node in outline.nodes] for outline in (one, other))
    for tag, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag == "equal":
            found |= zip(range(a, b), range(c, d), strict=True)
        elif tag == "replace":
            was, now = [node.op for node in one.nodes[a:b]], [node.op for node in other.nodes[c:d]]
            for block in SequenceMatcher(None, was, now, autojunk=False).get_matching_blocks():
                found |= {a + block.a + i: c + block.b + i for i in range(block.size)}
    return found


def _look(outline: Outline, node: OutlineNode) -> tuple[Any, ...]:
    """What an operator looks like without its name."""
    weights = tuple(outline.values[key].type for key in node.inputs if _weighs(outline, key))
    return node.op, weights, tuple(sorted(node.attributes.items()))


def _cost(one: Outline, other: Outline, pairs: Pairs) -> int:
    alone = len(one.nodes) + len(other.nodes) - 2 * len(pairs)
    makers = _makers(one), _makers(other)
    return alone + sum(any(_changes(one, other, was, now, pairs, makers)) for was, now in pairs.items())


def _makers(outline: Outline) -> dict[str, int]:
    return {key: i for i, node in enumerate(outline.nodes) for key in node.outputs}


def _changes(
    one: Outline, other: Outline, was: int, now: int, pairs: Pairs, makers: Sequence[Mapping[str, int]]
) -> Iterator[Change]:
    first, second = one.nodes[was], other.nodes[now]
    if first.op != second.op:
        yield Change("operator", "", first.op, second.op)
    for name in sorted({*first.attributes, *second.attributes}):
        before, after = first.attributes.get(name, ""), second.attributes.get(name, "")
        if before != after:
            yield Change("attribute", name, before, after)
    for place in range(max(len(first.inputs), len(second.inputs))):
        keys = [node.inputs[place] if place < len(node.inputs) else "" for node in (first, second)]
        told = _told(one, keys[0], makers[0], pairs), _told(other, keys[1], makers[1], None)
        if told[0][0] != told[1][0]:
            yield Change("input", str(place), told[0][1], told[1][1])
    types = [_type(outline, node) for outline, node in ((one, first), (other, second))]
    if all(types) and types[0] != types[1]:
        yield Change("result", "", *types)


def _type(outline: Outline, node: OutlineNode) -> str:
    key = next(iter(node.outputs), "")
    return outline.values[key].type if key in outline.values else ""


def _told(outline: Outline, key: str, makers: Mapping[str, int], pairs: Pairs | None) -> tuple[Any, str]:
    """What an input comes from, to compare and to show. With `pairs`, an operator is told by its counterpart."""
    if not key:
        return (), ""
    if key in makers:
        node = makers[key]
        place = list(outline.nodes[node].outputs).index(key)
        return (node if pairs is None else pairs.get(node, -1), place), outline.nodes[node].name or outline.nodes[
            node
        ].op
    value = outline.values[key]
    if value.bytes:
        return value.type, value.type
    return "input", value.name
