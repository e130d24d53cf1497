"""`measure load-test`: its visits against a server that answers, refuses, or ends in the middle."""

import asyncio

import pytest

from build_scripts.bench.crowd import Crowd, told

PATHS = ["/", "/a.js", "/big.bin", "/empty"]
BODIES = {"/": b"<p>", "/a.js": b"x" * 1000, "/big.bin": bytes(3_000_000), "/empty": b""}


def gathered(broken: str = "", visits: int = 5) -> dict[str, object]:
    """The figures of a crowd before a server of four files; one of them may be refused or cut off."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            path = line.split()[1].decode() if line.startswith(b"GET ") else ""
            while (await reader.readline()).strip():
                pass
            body = BODIES.get(path, b"ok")
            status = b"503 Busy" if broken == "refused" and path == "/a.js" else b"200 OK"
            writer.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n" % (status, len(body)))
            cut = broken == "cut" and path == "/big.bin"
            writer.write(body[:1000] if cut else body)
            if cut:
                break
        writer.close()

    async def both() -> dict[str, object]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        crowd = Crowd(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", PATHS, 20.0)
        await crowd.gather(visits, 0 if broken else 2, 0)
        server.close()
        return crowd.figures(visits, 12.0)

    return asyncio.run(both())


def test_every_visit_gets_every_file() -> None:
    figures = gathered()
    assert (figures["whole"], figures["files"], figures["troubles"]) == (5, 4, {})
    assert 15 <= int(str(figures["received_mb"])) <= 16
    assert told(figures).startswith("5 of 5 visits got all of their 4 files")


@pytest.mark.parametrize(("broken", "trouble"), [("refused", "status 503"), ("cut", "the connection ended")])
def test_a_visit_without_all_of_its_files_has_failed(broken: str, trouble: str) -> None:
    figures = gathered(broken)
    assert (figures["whole"], figures["troubles"]) == (0, {trouble: 5})
    assert f"5 failed: {trouble}" in told(figures)
