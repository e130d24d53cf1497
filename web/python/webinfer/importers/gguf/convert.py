"""A GGUF file as a graph of one part, as `webinfer.load` takes it; `webinfer.language` makes more of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph
from webinfer.importers.core.outline import Outline, OutlineNode, OutlineValue, StoredWeight, type_text
from webinfer.importers.gguf.architecture import ADJACENT, architecture_of
from webinfer.importers.gguf.container import read_file
from webinfer.importers.gguf.decoder import decoder_graph
from webinfer.importers.gguf.shards import read_files

CONTEXT = 2048  # positions of the cache, unless the model has fewer
LANES = 8
CONVERTERS = dict.fromkeys(ADJACENT, decoder_graph)  # by architecture; a file lists no operators


def read_gguf(
    data: memoryview, name: str, shapes: Mapping[str, Sequence[int]], external: Mapping[str, memoryview] | None = None
) -> Graph:
    """The graph that reads one token per run. `external`: the other files of a model in several.

    Raises:  ModelFormatError; UnsupportedOpError naming the architecture or what else is not read; LimitError
    """
    file = read_files(data, name, external)
    model = architecture_of(file)
    return decoder_graph(file, model, (1,), rounded_up(min(CONTEXT, model.context)))


def rounded_up(positions: int) -> int:
    """The capacity of a cache for so many positions."""
    return -(-positions // LANES) * LANES


def outline(data: memoryview, name: str) -> Outline:
    """The file's facts and its tensors, as what one operator takes: the file does not say how they are used.

    Raises:  ModelFormatError; LimitError
    """
    file, found = read_file(data, name), Outline()
    for key, value in file.facts.items():
        found.facts[key] = f"{len(value)} items" if isinstance(value, list) else str(value)[:200]
    for tensor in file.tensors.values():
        type = type_text(tensor.type_name, tensor.sizes[::-1])
        found.values[tensor.name] = OutlineValue(tensor.name, type, len(tensor.data))
    tensors, tokens = list(found.values), file.facts.get("tokenizer.ggml.tokens")
    vocabulary = str(len(tokens)) if isinstance(tokens, list) else "tokens"
    for end, key, type in ((found.inputs, " tokens", "I32 [1]"), (found.outputs, " logits", f"F32 [1, {vocabulary}]")):
        found.values[key] = OutlineValue(key.strip(), type)  # a space: no tensor is called so
        end.append(key)
    takes = [*found.inputs, *tensors]
    found.nodes = [OutlineNode(str(file.facts.get("general.architecture")), name, takes, found.outputs, {}, 0)]
    return found


def weights(data: memoryview, name: str, files: Mapping[str, memoryview]) -> dict[str, StoredWeight]:
    """The file's tensors by name; those in blocks have no element type.

    Raises:  ModelFormatError; LimitError
    """
    kinds = {"F32": DType.FLOAT32, "F16": DType.FLOAT16, "BF16": DType.BFLOAT16}
    return {
        key: StoredWeight(one.data, kinds.get(one.type_name))
        for key, one in read_file(data, name).tensors.items()
        if isinstance(one.data, memoryview)
    }
