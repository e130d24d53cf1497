"""Damaged bytes are recognised: stored ones are made anew, damaged kernels are a typed error."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.session.models import model

import webinfer
from build_scripts.kernels.compile import with_checksum
from webinfer.errors import IntegrityError
from webinfer.host import cache_folder, kernels_native
from webinfer.host.checksums import sealed, unsealed
from webinfer.host.native import NativeHost
from webinfer.package import compile_model

NAME = "webinfer-relaxed-native.wasm"
BUILT = kernels_native.kernel_folder()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of what is stored, empty; no module is compiled yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernels_native.compiled_build.cache_clear()
    yield tmp_path / "webinfer"
    kernels_native.compiled_build.cache_clear()


def damages(data: bytes) -> Iterator[bytes]:
    """The bytes, damaged as disks and connections do."""
    chance = random.Random(0)
    flipped = bytearray(data)
    flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    yield bytes(flipped)
    yield data[: len(data) // 3] + b"\xee" * (len(data) // 3) + data[len(data) // 3 * 2 :]
    yield data[:-1]
    yield data[: len(data) // 2]
    yield data + b"\0"
    yield b""


def test_sealed_bytes_come_back_and_damaged_ones_do_not(caplog: pytest.LogCaptureFixture) -> None:
    data = bytes(range(256)) * 4
    whole = sealed(data)
    assert unsealed("it", whole) == data
    assert not caplog.records
    for damaged in damages(whole):
        caplog.clear()
        assert unsealed("it", damaged) is None
        assert caplog.messages == ["it was stored here and is damaged; it is made anew"]


def test_a_damaged_file_of_the_cache_folder_is_removed(cache: Path) -> None:
    async def spoiled() -> list[str | None]:
        host = NativeHost()
        await host.remember("note", "text")
        (cache / "note").write_bytes((cache / "note").read_bytes().replace(b"x", b"s"))
        return [await host.recall("note"), await host.recall("note")]

    assert asyncio.run(spoiled()) == [None, None]
    assert not list(cache.iterdir())


@pytest.fixture
def module(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel module that compiles at once, in the place of the built ones."""
    (tmp_path / "webinfer-scalar.wasm").write_bytes(b"")
    (tmp_path / NAME).write_bytes(with_checksum(b"\0asm\1\0\0\0"))
    monkeypatch.setenv("WEBINFER_KERNELS", str(tmp_path))
    return tmp_path / NAME


def test_a_damaged_kernel_module_is_a_typed_error(module: Path) -> None:
    small = module.read_bytes()
    every = [*damages(small), *damages((BUILT / NAME).read_bytes())]
    for damaged in every:
        module.write_bytes(damaged)
        with pytest.raises(IntegrityError, match=NAME):
            asyncio.run(webinfer.load(model(), backend="wasm"))
    module.write_bytes(small)
    kernels_native.compiled_build("relaxed")


def test_damaged_machine_code_is_not_run(cache: Path, module: Path, caplog: pytest.LogCaptureFixture) -> None:
    kernels_native.compiled_build("relaxed")
    (file,) = cache.glob("machine-code.*")
    whole = file.read_bytes()
    for damaged in damages(whole):
        file.write_bytes(damaged)
        caplog.clear()
        kernels_native.compiled_build.cache_clear()
        kernels_native.compiled_build("relaxed")
        assert caplog.messages == [f"{file.name} was stored here and is damaged or not of this user; it is made anew"]
        assert file.read_bytes() == whole


def test_machine_code_of_another_compiler_is_made_anew(cache: Path, module: Path) -> None:
    kernels_native.compiled_build("relaxed")
    (file,) = cache.glob("machine-code.*")
    whole = file.read_bytes()
    cache_folder.remember(file.name, b"of another version")
    kernels_native.compiled_build.cache_clear()
    kernels_native.compiled_build("relaxed")
    assert file.read_bytes() == whole


def test_machine_code_of_few_modules_is_kept(cache: Path) -> None:
    for number in range(5):
        cache_folder.remember(f"machine-code.{number}", b"code", "machine-code.", 3)
        os.utime(cache / f"machine-code.{number}", (number, number))
    assert sorted(file.name for file in cache.iterdir()) == [f"machine-code.{number}" for number in (2, 3, 4)]


def test_a_packages_machine_code_is_stored_beside_that_of_builds(cache: Path) -> None:
    """A worker that opens a package compiles its module once on a machine, not at each start."""
    package = asyncio.run(compile_model(model(), backend="wasm", builds=("simd128",), threads=False))

    def run() -> bytes:
        with webinfer.load_sync(package, backend="wasm", threads=1) as session:
            return b"".join(tensor.tobytes() for tensor in session.run(session.noise(1)).values())

    wanted = run()
    (file,) = cache.glob("package-code.*")
    whole, made = file.read_bytes(), file.stat().st_mtime_ns
    assert (run(), file.stat().st_mtime_ns) == (wanted, made)
    file.write_bytes(whole[:-1])
    assert (run(), file.read_bytes()) == (wanted, whole)
