"""The step and the verb around the kernel compiler."""

from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.kernels.compile import BUILDS, constants_files
from build_scripts.kernels.described import INPUTS
from build_scripts.kernels.kernel_list import read_constants
from build_scripts.paths import ENGINE, KERNELS, ROOT
from build_scripts.steps import Step

KERNEL_TABLE = ENGINE / "backends" / "wasm" / "kernel_table.py"
SOURCES = ROOT / "kernels_wasm"
SCRIPTS = sorted(Path(__file__).parent.glob("*.py"))


def kernels_step() -> Step:
    """The step that compiles kernels_wasm/ and generates the engine's tables of kernels and constants."""
    builds = tuple(KERNELS / f"webinfer-{build}.wasm" for build in BUILDS)
    return Step(
        "kernels", "compile the WASM kernels with zig cc",
        inputs=lambda: [SOURCES / "kernels.toml", SOURCES / "src", SOURCES / "include", *SCRIPTS, *INPUTS],
        outputs=(*builds, KERNEL_TABLE, *constants_files(read_constants())), action=_build, stamp=KERNELS / ".stamp",
    )  # fmt: skip


def _build() -> None:
    from build_scripts.kernels import compile as kernels

    if kernels.main([]):
        raise BuildError("the WASM kernels could not be built; the compiler says why above")


def run(argv: list[str]) -> int:
    """Compiles the kernels with the options of `compile.py`."""
    from build_scripts.kernels import compile as kernels

    return kernels.main(argv)
