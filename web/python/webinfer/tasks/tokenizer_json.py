"""Tokenizers as Hugging Face's models have them: what a tokenizer.json says, read without its library.

A text is normalized, split into words, each word cut into tokens by BPE, WordPiece or Unigram, and framed by special
tokens. Each of these is a table of kinds; a file with another kind is refused.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from unicodedata import category, normalize

from webinfer.errors import InputError, UnsupportedOpError
from webinfer.graph.printer import safe_name
from webinfer.host.interface import Host
from webinfer.language.pretokenizer import ClassPattern, cut, splitter
from webinfer.language.tokenizer import BYTE_LETTERS, merge_symbols
from webinfer.tasks.model_folder import found_beside
from webinfer.tasks.word_pieces import Letters, longest_pieces

Fact = Mapping[str, Any]
Normalizer = Callable[[str], str]
Splitter = Callable[[str, bool], list[str]]  # of a part of a text, and whether it is the first
Model = Callable[[str], list[int]]  # the tokens of a word

MAX_KEPT = 20_000  # words whose tokens are remembered
UNKNOWN_PENALTY = 10.0  # below the lowest score of a Unigram vocabulary. Source: tokenizers/src/models/unigram/model.rs
LONGEST_GRAPHEME = 6  # bytes, from which it is looked up letter by letter. Source: spm_precompiled/src/lib.rs


class TokenizerJson:
    """A tokenizer.json; `encode` gives the ids that Hugging Face's tokenizers give.

    Raises:  InputError if it is not such a file; UnsupportedOpError naming what it needs that is not supported
    """

    def __init__(self, data: bytes | memoryview) -> None:
        try:
            facts = json.loads(bytes(data))
            self._ids = _vocabulary(facts["model"])
            added = {one["content"]: one for one in facts.get("added_tokens") or ()}
            self._ids |= {text: one["id"] for text, one in added.items()}
            self._normalize = _normalizer(facts.get("normalizer"))
            self._split = _splitter(facts.get("pre_tokenizer"))
            self._model = _model(facts["model"], self._ids)
            self._frames = _frames(facts.get("post_processor"), self._ids)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise InputError(f"the tokenizer is not a tokenizer.json that Hugging Face writes: {error!r}") from error
        longest_first = sorted(added, key=len, reverse=True)
        spaced = (r"\s*" + re.escape(text) if added[text].get("lstrip") else re.escape(text) for text in longest_first)
        self._whole = re.compile("|".join(spaced) or "(?!)")
        padding = facts.get("padding") or {}
        pads = padding.get("pad_id"), *map(self._ids.get, ("<pad>", "[PAD]", "<|endoftext|>", "!"))
        self.padding: int = next((i for i in pads if i is not None), 0)
        self._kept: dict[str, list[int]] = {}

    def encode(self, text: str, most: int, pair: str | None = None) -> tuple[list[int], list[int]]:
        """The ids of a text, or of two, between special tokens, and the number of the part that each belongs to.

        `most` in all: the rest of the first text is left out.
        """
        texts = [self._plain(text)] + ([self._plain(pair)] if pair is not None else [])
        frame = self._frames[pair is not None]
        room = most - sum(1 if isinstance(what, int) else len(texts[what[0]]) for what, _ in frame)
        if room < 0:
            texts[0] = texts[0][: max(len(texts[0]) + room, 0)]
        ids, kinds = list[int](), list[int]()
        for what, kind in frame:
            part = [what] if isinstance(what, int) else texts[what[0]]
            ids += part
            kinds += [kind] * len(part)
        return ids[:most], kinds[:most]

    def _plain(self, text: str) -> list[int]:
        found, at = list[int](), 0
        for match in self._whole.finditer(text):
            found += self._tokens(text[at : match.start()], at == 0)
            found.append(self._ids[match[0].lstrip() if match[0] not in self._ids else match[0]])
            at = match.end()
        return found + self._tokens(text[at:], at == 0)

    def _tokens(self, part: str, first: bool) -> list[int]:
        if not part:
            return []
        found = list[int]()
        for word in self._split(self._normalize(part), first):
            tokens = self._kept.get(word)
            if tokens is None:
                if len(self._kept) >= MAX_KEPT:
                    self._kept.clear()
                tokens = self._kept[word] = self._model(word)
            found += tokens
        return found


async def tokenizer_of(model: Any, given: bytes | None, host: Host) -> TokenizerJson:
    """The tokenizer that is given as the content of its file, else the one beside the model.

    Raises:  as TokenizerJson; InputError if there is none
    """
    data = given if given is not None else await found_beside(model, "tokenizer.json", host)
    if data is None:
        raise InputError("no tokenizer is given, and none is beside the model; give tokenizer=…, its tokenizer.json")
    return TokenizerJson(data)


def _refused(what: str, fact: Fact) -> UnsupportedOpError:
    return UnsupportedOpError([f"{what} {safe_name(str(fact.get('type')))} of a tokenizer.json"])


def _parts(fact: Fact, name: str) -> Sequence[Fact]:
    """A kind's own facts, or those that a sequence holds."""
    return [part for one in fact[name] for part in _parts(one, name)] if fact["type"] == "Sequence" else [fact]


# Normalizers


def _normalizer(fact: Fact | None) -> Normalizer:
    steps = [_normalizing(part) for part in _parts(fact, "normalizers")] if fact else []

    def normalized(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return normalized


def _normalizing(fact: Fact) -> Normalizer:
    kind = fact["type"]
    if kind in ("NFC", "NFD", "NFKC", "NFKD"):
        return partial(normalize, kind)
    if kind == "Lowercase":
        return str.lower
    if kind == "StripAccents":
        return lambda text: "".join(c for c in text if category(c) != "Mn")
    if kind == "Strip":
        left, right = fact["strip_left"], fact["strip_right"]
        return lambda text: (text.lstrip() if left else text) if not right else text.strip() if left else text.rstrip()
    if kind == "Replace":
        pattern, content = _pattern(fact["pattern"]), fact["content"]
        return lambda text: "".join(content if hit else part for part, hit in cut(text, pattern))
    if kind == "Prepend":
        return lambda text: fact["prepend"] + text if text else text
    if kind == "Precompiled":
        return _precompiled(fact["precompiled_charsmap"])
    if kind != "BertNormalizer":
        raise _refused("the normalizer", fact)
    lower, accents = fact["lowercase"], fact.get("strip_accents")
    strips = lower if accents is None else accents
    letters = Letters(lower, strips, fact["clean_text"], fact["handle_chinese_chars"], False)
    return lambda text: (normalize("NFD", text) if strips else text).translate(letters)


def _precompiled(encoded: str | None) -> Normalizer:
    """SentencePiece's own table: a double-array trie of bytes, and texts that end in 0.

    Source: sentencepiece/src/normalizer.cc, and spm_precompiled's way to walk through a text.
    """
    from base64 import b64decode

    data = b64decode(encoded or "")
    if len(data) < 4:
        return lambda text: text
    (nbytes,) = struct.unpack_from("<I", data)
    units, texts = memoryview(data)[4 : 4 + nbytes].cast("I"), data[4 + nbytes :]

    def found(letters: str) -> str | None:
        at = _offset(units[0])
        for byte in letters.encode("utf-8", "replace"):
            at ^= byte
            unit = units[at] if byte and at < len(units) else 0
            if not byte or unit & 0x800000FF != byte:
                return None
            at ^= _offset(unit)
            if unit >> 8 & 1:
                start = units[at] & 0x7FFFFFFF
                return texts[start : texts.index(b"\0", start)].decode()
        return None

    kept: dict[str, str] = {}

    def normalized(text: str) -> str:
        told = []
        for grapheme in _graphemes(text):
            if grapheme not in kept:
                whole = found(grapheme) if len(grapheme.encode("utf-8", "replace")) < LONGEST_GRAPHEME else None
                each = (other if (other := found(c)) is not None else c for c in grapheme)
                kept[grapheme] = whole if whole is not None else "".join(each)
            told.append(kept[grapheme])
        return "".join(told)

    return normalized


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)


def _graphemes(text: str) -> list[str]:
    """Letters with the marks that stand on them."""
    found: list[str] = []
    for letter in text:
        if found and (category(letter) in ("Mn", "Me", "Mc") or (letter == "\n" and found[-1] == "\r")):
            found[-1] += letter
        else:
            found.append(letter)
    return found


# Words


def _splitter(fact: Fact | None) -> Splitter:
    steps = [_splitting(part) for part in _parts(fact, "pretokenizers")] if fact else []

    def words(text: str, first: bool) -> list[str]:
        parts = [text]
        for step in steps:
            parts = [word for at, part in enumerate(parts) for word in (step(part, first and not at) if part else [""])]
        return [part for part in parts if part]

    return words


def _splitting(fact: Fact) -> Splitter:
    kind = fact["type"]
    if kind == "Metaspace":
        return _metaspace(fact)
    if kind == "ByteLevel":
        prefix, splits = fact["add_prefix_space"], fact.get("use_regex", True)
        (gpt2,) = splitter("gpt-2")

        def bytewise(text: str, first: bool) -> list[str]:
            text = f" {text}" if prefix and not text.startswith(" ") else text
            parts = [part for part, _ in cut(text, gpt2)] if splits else [text]
            return ["".join(BYTE_LETTERS[byte] for byte in part.encode("utf-8", "replace")) for part in parts]

        return bytewise
    if kind == "BertPreTokenizer":
        letters = Letters(False, False, False, False, True)
        return lambda text, first: text.translate(letters).split()
    if kind == "WhitespaceSplit":
        return lambda text, first: [*[""] * text[0].isspace(), *text.split()]  # what follows a space is not the first
    if kind == "Whitespace":
        word = ClassPattern(r"[\p{L}\p{M}\p{N}_]+|[^\s\p{L}\p{M}\p{N}_]+")
        return lambda text, first: _separated(text, word, "Removed", True)
    if kind == "Digits":
        pattern = ClassPattern(r"\p{N}" if fact["individual_digits"] else r"\p{N}+")
        return lambda text, first: _separated(text, pattern, "Isolated", False)
    if kind == "Punctuation":
        pattern = ClassPattern(r"[!-/:-@\[-`{-~\p{P}]")
        return lambda text, first: _separated(text, pattern, fact.get("behavior", "Isolated"), False)
    if kind == "Split":
        separator, inverts = _pattern(fact["pattern"]), fact["invert"]
        return lambda text, first: _separated(text, separator, fact["behavior"], inverts)
    raise _refused("the pre-tokenizer", fact)


def _metaspace(fact: Fact) -> Splitter:
    bar, splits = fact["replacement"], fact.get("split", True)
    scheme = fact.get("prepend_scheme", "always" if fact.get("add_prefix_space", True) else "never")

    def words(text: str, first: bool) -> list[str]:
        text = text.replace(" ", bar)
        begins = scheme == "always" or (scheme == "first" and first)
        text = bar + text if begins and not text.startswith(bar) else text
        return re.findall(f"{re.escape(bar)}?[^{re.escape(bar)}]+|{re.escape(bar)}", text) if splits else [text]

    return words


def _pattern(fact: Fact) -> re.Pattern[str] | ClassPattern:
    return re.compile(re.escape(fact["String"])) if "String" in fact else ClassPattern(fact["Regex"])


def _separated(text: str, pattern: re.Pattern[str] | ClassPattern, behaviour: str, inverts: bool) -> list[str]:
    """The parts of a text as a separator cuts it, which is what a pattern matches, or with `inverts` all else."""
    parts = [(part, hit != inverts) for part, hit in cut(text, pattern)]
    if behaviour == "Removed":
        return [part for part, separates in parts if not separates]
    if behaviour == "Isolated":
        return [part for part, _ in parts]
    found, before = list[str](), None
    for part, separates in parts:
        joins = {
            "MergedWithPrevious": separates and before is False,
            "MergedWithNext": before is True and not separates,
            "Contiguous": before == separates,
        }[behaviour]
        found = [*found[:-1], found[-1] + part] if joins and found else [*found, part]
        before = separates
    return found


# Tokens of a word


def _vocabulary(fact: Fact) -> dict[str, int]:
    words = fact["vocab"]
    return dict(words) if isinstance(words, Mapping) else {piece: i for i, (piece, _) in enumerate(words)}


def _model(fact: Fact, ids: Mapping[str, int]) -> Model:
    kind = fact.get("type") or ("WordPiece" if "max_input_chars_per_word" in fact else "BPE")
    unknown = ids.get(fact.get("unk_token") or "")
    if kind == "WordPiece":
        longest, inside = fact["max_input_chars_per_word"], fact["continuing_subword_prefix"]
        assert unknown is not None
        return lambda word: longest_pieces(word, ids, inside, longest) or [unknown]
    if kind == "Unigram":
        return _unigram(fact, ids)
    if kind == "WordLevel":
        return lambda word: [i for i in (ids.get(word, unknown),) if i is not None]
    if kind != "BPE":
        raise _refused("the model", {"type": kind})
    if fact.get("continuing_subword_prefix"):
        raise UnsupportedOpError(["BPE with a prefix of pieces inside words, of a tokenizer.json"])
    return _bpe(fact, ids, unknown)


def _bpe(fact: Fact, ids: Mapping[str, int], unknown: int | None) -> Model:
    merges = [tuple(one.split(" ", 1)) if isinstance(one, str) else tuple(one) for one in fact["merges"]]
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    suffix, takes_whole = fact.get("end_of_word_suffix") or "", fact.get("ignore_merges", False)
    fallback, fuses = fact.get("byte_fallback", False), fact.get("fuse_unk", False)

    def tokens(word: str) -> list[int]:
        if takes_whole and word in ids:
            return [ids[word]]
        parts = merge_symbols([*word[:-1], word[-1] + suffix], lambda a, b: ranks.get((a, b)))
        return _numbers(parts, ids, unknown, fallback, fuses)

    return tokens


def _numbers(
    parts: Sequence[str], ids: Mapping[str, int], unknown: int | None, fallback: bool, fuses: bool
) -> list[int]:
    """The ids of parts of a word; with `fallback` those of the bytes of unknown ones. `fuses`: unknown ones are one."""
    found, was_unknown = list[int](), False
    for part in parts:
        known = [ids[part]] if part in ids else _bytes_of(part, ids) if fallback else None
        if known is not None:
            found += known
        elif unknown is not None and not (fuses and was_unknown):
            found.append(unknown)
        was_unknown = known is None
    return found


def _bytes_of(part: str, ids: Mapping[str, int]) -> list[int] | None:
    found = [ids.get(f"<0x{byte:02X}>") for byte in part.encode("utf-8", "replace")]
    return None if None in found else found  # type: ignore[return-value]


def _unigram(fact: Fact, ids: Mapping[str, int]) -> Model:
    """The cut of a word into pieces whose scores have the largest sum; letters that no piece has are unknown."""
    scores: dict[str, float] = dict(fact["vocab"])
    longest, least = max(map(len, scores)), min(scores.values()) - UNKNOWN_PENALTY
    unknown, fallback = fact.get("unk_id"), fact.get("byte_fallback", False)

    def tokens(word: str) -> list[int]:
        best: list[tuple[float, int] | None] = [(0.0, 0), *[None] * len(word)]  # of each end: sum, start of the last
        for start in range(len(word)):
            here = best[start]
            assert here is not None
            for end in range(start + 1, min(start + longest, len(word)) + 1):
                score = scores.get(word[start:end], least if end == start + 1 else None)
                there = best[end]
                if score is not None and (there is None or here[0] + score > there[0]):
                    best[end] = here[0] + score, start
        pieces, end = list[str](), len(word)
        while end:
            start = best[end][1]  # type: ignore[index]
            pieces.append(word[start:end])
            end = start
        return _numbers(pieces[::-1], ids, unknown, fallback, True)

    return tokens


# Special tokens around texts: each is a token, or the number of a text, and the number of the part that it belongs to

Frame = list[tuple[int | tuple[int], int]]


def _frames(fact: Fact | None, ids: Mapping[str, int]) -> tuple[Frame, Frame]:
    """The frame of one text, and that of two."""
    for part in _parts(fact, "processors") if fact else ():
        kind = part["type"]
        if kind == "TemplateProcessing":
            return tuple(_template(part[name], part["special_tokens"]) for name in ("single", "pair"))  # type: ignore[return-value]
        if kind in ("BertProcessing", "RobertaProcessing"):
            (_, first), (_, last) = part["cls"], part["sep"]
            between, second = ([(last, 0)], 0) if kind[0] == "R" else ([], 1)
            single: Frame = [(first, 0), ((0,), 0), (last, 0)]
            return single, [*single, *between, ((1,), second), (last, second)]
        if kind != "ByteLevel":
            raise _refused("the post-processor", part)
    return [((0,), 0)], [((0,), 0), ((1,), 1)]


def _template(rows: Sequence[Fact], special: Fact) -> Frame:
    found: Frame = []
    for row in rows:
        ((kind, what),) = row.items()
        if kind == "Sequence":
            found.append(((int(what["id"] == "B"),), what["type_id"]))
        else:
            found += [(i, what["type_id"]) for i in special[what["id"]]["ids"]]
    return found
