"""The WebGPU backend: graphs become dispatches, dispatches become one recorded submit.

`backend` is what the registry finds, `lowerings` says what runs, `schedule` on which blocks, `memory` and `aliasing`
where they lie, `executor` makes a `recipe` of it, `loaded_program` loads and replays that, `stored_plan` brings it into
the plan cache and back, `tuning` chooses kernels by timing, `compilation` builds with what is known, `ahead` begins
before the device is there.
Knows no model format and no other backend; the device is the host's.
"""

from webinfer.lazy import lazy_names

# What compiles comes when it is asked for: who runs packages does without lowerings.
__getattr__ = lazy_names(
    __name__,
    {
        "BACKEND": ".backend", "WebGpuExecutor": ".executor", "build": ".compilation", "LOWERINGS": ".lowerings",
        "UNSUPPORTED": ".lowerings",
    },
)  # fmt: skip
