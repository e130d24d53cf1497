"""What a picture shows, of labels that the caller makes up: a picture and texts as vectors that are compared."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from webinfer.authoring.builder import GraphBuilder
from webinfer.dtypes import DType
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.importers import read_model
from webinfer.importers.core.partial_evaluation import OpenSizes
from webinfer.models.layouts import Pixels
from webinfer.session.loading import ModelBytes, load, opened
from webinfer.session.options import real_number, whole_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import PictureTask
from webinfer.tasks.candidates import RESULT, checked_labels, hypotheses, ranked, sigmoid, softmax
from webinfer.tasks.classifier import Category
from webinfer.tasks.crop import Crop, InputSpec, Region
from webinfer.tasks.image import read_image
from webinfer.tasks.model_folder import json_beside
from webinfer.tasks.picture_input import PictureFeeder, closed_on_error
from webinfer.tasks.pixels import is_picture, take_pixels
from webinfer.tasks.pixels import opened as opened_pictures
from webinfer.tasks.scaled_picture import PictureScaler
from webinfer.tasks.token_inputs import IDS, LENGTHS, MASK, token_inputs
from webinfer.tasks.tokenizer_json import TokenizerJson, tokenizer_of
from webinfer.tensor import Tensor

PIXEL_VALUES, TEXT_VECTOR, PICTURE_VECTOR = "pixel_values", "text_embeds", "image_embeds"
TEXTS, LOGITS = "texts", "logits_per_image"
POOLED = "pooler_output"  # of the halves of SigLIP
CAPACITY = 256  # labels that a plan compares at once; more are compared in turns
SCALE = 100.0  # of the halves of CLIP, whose training ends at it
SIDE, LONGEST, LONGEST_SIGLIP = 224, 77, 64  # pixels, tokens
MEAN, DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # of CLIP
MAX_SCALE = 1e4
CUBIC_FILTER = 3  # Pillow's number
TINY = 1e-12


def pruned(graph: Graph, outputs: Sequence[Value], inputs: Sequence[Value]) -> None:
    """Leaves of a graph what these outputs need; these inputs are its only ones."""
    needed, kept = {*outputs}, []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            kept.append(node)
            needed.update(value for value in node.inputs if value is not None)
    graph.nodes, graph.outputs, graph.inputs = kept[::-1], list(outputs), list(inputs)


def _refused(graph: Graph, needed: str) -> ModelFormatError:
    ends = ", ".join(f"{v.name} {list(v.type.shape)}" for v in (*graph.inputs, *graph.outputs))
    return ModelFormatError(f"{graph.name!r} does not compare pictures with texts: it has {ends}; needed are {needed}")


def with_text_vector(model: Any) -> WithPostprocessing:
    """The half of a model that reads texts: tokens in, TEXT_VECTOR [texts, numbers] out."""

    def extend(graph: Graph) -> None:
        outputs = {v.name: v for v in graph.outputs}
        vector = outputs.get(TEXT_VECTOR, outputs.get(POOLED))
        if vector is None or vector.type.rank != 2 or IDS not in (v.name for v in graph.inputs):
            raise _refused(graph, f"{IDS} and {TEXT_VECTOR}")
        pruned(graph, [vector], graph.inputs)  # a picture stays among them: it is asked for while sizes are open
        tail = GraphBuilder(graph.name)
        tail.output(vector, TEXT_VECTOR)
        tail.extend(graph)

    return WithPostprocessing(model, TEXT_VECTOR, extend)


def with_comparison(model: Any, pixels: Pixels, scale: float, bias: float, numbers: int) -> WithPostprocessing:
    """The half of a model that sees: PICTURE and the vectors of TEXTS in, LOGITS [1, texts] out.

    A whole model compares them as it does; of a half that sees alone, both are made of length 1, and their product is
    multiplied by `scale`, and `bias` added. `numbers` are those of a text's vector.
    """

    def extend(graph: Graph) -> None:
        outputs, inputs = ({v.name: v for v in values} for values in (graph.outputs, graph.inputs))
        picture, whole = inputs.get(PIXEL_VALUES), {LOGITS, TEXT_VECTOR} <= outputs.keys()
        vector = outputs.get(PICTURE_VECTOR, outputs.get(POOLED))
        if picture is None or not is_picture(picture.type) or (vector is None and not whole):
            raise _refused(graph, f"{PIXEL_VALUES}, and {LOGITS} with {TEXT_VECTOR}, or {PICTURE_VECTOR}")
        tail = GraphBuilder(graph.name)
        if whole:
            texts = tail.input(TEXTS, outputs[TEXT_VECTOR].type.shape)
            graph.replace(outputs[TEXT_VECTOR], texts)
            logits = outputs[LOGITS]
        else:
            assert vector is not None
            texts = tail.input(TEXTS, (CAPACITY, numbers))
            product = tail.node(
                "matmul", _of_length_1(tail, vector), tail.node("transpose", _of_length_1(tail, texts), perm=(1, 0))
            )
            logits = tail.node("linear", product, a=scale, b=bias)
        pruned(graph, [logits if whole else vector], [picture])  # type: ignore[list-item]
        take_pixels(graph, pixels)
        tail.output(logits, LOGITS)
        tail.extend(graph)

    return WithPostprocessing(model, f"{TEXTS}{numbers}at{scale:g}and{bias:g}of{pixels}", extend)


def _of_length_1(builder: GraphBuilder, x: Value) -> Value:
    norm = builder.node("maximum", builder.node("reduce_l2", x, axes=(1,), keep_dims=True), TINY)
    found: Value = builder.node("div", x, norm)
    return found


class PictureView(NamedTuple):
    """How a model wants its pictures, as preprocessor_config.json says it. Sizes are width and height in pixels."""

    shortest: int  # to which the shorter side is scaled; 0: both are
    size: tuple[int, int]  # to which both sides are scaled
    seen: tuple[int, int]  # of the middle, which the model sees
    resample: int
    pixels: Pixels

    @classmethod
    def of(cls, facts: Mapping[str, Any], shape: Sequence[int | str], siglip: bool) -> PictureView:
        """What the facts say of a model whose pictures have this shape; where they say nothing, CLIP's or SigLIP's.

        Raises:  InputError if they are of another kind
        """
        own = tuple(side for side in (shape[3], shape[2]) if isinstance(side, int))
        usual = min(own) if own else SIDE
        try:
            size = facts.get("size", {"height": usual, "width": usual} if siglip else usual)
            size = {"shortest_edge": size} if isinstance(size, int) else size
            shortest = int(size.get("shortest_edge", 0))
            both = (shortest, shortest) if shortest else (int(size["width"]), int(size["height"]))
            cut = facts.get("crop_size", shortest or size)
            cut = {"height": cut, "width": cut} if isinstance(cut, int) else cut
            cuts = facts.get("do_center_crop", shortest > 0)
            seen = (int(cut["width"]), int(cut["height"])) if cuts else both
            unit = float(facts.get("rescale_factor", 1 / 255)) if facts.get("do_rescale", True) else 1.0
            usual_mean, usual_deviation = ((0.5,) * 3, (0.5,) * 3) if siglip else (MEAN, DEVIATION)
            mean, deviation = facts.get("image_mean", usual_mean), facts.get("image_std", usual_deviation)
            if not facts.get("do_normalize", True):
                mean, deviation = (0.0,) * 3, (1.0,) * 3
            pixels = Pixels(mean=_three(mean, unit), deviation=_three(deviation, unit))
            resample = int(facts.get("resample", CUBIC_FILTER))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"the preprocessor_config.json is not of pictures: {error!r}") from error
        return cls(shortest, both, own if len(own) == 2 else seen, resample, pixels)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the picture as the model takes it, with channels in planes."""
        return 1, 3, self.seen[1], self.seen[0]

    def scaled_size(self, width: int, height: int) -> tuple[int, int]:
        """What a picture of this size is scaled to."""
        if not self.shortest:
            return self.size
        shorter = min(width, height)
        return self.shortest * width // shorter, self.shortest * height // shorter


def _three(values: Sequence[float], unit: float) -> tuple[float, float, float]:
    red, green, blue = (float(value) / unit for value in values)
    return red, green, blue


class _Halves(NamedTuple):
    """The bytes of both halves of a model, which may be one file, and what they want."""

    sees: ModelBytes
    reads: ModelBytes
    view: PictureView
    siglip: bool  # it takes no mask: texts are filled up to their greatest length
    longest: int  # tokens of a text
    shapes: Mapping[str, Sequence[int]] | None  # that the half that sees is bound to; None: all its sizes are fixed

    @classmethod
    async def of(
        cls, model: Any, text_model: Any, length: int | None, facts: Mapping[str, Any], host: Host,
        progress: Progress | None,
    ) -> _Halves:  # fmt: skip
        """Reads them.

        Raises:  ModelFormatError if one lacks its input; what `webinfer.load` raises
        """
        sees = await opened(model, host, progress)
        reads = sees if text_model is None else await opened(text_model, host, progress)
        inputs, read = declared_inputs(sees), declared_inputs(reads)
        if PIXEL_VALUES not in inputs or IDS not in read:
            raise ModelFormatError(
                f"{sees.name!r} does not compare pictures with texts: its inputs are {inputs}, and {read} of what "
                f"reads; needed are {PIXEL_VALUES} and {IDS}"
            )
        siglip = MASK not in read
        view = PictureView.of(facts, inputs[PIXEL_VALUES], siglip)
        longest = length or (LONGEST_SIGLIP if siglip else LONGEST)
        shapes = {name: (CAPACITY, longest) for name in (IDS, MASK) if name in inputs} | {PIXEL_VALUES: view.shape}
        is_open = any(isinstance(size, str) for sizes in inputs.values() for size in sizes)
        return cls(sees, reads, view, siglip, longest, shapes if is_open else None)


class _Texts:
    """Vectors of texts, each read once."""

    def __init__(self, session: Session, tokenizer: TokenizerJson, both: _Halves) -> None:
        self.session, self._tokenizer = session, tokenizer
        self._infos = [info for info in session.inputs if info.name in (IDS, MASK)]
        batch, length = next(info.shape for info in self._infos if info.name == IDS)
        self._batch = batch if isinstance(batch, int) else 1
        shorter = () if both.siglip else tuple(n for n in LENGTHS if n < both.longest)
        self._lengths = (length,) if isinstance(length, int) else (*shorter, both.longest)
        empty = Tensor(array("f", bytes(4 * math.prod(both.view.shape))), both.view.shape, DType.FLOAT32)
        sees = any(info.name == PIXEL_VALUES for info in session.inputs)
        self._picture = {PIXEL_VALUES: empty} if sees else {}
        self._kept: dict[str, Sequence[float]] = {}

    async def vectors(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """The vector of each text."""
        for text in texts:
            if text not in self._kept:
                ids, _ = self._tokenizer.encode(text, self._lengths[-1])
                length = next(n for n in self._lengths if len(ids) <= n)
                given = token_inputs(self._infos, [ids], self._tokenizer.padding, self._batch, length)
                found = (await self.session.run({**given, **self._picture}))[TEXT_VECTOR].tolist()
                self._kept[text] = found[: len(found) // self._batch]
        return [self._kept[text] for text in texts]


class ZeroShotImageClassifier(PictureTask[Category]):
    """Scores your labels for a picture. Create one with `await ZeroShotImageClassifier.create(model, …)`."""

    name = "zero-shot-image-classification"
    extension = TEXTS
    result = RESULT

    def __init__(
        self, session: Session, spec: InputSpec, feeder: PictureFeeder, texts: _Texts, view: PictureView,
        multi_label: bool,
    ) -> None:  # fmt: skip
        super().__init__(session, spec, feeder)
        self._texts, self._view, self._scaler = texts, view, PictureScaler(session.host, view.resample)
        self._compared: dict[str, Tensor] = {}
        self.candidate_labels: Sequence[str] = ()
        self.hypothesis_template, self.multi_label = "{}", multi_label

    @classmethod
    async def create(
        cls,
        model: Any,
        *,
        candidate_labels: Sequence[str] | str = (),
        hypothesis_template: str = "This is a photo of {}.",
        text_model: Any = None,
        tokenizer: bytes | None = None,
        preprocessor: bytes | Mapping[str, Any] | None = None,
        multi_label: bool | None = None,
        length: int | None = None,
        scale: float = SCALE,
        bias: float = 0.0,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> ZeroShotImageClassifier:
        """Creates a classifier. `model` is bytes, a path or a URL of a CLIP or SigLIP as Hugging Face's Optimum
        exports it, with `input_ids` and `pixel_values` in and `logits_per_image` and `text_embeds` out.

        Or it is the half that sees (`image_embeds` out), and `text_model` the half that reads (`text_embeds` out); then
        `scale` and `bias` are the model's own: CLIP's are 100 and 0.

        `tokenizer` is the content of the model's tokenizer.json, `preprocessor` of its preprocessor_config.json. Left
        out, they are read beside the model, or in the folder above; without the second, pictures are made as for CLIP.

        Each label is put into the template, in place of `{}`. Scores of labels sum to 1; with `multi_label`, which
        SigLIP sets by itself, each is judged on its own. `length` is the most tokens of a text (CLIP 77, SigLIP 64).

        Raises:  InputError if an option is out of range or there is no tokenizer; UnsupportedOpError if that is of
                 another kind; ModelFormatError if the model is; what `webinfer.load` raises
        """
        host = host or current()
        scale, bias = (real_number("scale", value, MAX_SCALE, low=-MAX_SCALE) for value in (scale, bias))
        length = None if length is None else whole_number("length", length, 2, 512)
        read = await tokenizer_of(model if text_model is None else text_model, tokenizer, host)
        facts = await json_beside(model, "preprocessor_config.json", preprocessor, host)
        both = await _Halves.of(model, text_model, length, facts, host, progress)
        session = await load(with_text_vector(again(both.reads)), backend=backend, progress=progress, host=host)
        with closed_on_error(session):
            texts = _Texts(session, read, both)
            (first,) = await texts.vectors([""])
            comparing = with_comparison(again(both.sees), both.view.pixels, scale, bias, len(first))
            made = await opened_pictures(comparing, False, backend, progress, host, both.shapes)
        with closed_on_error(session), closed_on_error(made[0]):
            task = cls(*made, texts, both.view, both.siglip if multi_label is None else bool(multi_label))
            task.candidate_labels, task.hypothesis_template = checked_labels(candidate_labels), hypothesis_template
            if task.candidate_labels:
                await texts.vectors(hypotheses(task.candidate_labels, hypothesis_template))
        return task

    async def classify(
        self, image: Any, candidate_labels: Sequence[str] | str | None = None, hypothesis_template: str | None = None
    ) -> list[Category]:
        """The labels, best first; by default the labels given to `create`.

        The image is anything `webinfer.tasks.image.read_image` takes.

        Raises:  InputError if it is none of these or has no pixels, or if there are no labels
        """
        return await self.run(image, candidate_labels=candidate_labels, hypothesis_template=hypothesis_template)

    async def run(
        self, image: Any, region: Region | None = None, *, candidate_labels: Sequence[str] | str | None = None,
        hypothesis_template: str | None = None,
    ) -> list[Category]:  # fmt: skip
        """As `classify`, of a region of an image; None: of all of it."""
        labels = self.candidate_labels if candidate_labels is None else checked_labels(candidate_labels)
        texts = hypotheses(labels, self.hypothesis_template if hypothesis_template is None else hypothesis_template)
        vectors = await self._texts.vectors(texts)
        picture = read_image(image, self.session.host)
        if region is None:
            size = self._view.scaled_size(picture.width, picture.height)
            picture = await self._scaler.scaled(picture, size, self._view.seen)
        logits = list[float]()
        room, numbers = self.session.inputs[1].shape
        for start in range(0, len(vectors), room):
            rows = array("f", bytes(4 * room * numbers))
            for row, vector in enumerate(vectors[start : start + room]):
                rows[row * numbers : (row + 1) * numbers] = array("f", vector)
            self._compared = {TEXTS: Tensor(rows, (room, numbers), DType.FLOAT32)}
            logits += [one.score for one in await super().run(picture, region)]
        scores = (sigmoid if self.multi_label else softmax)(logits[: len(labels)])
        return ranked(labels, scores)

    def more_inputs(self, crop: Crop) -> Mapping[str, Any]:
        """The vectors of the texts."""
        return self._compared

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[Category]:
        """The logit of each text."""
        return [Category(i, "", logit) for i, logit in enumerate(outputs[LOGITS].tolist())]

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        super().close()
        self._texts.session.close()
        self._scaler.close()


def again(model: ModelBytes) -> Any:
    """What `load` takes to read the same bytes once more."""
    return {f"{model.name}.onnx": model.data, **model.files} if model.files else model.data


def declared_inputs(model: ModelBytes) -> dict[str, tuple[int | str, ...]]:
    """The shapes of a model's inputs by name, with names in place of open sizes."""
    try:
        values: Sequence[Value] = read_model(model.data, model.name, files=model.files).inputs
    except OpenSizes as error:
        values = error.inputs
    return {value.name: tuple(value.type.shape) for value in values}
