"""Files that lie beside a model: its tokenizer and what says how it wants its pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from webinfer.errors import InputError, ModelFormatError
from webinfer.host.hub import located
from webinfer.host.interface import Host


async def found_beside(model: Any, name: str, host: Host) -> memoryview | None:
    """The bytes of a file in the folder of a model that is a path or a URL, or in the folder above, as on a hub.

    None where there is no such file, or the model is given as bytes.
    """
    if not isinstance(model, (str, PurePath)):
        return None
    place = str(await located(str(model), host.fetch))
    for inside in (place, place.rpartition("/")[0]):
        with suppress(ModelFormatError):
            if inside:
                return await host.fetch(host.beside(inside, name))
    return None


async def json_beside(model: Any, name: str, given: Any, host: Host) -> Mapping[str, Any]:
    """What a JSON file says: the one that is `given` as bytes or as a mapping, else the one beside the model, if any.

    Raises:  InputError if it is not a JSON object
    """
    data = given if given is not None else await found_beside(model, name, host)
    try:
        found = data if isinstance(data, Mapping) else json.loads(bytes(data)) if data is not None else {}
        if isinstance(found, Mapping):
            return found
    except (TypeError, ValueError):
        pass
    raise InputError(f"the {name} is not a JSON object")
