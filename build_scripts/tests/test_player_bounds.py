"""What the player reads of a package whose rows or whose file end elsewhere: the bytes that a row says, or an error."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build_scripts.site.player import SOURCE
from build_scripts.tests.in_node import answer_of, node
from webinfer.package.container import ALIGNMENT, HEAD, MAGIC, MAX_BYTES, VERSION, Writer

__all__ = ["node"]  # a fixture

READS = """
import { readFileSync } from "node:fs";
const [player, cases, hashes] = process.argv.slice(2);
if (hashes === "no") Object.defineProperty(globalThis, "crypto", { value: {} }); // as in pages over plain http
const { PackageFile, part } = await import(player);
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const said = async (read) => {
  try {
    return await read();
  } catch (error) {
    return error.name === "PlayerError" ? `${error.name} ${error.code}` : `${error.name}: ${error.message}`;
  }
};
const found = [];
for (const { file, section, at, nbytes } of JSON.parse(readFileSync(cases))) {
  const bytes = new Uint8Array(Buffer.from(file, "hex"));
  const stretch = () => hex(part(bytes, at, nbytes));
  const whole = async () => hex(await (await PackageFile.open(bytes)).section(section));
  found.push(await said(section === null ? stretch : whole));
}
process.stdout.write(JSON.stringify(found));
"""
TENSORS = """
const [tensors] = process.argv.slice(2);
const { bytesOf, tensorOf } = await import(tensors);
const said = (read) => { try { return read(); } catch (error) { return `${error.name} ${error.code}`; } };
const rows = [["x", "float32", [2, 3]], ["x", "uint8", []], ["x", "int64", [4]], ["x", "bool", [0, 5]],
  ["x", "complex64", [1]],
  ["x", "float32", [-1]], ["x", "float32", [1.5]], ["x", "float32", [2 ** 52, 2]], ["x", "int16", [2 ** 53]]];
const found = rows.map((row) => said(() => { const { length, nbytes } = tensorOf(row); return [length, nbytes]; }));
const tensor = tensorOf(["x", "float32", [2, 3]]);
const given = [new Float32Array(6), new Uint8Array(24), new ArrayBuffer(24), [1, 2, 3, 4, 5, 6],
  { data: new Float32Array(6) },
  new Float32Array(5), new Float32Array(7), new Uint8Array(23), new Uint8Array(25), new Int32Array(6),
  [1], undefined, "text"];
found.push(...given.map((value) => said(() => bytesOf(value, tensor).length)));
process.stdout.write(JSON.stringify(found));
"""
ERRORS = ("PlayerError package", "PlayerError integrity")


def package() -> bytes:
    """A file with a section as it is, a packed one, and one of JSON."""
    writer = Writer()
    writer.weights(bytes(range(48)))
    writer.sections["packed"] = b"once more " * 40
    writer.sections["plan"] = b'{"top": 7}'
    return writer.file({"name": "small"})


def parts_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and all that is behind it."""
    *_, length, _ = HEAD.unpack_from(data)
    end = HEAD.size + length
    return json.loads(data[HEAD.size : end]), data[-(-end // ALIGNMENT) * ALIGNMENT :]


def put_together(header: dict[str, Any], rest: bytes) -> bytes:
    """The file with this header, whose own SHA-256 is right."""
    text = json.dumps(header).encode()
    gap = bytes(-(HEAD.size + len(text)) % ALIGNMENT)
    return HEAD.pack(MAGIC, VERSION, len(text), hashlib.sha256(text).digest()) + text + gap + rest


def wanted(row: list[Any], rest: bytes, total: int, hashes: bool) -> str | None:
    """The hexadecimal bytes that a row says, None where it must be refused."""
    _, at, stored, size, sha256 = row
    if (
        not all(type(n) is int and 0 <= n < 2**53 for n in (at, stored, size))
        or total > MAX_BYTES
        or at + stored > len(rest)
    ):
        return None
    data = rest[at : at + stored]
    if hashes and hashlib.sha256(data).hexdigest() != sha256:
        return None
    if stored != size:
        unpacking = zlib.decompressobj()
        try:
            data = unpacking.decompress(data)
        except zlib.error:
            return None
        if len(data) != size or not unpacking.eof or unpacking.unused_data:
            return None
    return data.hex()


def rows(hashes: bool) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """Each number of each row replaced by others, beside what must be read."""
    header, rest = parts_of(package())
    for place, row in enumerate(header["sections"]):
        for column, name in ((1, "first byte"), (2, "bytes"), (3, "bytes when unpacked")):
            own = row[column]
            numbers = (-1, 0, own - 1, own, own + 1, own + 16, len(rest), len(rest) + 1, 2**31, 2**31 + 1, 2**53, 1.5)
            for number in (*numbers, -own - 1, None, str(own), [own]):
                if row[2] != row[3] and column == 2 and not hashes and number in (own - 1, own + 1, own + 16):
                    continue  # too little of its checksum, or zeros behind it: browsers refuse that, Node does not
                other = [*row]
                other[column] = number
                sections = [other if i == place else each for i, each in enumerate(header["sections"])]
                total = sum(each[3] for each in sections) if isinstance(other[3], (int, float)) else 0
                file = put_together({**header, "sections": sections}, rest)
                case = {"file": file.hex(), "section": row[0]}
                yield f"{name} of {row[0]} is {number!r}", case, wanted(other, rest, total, hashes)


def totals() -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """Another section that unpacks to so much that all together are as large as may be, or a byte larger."""
    header, rest = parts_of(package())
    *others, last = header["sections"]
    for more in (0, 1):
        size = MAX_BYTES + more - sum(row[3] for row in others)
        file = put_together({**header, "sections": [*others, [*last[:3], size, last[4]]]}, rest)
        case = {"file": file.hex(), "section": "weights"}
        yield f"{more} bytes too many in all", case, None if more else bytes(range(48)).hex()


def lengths() -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """The file cut off in each of its parts, and with bytes behind it."""
    data = package()
    header, rest = parts_of(data)
    base = len(data) - len(rest)
    ends = [base + at + stored for _, at, stored, *_ in header["sections"]]
    for length in sorted(
        {0, 1, 8, 15, 16, 47, 48, base - 20, base, *ends, *(end - 1 for end in ends), len(data), len(data) + 9}
    ):
        for row in header["sections"]:
            file = (data + bytes(9))[:length]
            whole = base + row[1] + row[2] <= length
            yield (
                f"{length} bytes, {row[0]}",
                {"file": file.hex(), "section": row[0]},
                wanted(row, rest, 0, True) if whole else None,
            )


def stretches() -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """Some of a section's bytes: each first byte and number around its ends."""
    data, numbers = bytes(range(8)), (-1, 0, 1, 7, 8, 9, 2**31, 2**53, 0.5, None)
    for at in numbers:
        for nbytes in numbers:
            inside = all(type(n) is int and n >= 0 for n in (at, nbytes)) and at + nbytes <= len(data)  # type: ignore[operator]
            right = data[at : at + nbytes].hex() if inside else None  # type: ignore[operator, misc]
            yield f"{nbytes} bytes from {at}", {"file": data.hex(), "section": None, "at": at, "nbytes": nbytes}, right


def test_tensors_have_the_bytes_of_their_elements_and_take_no_others(node: str, tmp_path: Path) -> None:
    (tmp_path / "tensors.mjs").write_text(TENSORS)
    command = [node, tmp_path / "tensors.mjs", (SOURCE / "src" / "tensors.js").as_uri()]
    found = answer_of(command, 120)
    assert found[:9] == [[6, 24], [1, 1], [4, 32], [0, 0], *["PlayerError package"] * 5]
    assert found[9:] == [24] * 5 + ["PlayerError input"] * 8


@pytest.mark.parametrize("hashes", [True, False], ids=["with SHA-256", "without"])
def test_the_player_reads_what_rows_say_and_nothing_beyond(hashes: bool, node: str, tmp_path: Path) -> None:
    cases = [*rows(hashes), *totals(), *lengths(), *stretches()]
    (tmp_path / "cases.json").write_text(json.dumps([case for _, case, _ in cases]))
    (tmp_path / "reads.mjs").write_text(READS)
    player = (SOURCE / "src" / "package_file.js").as_uri()
    command = [node, tmp_path / "reads.mjs", player, tmp_path / "cases.json", "yes" if hashes else "no"]
    found = answer_of(command, 120)
    wrong = {
        name: (said, right)
        for (name, _, right), said in zip(cases, found, strict=True)
        if (said not in ERRORS if right is None else said != right)
    }
    assert not wrong, wrong
    assert sum(right is not None for *_, right in cases) > 20
