"""The Python that a demo is, in the lines that its page shows and runs."""

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
NAMES = {  # by the demo's source: what is given, what it is, how results are shown, what is printed
    "picture": ("picture", "what the page shows", "over the picture", COUNT),
    "sound": ("recording", "samples, and how many of them a second", "over the waveform", COUNT),
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
    arguments = [repr(demo.task), repr(demo.model), *(f"{name}={value!r}" for name, value in values.items())]
    lines = "".join(f"\n    {one}," for one in arguments).replace("'", '"') + "\n"
    name, says, shown, told = NAMES[demo.source]
    return LINES.format(arguments=lines, name=name, says=says, shown=shown, told=told)
