"""What transformers' zero-shot pipelines say of small models with random weights. Runs in the judges' own environment.

Usage: python zero_shot_answers.py OUTPUT.json FOLDER PHOTO…
Each model is exported to FOLDER/<name>/ as Optimum lays it out: ONNX files, its tokenizer and its configurations.
"""

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

warnings.filterwarnings("ignore")
LABELS = ["a cat", "two dogs", "the cup of coffee", "people at a party", "Übergrößen & naïve café", "a rocket"]
TEMPLATES = ("This is a photo of {}.", "{}")
TEXTS = (
    "I have rarely enjoyed a film as much as this one.",
    "Der Zug nach München hat 30 Minuten Verspätung, don't wait!",
    "A long text. " * 60,
)
CORPUS = [*LABELS, *TEXTS, "This example is about a photo of the cat, 1234567890", "猫の写真 фото кота"] * 3
SIDE, PATCH, WIDTH, VOCABULARY = 64, 16, 32, 320
TEXT_FACTS = {
    "hidden_size": WIDTH, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "vocab_size": VOCABULARY,
}  # fmt: skip
SEEING_FACTS = {
    "hidden_size": WIDTH, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "image_size": SIDE, "patch_size": PATCH,
}  # fmt: skip
CLIP_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def clip_tokenizer() -> Any:
    """Byte-level BPE with ends of words, as CLIP's."""
    made = tokenizers.Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
    spaces = normalizers.Replace(Regex(r"\s+"), " ")
    made.normalizer = normalizers.Sequence([normalizers.NFC(), spaces, normalizers.Lowercase()])
    words = pre_tokenizers.Split(Regex(CLIP_WORDS), "removed", invert=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    letters = pre_tokenizers.ByteLevel.alphabet()
    ends = ["<|startoftext|>", "<|endoftext|>"]
    made.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=ends, end_of_word_suffix="</w>", initial_alphabet=letters))  # fmt: skip
    made.post_processor = processors.RobertaProcessing((ends[1], 1), (ends[0], 0), False, False)
    made.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token=ends[0], eos_token=ends[1], pad_token=ends[1], model_max_length=77
    )


def unigram_tokenizer(pair: str, **names: Any) -> Any:
    """Unigram of words with their spaces, as SigLIP's, T5's and XLM-RoBERTa's; `pair` frames two texts."""
    special = ["<pad>", "</s>", "<unk>", "<s>"]
    made = tokenizers.Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    made.train_from_iterator(
        CORPUS, trainers.UnigramTrainer(vocab_size=VOCABULARY, special_tokens=special, unk_token="<unk>")
    )
    single = pair.partition(" $B")[0]
    known = [(name, special.index(name)) for name in special]
    made.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=known)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", **names
    )


def bert_tokenizer() -> Any:
    """WordPiece in lower case."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=special))
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]",
        model_max_length=512, model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip


def roberta_tokenizer() -> Any:
    """Byte-level BPE."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=letters)
    )
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", cls_token="<s>",
        sep_token="</s>", unk_token="<unk>", model_max_length=512,
    )  # fmt: skip


class Outputs(torch.nn.Module):  # type: ignore[misc]
    """A model whose outputs are those of these names, in their order, and whose inputs have names too."""

    def __init__(self, model: Any, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        super().__init__()
        self.model, self.inputs, self.outputs = model, inputs, outputs

    def forward(self, *given: Any) -> tuple[Any, ...]:
        """The outputs."""
        found = self.model(**dict(zip(self.inputs, given, strict=True)))
        return tuple(getattr(found, name) for name in self.outputs)


AXES = {
    "input_ids": {0: "text_batch_size", 1: "sequence_length"},
    "attention_mask": {0: "text_batch_size", 1: "sequence_length"},
    "token_type_ids": {0: "text_batch_size", 1: "sequence_length"},
    "pixel_values": {0: "image_batch_size", 1: "num_channels", 2: "height", 3: "width"},
    "logits_per_image": {0: "image_batch_size", 1: "text_batch_size"},
    "logits_per_text": {0: "text_batch_size", 1: "image_batch_size"},
    "text_embeds": {0: "text_batch_size"},
    "image_embeds": {0: "image_batch_size"},
    "logits": {0: "text_batch_size"},
}


def exported(path: Path, model: Any, inputs: Sequence[str], outputs: Sequence[str], length: int = 9) -> None:
    """Writes a model as ONNX whose batches and lengths are open."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = torch.randint(4, VOCABULARY, (2, length))
    ids[:, -1] = 1
    samples = {
        "input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids),
        "pixel_values": torch.randn(1, 3, SIDE, SIDE),
    }  # fmt: skip
    axes = {name: AXES[name] for name in (*inputs, *outputs)}
    torch.onnx.export(
        Outputs(model, inputs, outputs).eval(), tuple(samples[name] for name in inputs), str(path),
        input_names=list(inputs), output_names=list(outputs), dynamic_axes=axes, opset_version=18, dynamo=False,
    )  # fmt: skip


def seeing_models(folder: Path) -> Iterator[tuple[str, Any]]:
    """Pipelines of CLIP and SigLIP, which are exported."""
    merged = ["logits_per_image", "logits_per_text", "text_embeds", "image_embeds"]
    tokenizer = clip_tokenizer()
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    config = transformers.CLIPConfig(
        text_config={**TEXT_FACTS, **ends, "max_position_embeddings": 77, "projection_dim": 16},
        vision_config={**SEEING_FACTS, "projection_dim": 16}, projection_dim=16,
    )  # fmt: skip
    model = spread(transformers.CLIPModel(config))
    model.logit_scale.data.fill_(4.6052)  # 100, as training ends
    sizes = {"size": {"shortest_edge": SIDE + 8}, "crop_size": {"height": SIDE, "width": SIDE}}
    processor = transformers.CLIPImageProcessor(**sizes)
    exported(folder / "clip" / "onnx" / "model.onnx", model, ["input_ids", "pixel_values", "attention_mask"], merged)
    halves = folder / "clip" / "onnx"
    reads = transformers.CLIPTextModelWithProjection(model.text_model.config).eval()
    reads.load_state_dict(model.state_dict(), strict=False)
    sees = transformers.CLIPVisionModelWithProjection(model.vision_model.config).eval()
    sees.load_state_dict(model.state_dict(), strict=False)
    exported(halves / "text_model.onnx", reads, ["input_ids", "attention_mask"], ["text_embeds"])
    exported(halves / "vision_model.onnx", sees, ["pixel_values"], ["image_embeds"])
    yield "clip", pipeline_of("zero-shot-image-classification", folder / "clip", model, tokenizer, processor)

    tokenizer = unigram_tokenizer("$A </s> $B </s>", model_max_length=64, model_input_names=["input_ids"])
    config = transformers.SiglipConfig(
        text_config={**TEXT_FACTS, "max_position_embeddings": 64, "projection_size": WIDTH}, vision_config=SEEING_FACTS
    )
    model = spread(transformers.SiglipModel(config))
    model.logit_scale.data.fill_(2.3)
    model.logit_bias.data.fill_(-1.5)
    processor = transformers.SiglipImageProcessor(size={"height": SIDE, "width": SIDE})
    exported(folder / "siglip" / "model.onnx", model, ["input_ids", "pixel_values"], merged, length=64)
    yield "siglip", pipeline_of("zero-shot-image-classification", folder / "siglip", model, tokenizer, processor)


def reading_models(folder: Path) -> Iterator[tuple[str, Any]]:
    """Pipelines of models of entailment, which are exported."""
    names = {0: "contradiction", 1: "neutral", 2: "entailment"}
    turned = {0: "ENTAILMENT", 1: "not_entailment"}
    facts = {**TEXT_FACTS, "max_position_embeddings": 514}
    for name, tokenizer, kind, labels, inputs, more in (
        ("bert", bert_tokenizer(), "Bert", names, ["input_ids", "attention_mask", "token_type_ids"], {}),
        ("roberta", roberta_tokenizer(), "Roberta", turned, ["input_ids", "attention_mask"], {"pad_token_id": 1}),
        ("xlm", unigram_tokenizer(
            "<s> $A </s> </s> $B </s>", cls_token="<s>", sep_token="</s>", model_max_length=512),
         "XLMRoberta", names, ["input_ids", "attention_mask"], {"pad_token_id": 0}),
    ):  # fmt: skip
        numbers = {label: i for i, label in labels.items()}
        config = getattr(transformers, f"{kind}Config")(**facts, **more, id2label=labels, label2id=numbers)
        model = spread(getattr(transformers, f"{kind}ForSequenceClassification")(config))
        exported(folder / name / "model.onnx", model, inputs, ["logits"])
        yield name, pipeline_of("zero-shot-classification", folder / name, model, tokenizer)


def spread(model: Any) -> Any:
    """The model with weights so large that inputs tell in what comes out."""
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if weights.ndim > 1:
                weights.normal_(0, 0.3 if "embed" in name else 1.2 / weights.shape[-1] ** 0.5)
    return model.eval()


def pipeline_of(task: str, folder: Path, model: Any, tokenizer: Any, processor: Any = None) -> Any:
    """transformers' pipeline of a model, whose files are written too."""
    for one in (model.config, tokenizer, processor):
        if one is not None:
            one.save_pretrained(folder)
    return transformers.pipeline(task, model=model, tokenizer=tokenizer, image_processor=processor, device="cpu")


def scores_of(answer: Any) -> dict[str, float]:
    """Scores by label."""
    if isinstance(answer, dict):
        return dict(zip(answer["labels"], answer["scores"], strict=True))
    return {one["label"]: one["score"] for one in answer}


def main(output: Path, folder: Path, photos: Sequence[str]) -> None:
    """Writes scores by model and question."""
    torch.manual_seed(33)
    told: dict[str, Any] = {}
    for name, ask in seeing_models(folder):
        told[name] = [
            [{"image": photo, "hypothesis_template": template},
             scores_of(ask(photo, candidate_labels=LABELS, hypothesis_template=template))]
            for photo in photos for template in TEMPLATES
        ]  # fmt: skip
    for name, ask in reading_models(folder):
        told[name] = [
            [{"text": text, "multi_label": several},
             scores_of(ask(text, candidate_labels=LABELS, multi_label=several))]
            for text in TEXTS for several in (False, True)
        ]  # fmt: skip
    output.write_text(json.dumps({"labels": LABELS, "models": told}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
