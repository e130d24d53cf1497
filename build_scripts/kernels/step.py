"""The step and the verb around the kernel compiler."""

from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.kernels.compile import BUILDS
from build_scripts.kernels.described import INPUTS
from build_scripts.paths import ENGINE, KERNELS, ROOT, SIGNATURES
from build_scripts.steps import Step

CONSTANTS = ENGINE / "kernel_constants.py"
SOURCES = ROOT / "kernels_wasm"
SCRIPTS = sorted(Path(__file__).parent.glob("*.py"))


def kernels_step() -> Step:
    """The step that compiles kernels_wasm/ and generates the engine's table of their signatures."""
    builds = tuple(KERNELS / f"webinfer-{build}.wasm" for build in BUILDS)
    return Step(
        "kernels", "compile the WASM kernels with zig cc",
        inputs=lambda: [SOURCES / "kernels.toml", SOURCES / "src", SOURCES / "include", CONSTANTS, *SCRIPTS, *INPUTS],
        outputs=(*builds, SIGNATURES), action=_build, stamp=KERNELS / ".stamp",
    )  # fmt: skip


def _build() -> None:
    from build_scripts.kernels import compile as kernels

    if kernels.main([]):
        raise BuildError("the WASM kernels could not be built; the compiler says why above")


def run(argv: list[str]) -> int:
    """Compiles the kernels with the options of `compile.py`."""
    from build_scripts.kernels import compile as kernels

    return kernels.main(argv)
