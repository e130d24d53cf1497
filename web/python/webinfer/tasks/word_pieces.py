"""WordPiece: text as the numbers of pieces of words, by the rules of BERT's uncased models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from unicodedata import category, normalize

from webinfer.errors import InputError

LONGEST = 100  # characters; a longer word is unknown
MAX_KEPT = 20_000  # words whose pieces are remembered
UNKNOWN, FIRST, LAST, PADDING = "[UNK]", "[CLS]", "[SEP]", "[PAD]"
# Chinese characters, each a word: the first and last of every block that BERT counts.
_CHINESE = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
            (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))  # fmt: skip
_ASCII_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Letters(dict[int, str]):
    """What stands for a character, by its number: itself in lower case, itself between spaces, a space, or nothing.

    Which of BERT's rules hold: lower case, no accents (of text in NFD), no control characters, Chinese characters
    apart, punctuation apart.
    """

    def __init__(self, lower: bool, strips: bool, cleans: bool, chinese: bool, punctuation: bool) -> None:
        super().__init__()
        self._lower, self._strips, self._cleans = lower, strips, cleans
        self._chinese, self._punctuation = chinese, punctuation

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        kind = category(letter)
        if self._cleans and letter in "\t\n\r":
            found = " "
        elif (self._cleans and (code in (0, 0xFFFD) or kind in ("Cc", "Cf", "Co", "Cs"))) or (
            self._strips and kind == "Mn"
        ):
            found = ""
        elif self._cleans and letter.isspace():
            found = " "
        elif (self._punctuation and _is_punctuation(letter)) or (self._chinese and _is_chinese(code)):
            found = f" {letter} "
        else:
            found = letter.lower() if self._lower else letter
        self[code] = found
        return found


def _is_punctuation(letter: str) -> bool:
    return category(letter)[0] == "P" or ("!" <= letter <= "~" and letter not in _ASCII_LETTERS)


def _is_chinese(code: int) -> bool:
    return any(first <= code <= last for first, last in _CHINESE)


_LETTERS = Letters(True, True, True, True, True)


def words_of(text: str) -> list[str]:
    """The words of a text: in lower case, without accents; each punctuation mark and Chinese character is one."""
    return normalize("NFD", text).translate(_LETTERS).split()


def longest_pieces(word: str, numbers: Mapping[str, int], inside: str, longest: int) -> list[int]:
    """The longest piece first, then the longest of the rest, named with `inside` before; none where that is not all."""
    found, start, end = list[int](), 0, len(word)
    while start < len(word) <= longest:
        number = numbers.get(f"{inside}{word[start:end]}" if start else word[:end])
        if number is not None:
            found.append(number)
            start, end = end, len(word)
        elif (end := end - 1) == start:
            break
    return found if start == len(word) else []


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
        found = longest_pieces(word, self._numbers, "##", LONGEST) or [self._numbers[UNKNOWN]]
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        self._kept[word] = found
        return found
