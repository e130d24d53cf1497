from webinfer.graph.ir import Graph, TensorType, Value, apply
from webinfer.lowering.aliasing import find_aliases
from webinfer.ops.elementwise import ABS, UnaryAttrs
from webinfer.ops.movement import CONCAT, RESHAPE, ConcatAttrs, ReshapeAttrs


def sizes(graph: Graph) -> dict[Value, int]:
    return {v: 4 for node in graph.nodes for v in node.outputs} | dict.fromkeys(graph.inputs, 4)


def two_heads(rows: int) -> Graph:
    """Two reshaped results joined along the rows, as in a detector's heads."""
    inputs, parts, nodes = [], [], []
    for i, height in enumerate((rows, 8)):
        x = Value(f"x{i}", TensorType((1, height, 4)))
        computed = apply(ABS, [x], UnaryAttrs())
        flat = apply(RESHAPE, [computed.output], ReshapeAttrs((1, height * 2, 2)))
        inputs.append(x)
        parts.append(flat.output)
        nodes += [computed, flat]
    joined = apply(CONCAT, parts, ConcatAttrs(1))
    return Graph("heads", inputs, [joined.output], [*nodes, joined])


def test_parts_of_a_concat_are_computed_inside_the_result() -> None:
    graph = two_heads(rows=4)
    aliases = find_aliases(graph, sizes(graph))
    joined = graph.outputs[0]
    assert aliases[graph.nodes[0].output] == (joined, 0)
    assert aliases[graph.nodes[2].output] == (joined, 4 * 4 * 4)


def test_an_unaligned_part_keeps_its_own_bytes() -> None:
    graph = two_heads(rows=4)
    graph.nodes[-1].inputs.reverse()
    odd = Value("odd", TensorType((1, 3, 2)))
    joined = apply(CONCAT, [odd, graph.nodes[3].output], ConcatAttrs(1))
    aliases = find_aliases(
        Graph("odd", [odd], [joined.output], [*graph.nodes[:4], joined]), sizes(graph) | {joined.output: 4, odd: 4}
    )
    assert aliases[odd] == (joined.output, 0)
    assert aliases.get(graph.nodes[2].output, (None, 0))[0] is not joined.output


def test_a_part_that_is_used_twice_is_copied() -> None:
    x = Value("x", TensorType((4, 4)))
    computed = apply(ABS, [x], UnaryAttrs())
    joined = apply(CONCAT, [computed.output, computed.output], ConcatAttrs(0))
    graph = Graph("twice", [x], [joined.output], [computed, joined])
    assert computed.output not in find_aliases(graph, sizes(graph))


def test_a_concat_of_inner_axes_is_copied() -> None:
    x = Value("x", TensorType((4, 4)))
    computed = apply(ABS, [x], UnaryAttrs())
    joined = apply(CONCAT, [computed.output, x], ConcatAttrs(1))
    graph = Graph("inner", [x], [joined.output], [computed, joined])
    assert find_aliases(graph, sizes(graph)) == {}


def test_a_chain_of_reshapes_is_one_block() -> None:
    x = Value("x", TensorType((4, 4)))
    computed = apply(ABS, [x], UnaryAttrs())
    first = apply(RESHAPE, [computed.output], ReshapeAttrs((2, 8)))
    second = apply(RESHAPE, [first.output], ReshapeAttrs((16,)))
    graph = Graph("chain", [x], [second.output], [computed, first, second])
    owners = {owner for owner, _ in find_aliases(graph, sizes(graph)).values()}
    assert owners == {second.output}
