"""Files are written whole or stay what they were: on full disks, in folders that nobody may write, beside others."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from webinfer.host import cache_folder
from webinfer.host.whole_files import write_folder, write_whole


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the first four bytes of a file and no more."""
    whole = Path.write_bytes

    def some(file: Path, data: bytes) -> int:
        whole(file, data[:4])
        if len(data) > 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(data)

    monkeypatch.setattr(Path, "write_bytes", some)


def test_a_file_is_replaced_and_a_link_to_it_stays_one(tmp_path: Path) -> None:
    file, link = tmp_path / "näme of 1.webinfer", tmp_path / "link"
    write_whole(file, b"first")
    link.symlink_to(file)
    write_whole(link, b"second")
    assert (file.read_bytes(), link.is_symlink()) == (b"second", True)
    assert sorted(tmp_path.iterdir()) == sorted([file, link])


def test_a_device_is_written_to_and_stays_one() -> None:
    write_whole(Path("/dev/null"), b"anything")
    assert Path("/dev/null").is_char_device()


def test_a_full_disk_leaves_the_file_of_before_and_nothing_else(tmp_path: Path, full_disk: None) -> None:
    file = tmp_path / "x.webinfer"
    write_whole(file, b"old")
    with pytest.raises(OSError, match=r"No space left on device: '.*x\.webinfer'"):
        write_whole(file, b"new and longer")
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (b"old", [file])


def test_a_full_disk_leaves_the_folder_of_before_and_nothing_else(tmp_path: Path, full_disk: None) -> None:
    folder = tmp_path / "site"
    with pytest.raises(OSError, match="No space"):
        write_folder(folder, {"a": b"new and longer"})
    assert not folder.exists()
    write_folder(folder, {"a": b"1", "b": b"2"})
    with pytest.raises(OSError, match=r"No space left on device: '.*site'"):
        write_folder(folder, {"a": b"3", "c": b"new and longer"})
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {"a": b"1", "b": b"2"}
    assert list(tmp_path.iterdir()) == [folder]
    (folder / "more").mkdir()
    write_folder(folder, {"c": b"4"})
    assert [file.name for file in folder.iterdir()] == ["c"]


def test_a_place_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere/x"):
        write_whole(tmp_path / "nowhere" / "x", b"")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises((NotADirectoryError, FileExistsError), match="file/x"):
        write_folder(tmp_path / "file" / "x", {})


def test_a_cache_on_a_full_disk_keeps_nothing_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_disk: None
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_folder.remember("plan.1", b"data")
    assert cache_folder.recall("plan.1") is None
    assert list((tmp_path / "webinfer").iterdir()) == []


def test_many_at_once_leave_one_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    datas = [bytes([n]) * 100_000 for n in range(8)]
    with ThreadPoolExecutor(8) as several:
        list(several.map(lambda data: cache_folder.remember("model", data), datas * 4))
    assert bytes(cache_folder.recall("model") or b"") in datas
    assert [file.name for file in (tmp_path / "webinfer").iterdir()] == ["model"]
