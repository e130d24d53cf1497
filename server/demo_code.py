"""The Python that a demo is, in the lines that its page shows and runs."""

import json
from collections.abc import Mapping

from server.studio import Demo

LINES = """\
import webinfer

# The task of this page, with its model.
# backend can be "webgpu" or "wasm", too.
task = await webinfer.pipeline({arguments})

# `{name}` is {says}.
found = await task.run({name})
show(found)  # {shown}

{told}
print("on", task.session.backend)
display(task.times)
"""
COUNT = 'print(f"{task.result.title}: {len(found)}")'
SCRIPT = """\
import webinfer

task = webinfer.pipeline({arguments})
results = task({given})
print(results)
results.save("results.png")
"""
GIVEN = {
    "picture": "photo.jpg",
    "sound": "recording.wav",
    "file": "document.pdf",
}  # names of files, by the demo's source
NAMES = {  # by the demo's source: what is given, what it is, how results are shown, what is printed
    "picture": ("picture", "what the page shows", "over the picture", COUNT),
    "sound": ("recording", "samples, and how many of them a second", "over the waveform", COUNT),
    "one text": ("text", "a text", "below the text", COUNT),
    "text": (
        "texts",
        "a list: the sentence, then the lines",
        "beside the texts",
        "print(found[0].similarity(found[1]))",
    ),
    "file": ("data", "the file: its bytes", "beside the bytes", "print(found[0])"),
}


def code_of(demo: Demo, options: Mapping[str, object]) -> str:
    """The lines of a demo with these options of its task."""
    values = {"backend": "auto", **options}
    lines = _arguments(demo, values, "model")
    name, says, shown, told = NAMES[_kind(demo)]
    return LINES.format(arguments=lines, name=name, says=says, shown=shown, told=told)


def script_of(demo: Demo, options: Mapping[str, object]) -> str:
    """The same for a script of one's own, where the wheel is installed: it reads a file and writes a picture."""
    texts: dict[str, str | list[str]] = {"text": list(demo.texts), "one text": "".join(demo.texts[:1])}
    given = texts.get(_kind(demo)) or GIVEN[demo.source]
    return SCRIPT.format(arguments=_arguments(demo, options), given=_listed(given))


def _kind(demo: Demo) -> str:
    """A row of NAMES: the demo's source, and whether it takes one text or several."""
    return "one text" if demo.source == "text" and len(demo.texts) == 1 else demo.source


def _arguments(demo: Demo, options: Mapping[str, object], own: str = "") -> str:
    """Of the pipeline; `own` is the variable that holds the user's file, else it is read by its name."""
    model = repr(demo.model) if demo.model else own or '"model.onnx"'
    beside = [file for file in demo.files if file.name != "model" and not file.optional]
    files = [
        f"{file.name}={file.name}" if own else f'{file.name}=open("{file.name}{file.accept}", "rb").read()'
        for file in beside
    ]
    options = {**options, **({demo.labels: list(demo.usual_labels)} if demo.usual_labels else {})}
    arguments = [repr(demo.task), model, *files, *(f"{name}={value!r}" for name, value in options.items())]
    return "".join(f"\n    {one}," for one in arguments).replace("'", '"') + "\n"


def _listed(given: str | list[str]) -> str:
    if isinstance(given, str):
        return f'"{given}"'
    return "[" + "".join(f"\n    {json.dumps(text, ensure_ascii=False)}," for text in given) + "\n]"
