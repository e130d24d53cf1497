"""Which of the caller's labels fits a text: a model of entailment reads the text, and a sentence made of each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Graph
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.session.loading import load
from webinfer.session.options import whole_number
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import Task
from webinfer.tasks.candidates import RESULT, checked_labels, hypotheses, ranked, softmax
from webinfer.tasks.classifier import Category
from webinfer.tasks.model_folder import json_beside
from webinfer.tasks.picture_input import closed_on_error
from webinfer.tasks.token_inputs import IDS, KINDS, LENGTHS, MASK, token_inputs
from webinfer.tasks.tokenizer_json import TokenizerJson, tokenizer_of

LOGITS = "logits"
LONGEST = 512  # tokens of a text and a sentence
ENTAILS = "entail"  # with which the class's name begins


def with_logits(model: Any) -> WithPostprocessing:
    """The model with the logits of its classes as its only output."""

    def extend(graph: Graph) -> None:
        names, types = {v.name for v in graph.inputs}, [v.type for v in graph.outputs]
        fits = {IDS, MASK} <= names <= {IDS, MASK, KINDS} and len(types) > 0 and types[0].dtype.is_float
        if not fits or types[0].rank != 2 or types[0].shape[1] < 2:
            raise ModelFormatError(
                f"{graph.name!r} does not compare texts: inputs {sorted(names)}, outputs {[t.shape for t in types]}; "
                f"needed are {IDS}, {MASK} and perhaps {KINDS}, and a number for each of two classes or more"
            )
        tail = GraphBuilder(graph.name)
        tail.output(graph.outputs[0], LOGITS)
        tail.extend(graph)

    return WithPostprocessing(model, LOGITS, extend)


def entailment_of(config: Mapping[str, Any]) -> int:
    """The class that says that a sentence follows from a text; the last one where a model names none so: -1.

    Raises:  InputError if the names are of another kind
    """
    names = config.get("id2label") or {}
    try:
        return next((int(i) for i, name in names.items() if str(name).lower().startswith(ENTAILS)), -1)
    except (AttributeError, ValueError):
        raise InputError(f"id2label of config.json is {names!r}, needs a name for each class") from None


class ZeroShotClassifier(Task[Category]):
    """Scores your labels for a text. Create one with `await ZeroShotClassifier.create(model, …)`."""

    name = "zero-shot-classification"
    takes = "text"
    extension = LOGITS
    result = RESULT

    def __init__(self, session: Session, tokenizer: TokenizerJson, entailment: int, longest: int) -> None:
        super().__init__(session)
        self._tokenizer, self._entailment = tokenizer, entailment
        batch, length = session.inputs[0].shape
        self._batch = batch if isinstance(batch, int) else 1
        shorter = tuple(n for n in LENGTHS if n < longest)
        self._lengths = (length,) if isinstance(length, int) else (*shorter, longest)
        self.candidate_labels: Sequence[str] = ()
        self.hypothesis_template, self.multi_label = "", False

    @classmethod
    async def create(
        cls,
        model: Any,
        *,
        candidate_labels: Sequence[str] | str = (),
        hypothesis_template: str = "This example is {}.",
        multi_label: bool = False,
        tokenizer: bytes | None = None,
        config: bytes | Mapping[str, Any] | None = None,
        length: int = LONGEST,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> ZeroShotClassifier:
        """Creates a classifier. `model` is bytes, a path or a URL of a model of natural language inference (NLI)
        as Hugging Face's Optimum exports it: `input_ids` and `attention_mask` in, logits of its classes out.

        `tokenizer` is the content of the model's tokenizer.json, `config` of its config.json, whose `id2label` names
        the class "entailment"; the last class is taken where no name begins so. Left out, they are read beside the
        model, or in the folder above.

        Each label is put into the template, in place of `{}`. Scores of labels sum to 1; with `multi_label` each is
        judged on its own. `length` is the most tokens of a text and a label; of longer texts the first count.

        Raises:  InputError if an option is out of range or there is no tokenizer; UnsupportedOpError if that is of
                 another kind; ModelFormatError if the model is; what `webinfer.load` raises
        """
        host = host or current()
        length = whole_number("length", length, 8, 4096)
        read = await tokenizer_of(model, tokenizer, host)
        entailment = entailment_of(await json_beside(model, "config.json", config, host))
        session = await load(with_logits(model), backend=backend, progress=progress, host=host)
        with closed_on_error(session):
            if any(len(info.shape) != 2 for info in session.inputs):
                raise ModelFormatError(f"{session.name!r} does not compare texts: its inputs are {session.inputs}")
            task = cls(session, read, entailment, length)
            await task._logits("", "")
            task.candidate_labels, task.multi_label = checked_labels(candidate_labels), bool(multi_label)
            task.hypothesis_template = hypothesis_template
        return task

    async def classify(
        self, text: str, candidate_labels: Sequence[str] | str | None = None, hypothesis_template: str | None = None,
        multi_label: bool | None = None,
    ) -> list[Category]:  # fmt: skip
        """The labels, best first. Labels, template and `multi_label` default to those of `create`.

        Raises:  InputError if it is not text, or if there are no labels
        """
        if not isinstance(text, str):
            raise InputError(f"{text!r} is not text")
        labels = self.candidate_labels if candidate_labels is None else checked_labels(candidate_labels)
        texts = hypotheses(labels, self.hypothesis_template if hypothesis_template is None else hypothesis_template)
        alone = (self.multi_label if multi_label is None else multi_label) or len(texts) == 1
        start = self.session.host.now_ms()
        rows = [await self._logits(text, hypothesis) for hypothesis in texts]
        inferred = self.session.host.now_ms()
        entails, contradicts = self._entailment, -1 if self._entailment == 0 else 0
        if alone:
            scores = [softmax([row[contradicts], row[entails]])[1] for row in rows]
        else:
            scores = softmax([row[entails] for row in rows])
        self._took(start, start, inferred)
        return ranked(labels, scores)

    async def run(self, text: str, /, **options: Any) -> list[Category]:
        """As `classify`."""
        return await self.classify(text, **options)

    async def _logits(self, text: str, hypothesis: str) -> list[float]:
        ids, kinds = self._tokenizer.encode(text, self._lengths[-1], hypothesis)
        length = next(n for n in self._lengths if len(ids) <= n)
        inputs = token_inputs(self.session.inputs, [ids], self._tokenizer.padding, self._batch, length, [kinds])
        logits = (await self.session.run(inputs))[LOGITS].tolist()
        return logits[: len(logits) // self._batch]
