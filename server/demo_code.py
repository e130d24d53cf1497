"""The Python that a demo is, in the lines that its page shows and runs."""

from collections.abc import Mapping

from server.studio import Demo

LINES = """\
import webinfer

# The task of this page, with its model.
# backend can be "webgpu" or "wasm", too.
task = await webinfer.pipeline({arguments})

# `picture` is what the page shows.
found = await task.run(picture)
show(found)  # over the picture

print(f"{{task.result.title}}: {{len(found)}}")
print("on", task.session.backend)
display(task.times)
"""


def code_of(demo: Demo, options: Mapping[str, object]) -> str:
    """The lines of a demo with these options of its task; none for one that does not take a picture."""
    if "picture" not in demo.inputs:
        return ""
    values = {"backend": "auto", **options}
    arguments = [repr(demo.task), repr(demo.model), *(f"{name}={value!r}" for name, value in values.items())]
    return LINES.format(arguments="".join(f"\n    {one}," for one in arguments).replace("'", '"') + "\n")
