"""Pre-tokenization: text is split by the model's patterns before byte-level BPE.

`re` has no classes for Unicode's letters and numbers, so each character first becomes one that stands for its class.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from webinfer.errors import UnsupportedOpError
from webinfer.graph.printer import safe_name

# Stand-ins of characters beyond ASCII. The long s is a letter that also ends a contraction where case is ignored.
_LETTER, _LONG_S, _NUMBER, _SPACE, _OTHER = "\u00aa", "\u017f", "\u00b2", "\u00a0", "\u00a7"
_PUNCTUATION, _MARK = "\u00a1", "\u0300"
_SPACES = frozenset((0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000))
_L, _N, _S = f"A-Za-z{_LETTER}{_LONG_S}", f"0-9{_NUMBER}", f" \t-\r{_SPACE}"
_CONTRACTION = f"'(?:[sS{_LONG_S}]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"
_GPT2 = f"'s|'t|'re|'ve|'m|'ll|'d| ?[{_L}]+| ?[{_N}]+| ?[^{_S}{_L}{_N}]+|[{_S}]+(?![^{_S}])|[{_S}]+"
_NEWER = (
    f"{_CONTRACTION}|[^\r\n{_L}{_N}]?[{_L}]+|[{_N}]{{1,%d}}| ?[^{_S}{_L}{_N}]+[\r\n]*|[{_S}]*[\r\n]+"
    f"|[{_S}]+(?![^{_S}])|[{_S}]+"
)
# tokenizer.ggml.pre -> patterns, each of which cuts what the one before it left whole
PATTERNS = {
    "gpt-2": (_GPT2,),
    "smollm": (f"[{_N}]", _GPT2),
    "llama-bpe": (_NEWER % 3,),
    "qwen2": (_NEWER % 1,),
}


_STAND_INS = {"L": _LETTER, "N": _NUMBER, "P": _PUNCTUATION, "M": _MARK}
# What regular expressions of tokenizer.json files name: \p{L} stands for these letters between square brackets.
_NAMED = {"L": _L, "N": _N, "P": rf"!-#%-*,-/:;?@\[-\]_{{}}{_PUNCTUATION}", "M": _MARK}


class _Classes(dict[int, str]):
    def __missing__(self, code: int) -> str:
        kind = unicodedata.category(chr(code))[0]
        found = _SPACE if code in _SPACES else _STAND_INS.get(kind, _OTHER)
        self[code] = found
        return found


_CLASSES = _Classes({code: chr(code) for code in (*range(9, 14), *range(32, 127), ord(_LONG_S))})


def splitter(name: str) -> list[ClassPattern]:
    """The patterns of this name.

    Raises:  UnsupportedOpError if there are none
    """
    if name not in PATTERNS:
        known = ", ".join(PATTERNS)
        raise UnsupportedOpError([f"text that is cut as {safe_name(name)}; {known} are known"])
    return [ClassPattern(pattern) for pattern in PATTERNS[name]]


def split(text: str, patterns: Iterable[ClassPattern]) -> list[str]:
    """The pieces of a text, in order; together they are the text."""
    pieces = [text]
    for pattern in patterns:
        pieces = [part for piece in pieces for part, _ in cut(piece, pattern)]
    return pieces


class ClassPattern:
    """A regular expression that knows Unicode's letters (`\\p{L}`), numbers, marks and punctuation.

    Raises:  UnsupportedOpError if it names another class
    """

    def __init__(self, expression: str) -> None:
        self._pattern = re.compile(_without_names(expression))

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """As `re.Pattern.finditer`; of matches only spans are those of the text."""
        return self._pattern.finditer(text.translate(_CLASSES))


def _without_names(expression: str) -> str:
    """The expression as `re` takes it, for text of stand-ins."""
    told, inside = [], False
    for match in re.finditer(r"\\[pP]\{(\^?\w+)\}|\\.|.", expression, re.DOTALL):
        piece, name = match[0], match[1]
        inside = piece == "[" or (inside and piece != "]")
        if name is None and piece not in (r"\s", r"\S"):
            told.append(piece)
            continue
        others = piece[1] in "PS" or bool(name and name[0] == "^")
        if (others and inside) or (name and name.lstrip("^") not in _NAMED):
            raise UnsupportedOpError([f"the regular expression {safe_name(expression)} of a tokenizer"])
        letters = _NAMED[name.lstrip("^")] if name else _S
        told.append(letters if inside else f"[{'^' * others}{letters}]")
    return "".join(told)


def cut(text: str, pattern: re.Pattern[str] | ClassPattern) -> list[tuple[str, bool]]:
    """The parts of a text that a pattern matches, and those between them; together they are the text."""
    found, at = [], 0
    for start, end in (match.span() for match in pattern.finditer(text)):
        if start > at:
            found.append((text[at:start], False))
        if end > start:
            found.append((text[start:end], True))
        at = end
    if at < len(text):
        found.append((text[at:], False))
    return found
