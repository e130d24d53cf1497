"""Tokenizers: text to token ids and back, by the vocabulary of a GGUF file (byte-level BPE and SentencePiece)."""

from __future__ import annotations

import codecs
import heapq
import re
from collections.abc import Callable, Sequence
from typing import Any

from webinfer.errors import InputError, ModelFormatError, UnsupportedOpError
from webinfer.graph.printer import safe_name
from webinfer.importers.gguf.container import GgufFile
from webinfer.language.pretokenizer import split, splitter

CONTROL, USER_DEFINED, BYTE = 3, 4, 6  # token types of the GGUF format
_CACHE_SIZE = 50_000  # pieces of text whose tokens are cached
_BAR = "\u2581"  # stands for a space
Rank = Callable[[str, str], Any]  # priority of merging two adjacent symbols: smallest first; None: never


def _byte_letters() -> list[str]:
    """The character that stands for each byte in byte-level BPE vocabularies. Source: GPT-2's published tokenizer"""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


BYTE_LETTERS = _byte_letters()
_BYTES = {letter: byte for byte, letter in enumerate(BYTE_LETTERS)}


def merge_symbols(symbols: Sequence[str], rank: Rank) -> list[str]:
    """Merges adjacent symbols, lowest rank first and leftmost among equals, until no pair has a rank."""
    parts: list[str | None] = list(symbols)
    after, before = list(range(1, len(parts) + 1)), list(range(-1, len(parts) - 1))
    heap: list[tuple[Any, int, int, str, str]] = []

    def offer(left: int) -> None:
        right = after[left]
        if left >= 0 and right < len(parts):
            a, b = parts[left], parts[right]
            assert a is not None
            assert b is not None
            found = rank(a, b)
            if found is not None:
                heapq.heappush(heap, (found, left, right, a, b))

    for at in range(len(parts) - 1):
        offer(at)
    while heap:
        _, left, right, a, b = heapq.heappop(heap)
        if parts[left] != a or right >= len(parts) or parts[right] != b or after[left] != right:
            continue
        parts[left], parts[right] = a + b, None
        after[left] = after[right]
        if after[left] < len(parts):
            before[after[left]] = left
        if before[left] >= 0:
            offer(before[left])
        offer(left)
    return [part for part in parts if part is not None]


class Tokenizer:
    """A model's vocabulary; `encode` and `decode` give what the model's own tokenizer gives.

    Raises:  ModelFormatError if the file has no vocabulary; UnsupportedOpError naming an unsupported kind
    """

    def __init__(self, file: GgufFile) -> None:
        self.tokens: list[str] = _texts(file, "tokens")
        kinds = file.facts.get("tokenizer.ggml.token_type", [1] * len(self.tokens))
        if not isinstance(kinds, list) or len(kinds) != len(self.tokens):
            raise ModelFormatError(f"{file.name!r}: tokenizer.ggml.token_type does not fit the vocabulary")
        self.ids = dict(zip(self.tokens, range(len(self.tokens)), strict=True))
        self.control = frozenset(i for i, kind in enumerate(kinds) if kind == CONTROL)
        named = [self.tokens[i] for i, kind in enumerate(kinds) if kind in (CONTROL, USER_DEFINED)]
        whole = sorted(filter(None, named), key=len, reverse=True)
        self._whole = re.compile("|".join(map(re.escape, whole)) or "(?!)")
        self._named = frozenset(whole)
        self.begin, self.end = (_id(file, key, len(self.tokens)) for key in ("bos_token_id", "eos_token_id"))
        ends = {self.end, *(self.ids.get(token) for token in ("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>"))}
        self.ends = frozenset(i for i in ends if i is not None and (i == self.end or i in self.control))
        kind = file.fact("tokenizer.ggml.model", str)
        if kind not in ("gpt2", "llama"):
            raise UnsupportedOpError([f"a vocabulary of the kind {safe_name(kind)}; gpt2 (BPE) and llama are read"])
        self.adds_begin = bool(file.facts.get("tokenizer.ggml.add_bos_token", kind == "llama"))
        self._unknown = _id(file, "unknown_token_id", len(self.tokens))
        self._pieces: dict[str, list[int]] = {}
        self._bytewise = kind == "gpt2"
        if self._bytewise:
            pre = str(file.facts.get("tokenizer.ggml.pre", "gpt-2"))
            self._patterns = splitter(
                {"default": "gpt-2", "llama3": "llama-bpe", "llama-v3": "llama-bpe"}.get(pre, pre)
            )
            self._takes_whole = pre in ("llama-bpe", "llama3", "llama-v3")
            merges = _texts(file, "merges")
            ranks = dict(zip(merges, range(len(merges)), strict=True))
            self._rank: Rank = lambda a, b: ranks.get(f"{a} {b}")
        else:
            scores = file.fact("tokenizer.ggml.scores", list)
            if len(scores) != len(self.tokens):
                raise ModelFormatError(f"{file.name!r}: tokenizer.ggml.scores does not fit the vocabulary")
            ids = self.ids
            self._rank = lambda a, b: -scores[ids[a + b]] if a + b in ids else None
            self._prefix = " " if file.facts.get("tokenizer.ggml.add_space_prefix", True) else ""

    def encode(self, text: str, named: bool = True) -> list[int]:
        """The token ids of a text; with `named`, names such as `<|im_end|>` become special tokens, else plain text.

        Raises:  InputError if the text contains a lone surrogate
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"the text has a lone surrogate at {error.start}; it is not valid Unicode") from None
        found: list[int] = []
        at = 0
        for match in self._whole.finditer(text) if named else ():
            found += self._plain(text[at : match.start()], at == 0)
            found.append(self.ids[match[0]])
            at = match.end()
        return found + self._plain(text[at:], at == 0)

    def _plain(self, text: str, first: bool) -> list[int]:
        if not text:
            return []
        if not self._bytewise:
            return self._tokens_of((self._prefix * first + text).replace(" ", _BAR))
        return [i for piece in split(text, self._patterns) for i in self._tokens_of(piece)]

    def _tokens_of(self, piece: str) -> list[int]:
        known = self._pieces.get(piece)
        if known is None:
            known = self._merge_bytes(piece) if self._bytewise else self._merge_characters(piece)
            if len(self._pieces) < _CACHE_SIZE and len(piece) < 64:
                self._pieces[piece] = known
        return known

    def _merge_bytes(self, piece: str) -> list[int]:
        letters = "".join(letter for byte in piece.encode() if (letter := BYTE_LETTERS[byte]) in self.ids)
        if self._takes_whole and letters in self.ids:
            return [self.ids[letters]]
        return [self.ids[part] for part in merge_symbols(letters, self._rank) if part in self.ids]

    def _merge_characters(self, piece: str) -> list[int]:
        found: list[int] = []
        for part in merge_symbols(piece, self._rank):
            if part in self.ids:
                found.append(self.ids[part])
                continue
            for byte in part.encode():
                i = self.ids.get(f"<0x{byte:02X}>", self._unknown)
                found += [] if i is None else [i]
        return found

    def bytes_of(self, token: int) -> bytes:
        """The UTF-8 bytes of one token, possibly part of a character; empty for control tokens."""
        if token in self.control or not 0 <= token < len(self.tokens):
            return b""
        text = self.tokens[token]
        if text in self._named:
            return text.encode()
        if self._bytewise:
            return bytes(_BYTES[c] for c in text if c in _BYTES)
        if len(text) == 6 and text.startswith("<0x"):
            return bytes.fromhex(text[3:5])
        return text.replace(_BAR, " ").encode()

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; invalid UTF-8 becomes U+FFFD."""
        text = b"".join(map(self.bytes_of, tokens)).decode("utf-8", "replace")
        return text.removeprefix(" ") if not self._bytewise and self._prefix else text

    def decoder(self) -> codecs.IncrementalDecoder:
        """An incremental UTF-8 decoder for the bytes of successive tokens."""
        return codecs.getincrementaldecoder("utf-8")("replace")


def _texts(file: GgufFile, key: str) -> list[str]:
    found = file.fact(f"tokenizer.ggml.{key}", list)
    if not found or set(map(type, found)) != {str}:
        raise ModelFormatError(f"{file.name!r}: tokenizer.ggml.{key} is not a list of strings; the file is damaged")
    return found


def _id(file: GgufFile, key: str, count: int) -> int | None:
    found = file.facts.get(f"tokenizer.ggml.{key}")
    return found if isinstance(found, int) and 0 <= found < count else None
