"""`webinfer cache ls | rm | path`: what this machine keeps of models, plans and machine code."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from webinfer.errors import InputError, meant
from webinfer.host import cache_folder, current, hub, kept_downloads
from webinfer.lazy_dataclass import dataclass

PUBLISHED = "published-"  # begins the names of files that packages brought
OTHERS = "plans, tunings and machine code"


@dataclass(frozen=True, slots=True)
class Row:
    """What `ls` prints of one thing, and how it is removed."""

    name: str
    size: int
    time: float
    note: str
    remove: Callable[[], Any]


def add_cache_verb(verbs: Any) -> None:
    """Adds the parser."""
    text = "list, remove or find files in the cache folder"
    sub = verbs.add_parser("cache", help=text, description=f"{text}; WEBINFER_CACHE names another folder, or is off")
    actions = sub.add_subparsers(required=True, metavar="ls|rm|path")
    listing = actions.add_parser("ls", help="print size, date and name of each cached model")
    listing.set_defaults(verb=_listed)
    removing = actions.add_parser("rm", help="remove models by name, address or pattern")
    removing.add_argument(
        "names", nargs="*", metavar="NAME", help="as `ls` prints it, hf:owner/name/file, or a pattern"
    )
    removing.add_argument("--all", action="store_true", help="all of it, plans and machine code too")
    removing.set_defaults(verb=_removed)
    finding = actions.add_parser("path", help="print the path of the cache folder, or of a downloaded model")
    finding.add_argument("name", nargs="?", help="an address as `ls` prints it, or hf:owner/name/file")
    finding.set_defaults(verb=_path)


def rows() -> tuple[list[Row], list[Row]]:
    """The models that are kept, and all else.

    Raises:  InputError if nothing is kept
    """
    place = _folder()
    models = [
        Row(one.url, one.size, one.time, "" if one.whole else "begun", partial(kept_downloads.removed, one))
        for one in kept_downloads.listed()
    ]
    others: list[Row] = []
    for file in sorted(path for path in place.iterdir() if path.is_file()):
        told = file.stat()
        name = file.name.removeprefix(PUBLISHED)
        if file.name.startswith(kept_downloads.ENTRY):
            continue
        row = Row(name, told.st_size, told.st_mtime, "", partial(cache_folder.forget, file.name))
        (models if name != file.name else others).append(row)
    return models, others


async def _listed(args: argparse.Namespace) -> int:
    models, others = rows()
    for row in models:
        day = time.strftime("%Y-%m-%d", time.localtime(row.time))
        print(f"{_bytes(row.size):>9}  {day}  {row.name}{row.note and f'  ({row.note})'}")
    if others:
        newest = time.strftime("%Y-%m-%d", time.localtime(max(row.time for row in others)))
        print(f"{_bytes(sum(row.size for row in others)):>9}  {newest}  {OTHERS} ({len(others)} files)")
    print(f"{_bytes(sum(row.size for row in models + others)):>9}  in {_folder()}", file=sys.stderr)
    return 0


async def _removed(args: argparse.Namespace) -> int:
    if bool(args.names) == args.all:
        raise InputError("webinfer cache rm: give names of models as `webinfer cache ls` prints them, or --all")
    models, others = rows()
    chosen = models + others if args.all else []
    for name in args.names:
        address = await _address(name)
        fitting = [row for row in models if row.name in (name, address) or fnmatchcase(row.name, name)]
        if not fitting:
            raise InputError(f"no model {name!r} is kept{meant(name, (row.name for row in models))}")
        chosen += [row for row in fitting if row not in chosen]
    for row in chosen:
        row.remove()
    print(f"{len(chosen)} removed, {_bytes(sum(row.size for row in chosen))} freed")
    return 0


async def _path(args: argparse.Namespace) -> int:
    place = _folder()
    if args.name is None:
        print(place)
        return 0
    address = await _address(args.name)
    found = next((one for one in kept_downloads.listed() if one.whole and one.url == address), None)
    if found is None:
        raise InputError(f"{args.name!r} was not downloaded; `webinfer cache ls` prints what is kept")
    print(found.file)
    return 0


async def _address(name: str) -> str:
    return await hub.located(name, current().fetch) if name.startswith(hub.SCHEME) else name


def _folder() -> Any:
    place = cache_folder.folder()
    if place is None:
        raise InputError("nothing is kept: WEBINFER_CACHE is off, or the folder is not of this user alone")
    return place


def _bytes(count: float) -> str:
    units = ["GB", "MB", "kB", "B"]
    while count >= 1000 and len(units) > 1:
        count, _ = count / 1000, units.pop()
    return f"{count:.{0 if units[-1] == 'B' or count >= 100 else 1}f} {units[-1]}"
