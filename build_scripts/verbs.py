"""The verbs. A new one is one row here and a module with `run(argv) -> int`."""

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Verb:
    """One verb: its module, the dependency groups that its module imports, and what it does."""

    module: str
    groups: tuple[str, ...]
    what: str

    def run(self, argv: list[str]) -> int:
        """The exit status of the verb."""
        status: int = import_module(self.module).run(argv)
        return status


BASE = ("server", "build")
ALL = ("server", "build", "browser", "native", "test")

VERBS: dict[str, Verb] = {
    "demo": Verb("build_scripts.demo", BASE, "set up, build, serve the demo; `--headless` detects and prints"),
    "test": Verb("build_scripts.run_tests", ALL, "the same set-up and Chromium, then every check and every test"),
    "check": Verb("build_scripts.check", ALL, "format, lint, types, sizes, tables, layers and ring 0; `--fix` repairs"),
    "setup": Verb("build_scripts.setup", BASE, "everything that demo does before it serves"),
    "kernels": Verb("build_scripts.setup_kernels", BASE, "compile the WASM kernels"),
    "wheel": Verb("build_scripts.wheel", (), "build the engine's wheel"),
    "bench": Verb("build_scripts.bench", ALL, "webinfer and its rivals in one page, interleaved: JSON, table, chart"),
    "tune": Verb(
        "build_scripts.tune", ALL, "GPU kernels timed in headless Chromium; `--ship` makes logs shipped choices"
    ),
    "interop": Verb(
        "build_scripts.interop", ALL, "a custom operator through a shared GPU buffer and through host memory, timed"
    ),
    "throughput": Verb(
        "build_scripts.throughput", ALL, "MobileNet v2 in batches and matrix products on a GPU, beside PyTorch's"
    ),
    "startup": Verb(
        "build_scripts.startup", (*BASE, "browser"), "time from opening the page to its first result, by phase"
    ),
    "mutate": Verb("build_scripts.mutate", ALL, "damaged model files give a result or a typed error, nothing else"),
    "oracle": Verb("build_scripts.oracle", ALL, "the WebNN cases on every backend: right, unsupported, wrong"),
    "zoo": Verb("build_scripts.zoo", ALL, "every .tflite model of a folder on every backend, judged by LiteRT"),
    "lock": Verb("build_scripts.lock", (), "resolve the pins again and write the constraints file"),
    "sizes": Verb("build_scripts.sizes", (), "sizes of files and products against their budgets"),
    "tables": Verb("build_scripts.tables", (), "check the README's generated tables; `--write` renews them"),
}
