"""The rivals: their npm packages, and which files of these a page needs."""

import shutil
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import BENCHMARKS
from build_scripts.setup.node import npm_ci
from build_scripts.steps import Step

MODULES = BENCHMARKS / "node_modules"
BARE_IMPORTS = {'"@litertjs/wasm-utils"': '"./wasm-utils.js"'}  # what a bundler would do

TFJS = "@tensorflow/tfjs-"
RIVALS: dict[str, dict[str, str]] = {
    "litertjs": {
        "index.js": "@litertjs/core/dist/index.js",
        "wasm-utils.js": "@litertjs/wasm-utils/dist/index.js",
        **{
            f"wasm/{name}": f"@litertjs/core/wasm/{name}"
            for build in ("litert_wasm_internal", "litert_wasm_threaded_internal")
            for name in (f"{build}.js", f"{build}.wasm")
        },
    },
    "ortweb": {
        name: f"onnxruntime-web/dist/{name}"
        for name in (
            *("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"),
            *("ort.webgpu.min.mjs", "ort-wasm-simd-threaded.asyncify.mjs", "ort-wasm-simd-threaded.asyncify.wasm"),
        )
    },
    "tfjs": {
        "tf-core.min.js": f"{TFJS}core/dist/tf-core.min.js",
        "tf-converter.min.js": f"{TFJS}converter/dist/tf-converter.min.js",
        **{
            f"tf-backend-{kind}.min.js": f"{TFJS}backend-{kind}/dist/tf-backend-{kind}.min.js"
            for kind in ("cpu", "wasm", "webgpu")
        },
        **{
            f"tfjs-backend-wasm{build}.wasm": f"{TFJS}backend-wasm/dist/tfjs-backend-wasm{build}.wasm"
            for build in ("", "-simd", "-threaded-simd")
        },
    },
}
ONLY_FOR = {  # files that one backend alone needs
    "wasm": ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm",
             "wasm/litert_wasm_threaded_internal.js", "wasm/litert_wasm_threaded_internal.wasm",
             "tf-backend-wasm.min.js", "tfjs-backend-wasm"),
    "webgpu": ("ort.webgpu.min.mjs", "ort-wasm-simd-threaded.asyncify", "tf-backend-webgpu"),
}  # fmt: skip


def rivals_step() -> Step:
    """The step that installs the rivals from npm."""
    modules = BENCHMARKS / "node_modules"
    return Step(
        "rivals", "npm ci in e2e_tests/benchmarks/: LiteRT.js, ONNX Runtime Web, TF.js",
        inputs=lambda: [BENCHMARKS / "package.json", BENCHMARKS / "package-lock.json"],
        outputs=(modules / "@litertjs" / "core" / "dist" / "index.js",), action=lambda: npm_ci(BENCHMARKS),
        stamp=modules / ".webinfer-stamp",
    )  # fmt: skip


def copy_script(source: Path, target: Path) -> None:
    """Copies a rival's file; bare imports become paths."""
    if not source.is_file():
        raise BuildError(f"{source.relative_to(BENCHMARKS)} is missing; delete {MODULES} and start again")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".js" and "litertjs" in target.parts:
        text = source.read_text()
        for bare, path in BARE_IMPORTS.items():
            text = text.replace(bare, path)
        target.write_text(text)
    else:
        shutil.copyfile(source, target)
