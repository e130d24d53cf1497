"""WordPiece: text as the numbers of pieces of words, by the rules of BERT's uncased models."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import category, normalize

from webinfer.errors import InputError

LONGEST = 100  # characters; a longer word is unknown
MAX_KEPT = 20_000  # words whose pieces are remembered
UNKNOWN, FIRST, LAST, PADDING = "[UNK]", "[CLS]", "[SEP]", "[PAD]"
# Chinese characters, each a word: the first and last of every block that BERT counts.
_CHINESE = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
            (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))  # fmt: skip
_ASCII_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class _Letters(dict[int, str]):
    """What stands for a character, by its number: itself in lower case, itself between spaces, a space, or nothing."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        kind = category(letter)
        if letter in "\t\n\r":
            found = " "
        elif code in (0, 0xFFFD) or kind in ("Cc", "Cf", "Co", "Cs", "Mn"):
            found = ""
        elif letter.isspace():
            found = " "
        elif kind[0] == "P" or (33 <= code < 127 and letter not in _ASCII_LETTERS) or _is_chinese(code):
            found = f" {letter} "
        else:
            found = letter.lower()
        self[code] = found
        return found


def _is_chinese(code: int) -> bool:
    return any(first <= code <= last for first, last in _CHINESE)


_LETTERS = _Letters()


def words_of(text: str) -> list[str]:
    """The words of a text: in lower case, without accents; each punctuation mark and Chinese character is one."""
    return normalize("NFD", text).translate(_LETTERS).split()


class WordPieces:
    """A vocabulary: the number of a piece is its place. Pieces inside of words begin with ##."""

    def __init__(self, vocabulary: bytes | Sequence[str]) -> None:
        """Takes the bytes of a file with a piece in each line, or the pieces.

        Raises:  InputError if one of the markers is missing
        """
        if isinstance(vocabulary, (bytes, bytearray, memoryview)):
            vocabulary = str(vocabulary, "utf-8").split("\n")
        self._numbers = {piece.rstrip("\r"): number for number, piece in enumerate(vocabulary)}
        if missing := [m for m in (UNKNOWN, FIRST, LAST, PADDING) if m not in self._numbers]:
            raise InputError(f"the vocabulary has no {', '.join(missing)}; give one of an uncased BERT model")
        self.padding = self._numbers[PADDING]
        self._kept: dict[str, list[int]] = {}

    def encode(self, text: str, most: int) -> list[int]:
        """The numbers of a text's pieces between the markers of its ends, `most` in all; the rest is left out."""
        numbers = [self._numbers[FIRST]]
        for word in words_of(text):
            numbers += self._kept.get(word) or self._pieces(word)
            if len(numbers) >= most:
                break
        return [*numbers[: most - 1], self._numbers[LAST]]

    def _pieces(self, word: str) -> list[int]:
        """The longest piece first, then the longest of the rest; a word that cannot be put together is unknown."""
        found, start, end = list[int](), 0, len(word)
        while start < len(word) <= LONGEST:
            number = self._numbers.get(f"##{word[start:end]}" if start else word[:end])
            if number is not None:
                found.append(number)
                start, end = end, len(word)
            elif (end := end - 1) == start:
                break
        if start < len(word):
            found = [self._numbers[UNKNOWN]]
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        self._kept[word] = found
        return found
