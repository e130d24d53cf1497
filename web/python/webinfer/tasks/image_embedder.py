"""What pictures look like, as vectors: pictures of alike things have vectors that point the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import mul
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import Pixels
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.tasks.base import PictureTask, ResultField, ResultSchema
from webinfer.tasks.crop import Crop
from webinfer.tasks.pixels import is_picture, opened, pixels_of, real, take_pixels
from webinfer.tensor import Tensor

EMBEDDING = "embedding"
CLASSIFIERS = ("conv2d", "matmul")  # operators of a classifier's last layer
PASSED = (
    "softmax",
    "log_softmax",
    "sigmoid",
    "reshape",
    "dequantize",
    "quantize",
    "requantize",
    "cast",
    "add",
    "squeeze",
)
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class ImageEmbedding:
    """The embedding of a picture: a vector of length 1."""

    values: tuple[float, ...]

    def similarity(self, other: ImageEmbedding) -> float:
        """The cosine similarity of two pictures, -1..1."""
        return float(sum(map(mul, self.values, other.values)))


def with_embedding(model: Any, pixels: Pixels, features: bool) -> WithPostprocessing:
    """The model with pixels of 0..255 as its input and EMBEDDING [1, numbers] as its only output, of length 1.

    It is the model's first output if that is `features`, else what the last layer of a classifier reads.
    """

    def extend(graph: Graph) -> None:
        builder = GraphBuilder(graph.name)
        picture = len(graph.inputs) == 1 and is_picture(graph.inputs[0].type)
        found = (graph.outputs[0] if features else _before_classes(graph)) if picture else None
        if found is None:
            raise ModelFormatError(
                f"{graph.name!r} has no layer of classes behind its features: inputs "
                f"{[v.type.shape for v in graph.inputs]}, outputs {[v.type.shape for v in graph.outputs]}; needed is "
                "an image classification model, or features=True for one that puts out features"
            )
        take_pixels(graph, pixels)
        (x,) = real(builder, [found])
        if x.type.rank == 4:
            x = builder.node("reduce_mean", x, axes=(1, 2), keep_dims=False)
        x = builder.node("reshape", x, shape=(1, x.type.size))
        norm = builder.node("maximum", builder.node("reduce_l2", x, axes=(1,), keep_dims=True), TINY)
        builder.output(builder.node("div", x, norm), EMBEDDING)
        builder.extend(graph)

    return WithPostprocessing(model, f"{EMBEDDING}{'out' if features else ''}of{pixels}", extend)


def _before_classes(graph: Graph) -> Value | None:
    """What the layer reads that makes a number for each class; None if there is no such layer at the end."""
    writers = {value: node for node in graph.nodes for value in node.outputs}
    value = graph.outputs[0]
    while (node := writers.get(value)) is not None:
        if node.op.name in CLASSIFIERS:
            return node.required_input(0)
        before = next((v for v in node.inputs if v in writers), None)
        if node.op.name not in PASSED or before is None:
            return None
        value = before
    return None


class ImageEmbedder(PictureTask[ImageEmbedding]):
    """Computes embeddings of pictures. Create one with `await ImageEmbedder.create()`."""

    name = "image-embedding"
    extension = EMBEDDING
    result = ResultSchema("vectors", "pictures", "Pictures", "Picture", (ResultField("values", "vector", ""),))

    @classmethod
    async def create(
        cls,
        model: Any = "mobilenet_v2_100_224_quant",
        *,
        features: bool = False,
        pixels: Pixels | None = None,
        keep_aspect: bool = False,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> ImageEmbedder:
        """Creates an embedder. `model` is a known name, bytes, a path or a URL of an image classification model,
        whose features before the last layer make the vector; with `features` of a model that puts out features.

        `pixels` say what a float model wants for a picture's colours; None: as a known model does, else -1..1. The
        picture is stretched to the model's input, or with `keep_aspect` fitted into it.

        Raises:  what `webinfer.load` raises; ModelFormatError if the model is of another kind
        """
        source = with_embedding(model, pixels_of(model, pixels), bool(features))
        return cls(*await opened(source, keep_aspect, backend, progress, host))

    async def embed(self, image: Any) -> ImageEmbedding:
        """The vector of an image, which is anything that `webinfer.tasks.image.read_image` accepts.

        Raises:  InputError if it is none of these or has no pixels
        """
        (found,) = await self.run(image)
        return found

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[ImageEmbedding]:
        """The vector of the region that the model saw."""
        return [ImageEmbedding(tuple(outputs[EMBEDDING].tolist()))]
