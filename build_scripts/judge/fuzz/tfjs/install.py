"""Where TensorFlow.js lies, and the step that installs it; without NumPy, which `test` itself has yet to install."""

from pathlib import Path

from build_scripts.setup.node import npm_ci_step
from build_scripts.steps import Step

FOLDER = Path(__file__).parent
MODULES = FOLDER / "node_modules"


def tfjs_step() -> Step:
    """The step that installs TensorFlow.js from npm."""
    what = "npm ci in build_scripts/judge/fuzz/tfjs/: TensorFlow.js"
    return npm_ci_step("tfjs", what, FOLDER, "@tensorflow/tfjs-core/package.json")
