"""Byte ranges: which parts of a file a client asks for.

Source: RFC 9110, sections 14.1 and 14.2: what is not a byte range is ignored, not refused
"""

import re

MAX_RANGES = 16  # parts in one answer; who asks for more gets the whole file
_SPEC = re.compile(r"(\d{0,18})-(\d{0,18})", re.ASCII)
Span = tuple[int, int]  # first and last byte


def requested_ranges(header: str, size: int) -> list[Span] | None:
    """The spans of a Range header in a file of `size` bytes; None if the header has to be ignored.

    An empty list: the header is right, and no byte of the file is in its ranges.
    """
    unit, _, text = header.partition("=")
    specs = [spec.strip() for spec in text.split(",")]
    if unit.strip().lower() != "bytes" or len(specs) > MAX_RANGES:
        return None
    spans = []
    for spec in specs:
        match = _SPEC.fullmatch(spec)
        if match is None or spec == "-":
            return None
        first, last = match.groups()
        begin = int(first) if first else max(size - int(last), 0)
        end = min(int(last), size - 1) if first and last else size - 1
        if first and last and int(last) < begin:
            return None
        if begin < size and (first or int(last) > 0):
            spans.append((begin, end))
    return spans
