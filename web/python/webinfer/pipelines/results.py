"""What a task found, as a list that prints, plots, saves and converts itself. One class for all tasks: their schemas
(`tasks.base.ResultSchema`) say what the fields are.
"""

from __future__ import annotations

import array
import csv
import dataclasses
import html
import importlib
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from webinfer.errors import InputError
from webinfer.host.whole_files import write_whole
from webinfer.session.reports import table
from webinfer.tasks.base import ResultSchema, Size

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
CLEAR = (".png", ".webp", ".gif", ".tif", ".tiff")  # of these, those that may be transparent
MANY = 16  # numbers of a list that a table shows


class Results(list[Any]):
    """What a task found in one source: its typed results, in order.

    `print` shows a table, a notebook shows the picture. `source` is the file's path or address, "" for things in
    memory; `size` are width and height of a picture; `times` are milliseconds: prepare_ms, infer_ms, decode_ms.
    """

    def __init__(
        self,
        found: Iterable[Any],
        task: str,
        schema: ResultSchema,
        source: str = "",
        picture: Any = None,
        times: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(found)
        self.task, self.schema, self.source = task, schema, source
        self.times = dict(times or {})
        self._picture = picture

    @property
    def size(self) -> Size | None:
        """Width and height of the picture; None for results of other things, and where nothing was found."""
        sizes = [size for one in self if (size := getattr(one, "image_size", None)) is not None]
        return sizes[0] if sizes else None

    # ----- data

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values: `task`, `source`, `image_size` and `results`.

        Masks are run lengths as COCO writes them, but row by row: {"size": [height, width], "counts": [of 0, of 1, …]},
        of pixels from 0.5 on; maps of numbers have "numbers" beside the counts.
        """
        found = {"task": self.task, "source": self.source, "results": [plain(one) for one in self]}
        return found | ({"image_size": list(self.size)} if self.size else {})

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def rows(self) -> list[dict[str, Any]]:
        """A flat row for each result: box_left, box_top, …, score, category_label, …; lists are JSON."""
        return [{"source": self.source, **_flat(plain(one))} for one in self]

    def to_dataframe(self) -> Any:
        """`rows` as a DataFrame of pandas, or of polars where that alone is installed.

        Raises:  InputError if neither is
        """
        return dataframe(self.rows())

    # ----- shown

    def __str__(self) -> str:
        head = f"{self.schema.title}: {len(self)}" + (f" in {self.source}" if self.source else "")
        if not self:
            return head
        columns = [field.name for field in self.schema.fields if hasattr(self[0], field.name)]
        cells = [[str(i + 1), *(shown(getattr(one, name)) for name in columns)] for i, one in enumerate(self)]
        return f"{head}\n{table(['#', *columns], cells)}"

    def _repr_html_(self) -> str:
        return f"{self._picture_html()}<pre>{html.escape(str(self))}</pre>"

    def _picture_html(self) -> str:
        """The picture as HTML, no wider than a notebook; nothing where none can be drawn."""
        import base64

        try:
            image = self.plot()
        except InputError:  # no Pillow, or nothing to draw on
            return ""
        image.thumbnail((960, 720))
        data = io.BytesIO()
        image.save(data, "PNG")
        text = base64.b64encode(data.getvalue()).decode()
        return f'<img alt="{html.escape(self.schema.title)}" src="data:image/png;base64,{text}">'

    def plot(self) -> Any:
        """The picture with what was found drawn on it, as an image of Pillow; a chart for results of other things.

        Of background removal it is the subject alone, with transparency around it.

        Raises:  InputError if Pillow is not installed, or the picture cannot be drawn on
        """
        from webinfer.pipelines.drawing import drawn

        return drawn(self, self._picture)

    def show(self) -> None:
        """Opens `plot()` in the system's viewer; in a notebook displays it."""
        try:
            display = importlib.import_module("IPython.display").display
            in_notebook = importlib.import_module("IPython").get_ipython() is not None
        except ImportError:
            in_notebook = False
        if in_notebook:
            display(self.plot())
        else:
            self.plot().show()

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes a picture, or JSON, JSON lines or CSV, by the path's suffix; returns the path.

        Raises:  InputError for other suffixes; what `plot` raises
        """
        text, suffix = os.fspath(path), Path(path).suffix.lower()
        Path(text).parent.mkdir(parents=True, exist_ok=True)
        if suffix in PICTURES:
            image = self.plot()
            (image if suffix in CLEAR else on_white(image)).save(text)
        else:
            write_whole(Path(text), written([self], suffix, text).encode())
        return text


def on_white(image: Any) -> Any:
    """An image of Pillow for files without transparency: in front of white."""
    if image.mode != "RGBA":
        return image
    white = image.copy()
    white.paste((255, 255, 255, 255), (0, 0, *image.size))
    white.alpha_composite(image)
    return white.convert("RGB")


class Batch(list[Results]):
    """The results of several sources, in their order."""

    def to_dict(self) -> list[dict[str, Any]]:
        """`Results.to_dict` of each."""
        return [one.to_dict() for one in self]

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of all, with the column `source`."""
        return [row for one in self for row in one.rows()]

    def to_dataframe(self) -> Any:
        """`rows` as a DataFrame. Raises: InputError if neither pandas nor polars is installed."""
        return dataframe(self.rows())

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self)

    def plot(self) -> list[Any]:
        """`Results.plot` of each."""
        return [one.plot() for one in self]

    def show(self) -> None:
        """`Results.show` of each."""
        for one in self:
            one.show()

    def save(self, path: str | os.PathLike[str]) -> list[str]:
        """Writes one file of JSON, JSON lines or CSV, or into a folder a picture for each source.

        Raises:  InputError if the path is that of a single picture; what `plot` raises
        """
        text, suffix = os.fspath(path), Path(path).suffix.lower()
        if suffix in PICTURES:
            raise InputError(f"{text!r} is a single picture, but there are {len(self)} results; give a folder")
        if suffix:
            Path(text).parent.mkdir(parents=True, exist_ok=True)
            write_whole(Path(text), written(self, suffix, text).encode())
            return [text]
        folder = Path(text)
        folder.mkdir(parents=True, exist_ok=True)
        names = unique_stems([Path(one.source).stem or str(i) for i, one in enumerate(self)])
        return [one.save(folder / f"{name}.png") for one, name in zip(self, names, strict=True)]


def unique_stems(stems: Sequence[str]) -> list[str]:
    """The same names; those that came before get a number."""
    seen: dict[str, int] = {}
    found = []
    for stem in stems:
        seen[stem] = seen.get(stem, 0) + 1
        found.append(stem if seen[stem] == 1 else f"{stem}-{seen[stem]}")
    return found


def written(batch: Sequence[Results], suffix: str, path: str) -> str:
    """Results as the text of a file with this suffix.

    Raises:  InputError naming the suffixes that there are
    """
    if suffix == ".json":
        return (
            batch[0].to_json(2) if isinstance(batch, list) and type(batch) is list else Batch(batch).to_json(2)
        ) + "\n"
    if suffix == ".jsonl":
        return "".join(f"{one.to_json()}\n" for one in batch)
    if suffix == ".csv":
        rows = [row for one in batch for row in one.rows()]
        names = list(dict.fromkeys(name for row in rows for name in row))
        file = io.StringIO()
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return file.getvalue()
    raise InputError(
        f"{path!r} ends in {suffix!r}; results are saved as {', '.join((*PICTURES, '.json', '.jsonl', '.csv'))}"
    )


def dataframe(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as a DataFrame of pandas or polars.

    Raises:  InputError if neither is installed
    """
    for name in ("pandas", "polars"):
        try:
            return importlib.import_module(name).DataFrame(list(rows))
        except ImportError:
            continue
    raise InputError("a DataFrame needs pandas or polars, and neither is installed: pip install pandas")


def plain(value: Any) -> Any:
    """A result as plain Python values: numbers, text, lists and dictionaries."""
    if hasattr(value, "width") and hasattr(value, "values") and isinstance(getattr(value, "values", None), memoryview):
        return _plain_mask(value)
    if hasattr(value, "xyz"):  # landmarks
        return [plain(one) for one in value]
    if dataclasses.is_dataclass(value):
        found = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {name: one for name, one in found.items() if one is not None and name != "image_size"}
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, memoryview | array.array):
        return list(value)
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def _plain_mask(mask: Any) -> dict[str, Any]:
    size = [mask.height, mask.width]
    found: dict[str, Any] = {}
    for field in dataclasses.fields(mask):
        value = getattr(mask, field.name)
        if isinstance(value, memoryview):
            found[field.name] = {"size": size, **run_lengths(value)}
        elif field.name not in ("width", "height"):
            found[field.name] = plain(value)
    return found


def run_lengths(values: memoryview) -> dict[str, list[int]]:
    """Runs of equal pixels: of 0 and 1 in turns, for probabilities from 0.5 on; of any "numbers" else."""
    if values.format == "f":
        bits = bytes(value >= 0.5 for value in values.cast("B").cast("f"))
        runs = _runs(bits)
        return {"counts": [count for _, count in (runs if runs and not runs[0][0] else [(0, 0), *runs])]}
    runs = _runs(bytes(values))
    return {"numbers": [number for number, _ in runs], "counts": [count for _, count in runs]}


def _runs(data: bytes) -> list[tuple[int, int]]:
    """Each byte with how often it stands in a row."""
    import itertools

    return [(number, sum(1 for _ in group)) for number, group in itertools.groupby(data)]


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, one in value.items():
        if isinstance(one, Mapping) and not {"size", "counts"} <= one.keys():
            row |= _flat(one, f"{prefix}{name}_")
        else:
            row[f"{prefix}{name}"] = json.dumps(one, ensure_ascii=False) if isinstance(one, list | dict) else one
    return row


def shown(value: Any) -> str:
    """A field's value as a cell of a table."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, memoryview):
        return f"{value.nbytes // value.itemsize} values"
    if hasattr(value, "left") and hasattr(value, "width"):
        return f"({value.left:.1f}, {value.top:.1f}) {value.width:.1f} x {value.height:.1f}"
    if hasattr(value, "label"):
        return str(value.label or f"class {getattr(value, 'index', '')}")
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {shown(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        more = ", …" if len(value) > MANY else ""
        return f"({', '.join(map(shown, value[:MANY]))}{more})"
    return repr(value) if hasattr(value, "xyz") or dataclasses.is_dataclass(value) else str(value)
