"""What the wheel of a checkout holds besides the engine's Python files: shaders, compiled kernels, scripts.

An installation has no server to fetch them from, neither in CPython nor in a third-party page. Hatchling, which
pyproject.toml names as the build backend, runs this hook and does the rest: files, metadata, entry point, archive.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OF_THE_SITE = ("app.py", "docs.py", "packages.py", "routes_api.py", "routes_docs.py")  # modules that no lab imports
LAB_TEMPLATES = ("_trouble", "base", "engine", "lab", "page", "problem")


class NativeWheelHook(BuildHookInterface):  # type: ignore[misc]
    """Compiles the kernels, and adds them, the shaders and the scripts to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before files are collected. An editable installation reads shaders and kernels from the checkout."""
        root = Path(self.root)
        subprocess.run([sys.executable, "-m", "build_scripts.kernels.compile"], cwd=root, check=True)
        if version == "editable":
            return
        shaders, kernels, scripts = (
            root / "web" / "shaders",
            root / "build" / "kernels",
            root / "build" / "wheel_scripts",
        )
        included: dict[str, str] = build_data["force_include"]
        for path in sorted(shaders.rglob("*.wgsl")):
            included[str(path)] = f"webinfer/_shaders/{path.relative_to(shaders).as_posix()}"
        for path in sorted(kernels.glob("*.wasm")):
            included[str(path)] = f"webinfer/_kernels/{path.name}"
        signatures = root / "build" / "generated" / "kernel_signatures.py"
        included[str(signatures)] = f"webinfer/backends/wasm/{signatures.name}"
        table = root / "build" / "published.json"
        for module, target in (("site.bundle", scripts), ("setup.published", table)):
            subprocess.run([sys.executable, "-m", f"build_scripts.{module}", str(target)], cwd=root, check=True)
        included[str(table)] = "webinfer/_published.json"
        for path in sorted(scripts.iterdir()):
            place = (
                f"_lab/static/{path.name.removeprefix('lab_')}"
                if path.name.startswith("lab_")
                else f"_static/{path.name}"
            )
            included[str(path)] = f"webinfer/{place}"
        for path in lab_server(root / "server"):
            included[str(path)] = f"webinfer/_lab/{path.relative_to(root).as_posix()}"


def lab_server(folder: Path) -> list[Path]:
    """The files of the server that a lab needs: its modules but those of the site, its page, the table of pages."""
    modules = [path for path in (*folder.glob("*.py"), *folder.glob("lab/*.py")) if path.name not in OF_THE_SITE]
    templates = [folder / "templates" / f"{name}.html" for name in LAB_TEMPLATES]
    return sorted([*modules, *templates, folder / "pages.toml"])
