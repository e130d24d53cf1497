"""The verbs. A new one is one row here and a module with `run(argv) -> int` in one of the rooms."""

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Verb:
    """One verb: its module below build_scripts, the dependency groups that its module imports, and what it does."""

    module: str
    groups: tuple[str, ...]
    what: str

    def run(self, argv: list[str]) -> int:
        """The exit status of the verb."""
        status: int = import_module(f"build_scripts.{self.module}").run(argv)
        return status


BASE = ("server", "build")
ALL = ("server", "build", "browser", "native", "test", "lab")

VERBS: dict[str, Verb] = {
    "demo": Verb("site.demo", BASE, "set up, build, serve the demo; `--headless` detects and prints"),
    "serve": Verb("site.serve", BASE, "set up, build, serve the site; `--lab` lets browsers be devices of a program"),
    "test": Verb("judge.run_tests", BASE, "the same set-up and Chromium, then every check and every test"),
    "check": Verb("judge.check", ALL, "all that needs no device; `--fix` repairs, `--docstrings` lists what has none"),
    "setup": Verb("setup.sequence", BASE, "everything that demo does before it serves"),
    "kernels": Verb("kernels.step", BASE, "compile the WASM kernels"),
    "wheel": Verb("site.wheel", ("build",), "build the wheel that users install"),
    "player": Verb("site.player", ("build", "node"), "the npm package that runs compiled models; `--pack` archives it"),
    "bench": Verb(
        "bench.compare", (*ALL, "bench"), "webinfer and its rivals in one page, interleaved: JSON, table, chart"
    ),
    "tune": Verb("bench.tune", ALL, "GPU kernels timed in headless Chromium; `--ship` makes default tunings of logs"),
    "interop": Verb(
        "bench.interop",
        ALL,
        "a custom operator through a shared GPU buffer and through host memory, timed",
    ),
    "frames": Verb("bench.frames", ALL, "frames a second of camera tasks, beside MediaPipe's packages for pages"),
    "text": Verb("bench.text", ALL, "a language model's prompt and answer speed in tokens/s, next to wllama"),
    "throughput": Verb(
        "bench.throughput", ALL, "MobileNet v2 in batches and matrix products on a GPU, beside PyTorch's"
    ),
    "startup": Verb("bench.startup", (*BASE, "browser"), "time from opening the page to its first result, by phase"),
    "player_visits": Verb("bench.player_visits", ALL, "time from opening the player's demo to its first box; bytes"),
    "dump": Verb("judge.dump", ALL, "what the models of a folder are compiled to; `--compare A B` of two dumps"),
    "mutate": Verb(
        "judge.mutate", ALL, "damaged and hostile models give a right result or a typed error, nothing else"
    ),
    "mutants": Verb("mutants.survey", (*ALL, "mutants"), "small mistakes in the code: how many do the tests notice?"),
    "oracle": Verb("judge.oracle", ALL, "the WebNN cases on every backend: right, unsupported, wrong"),
    "wpt": Verb("judge.wpt", ALL, "the W3C's tests of WebNN with our `navigator.ml`, in headless Chromium"),
    "soak": Verb("judge.soak", ALL, "the page for half an hour while GPU, workers, server and stored files break"),
    "onnx_cases": Verb("judge.onnx_cases", ALL, "the node cases of the package onnx on every backend"),
    "fuzz": Verb("judge.fuzz.survey", ALL, "random graphs on every backend, judged by their format's runtime"),
    "zoo": Verb("judge.zoo", ALL, "every model of a folder on every backend, judged by its format's runtime"),
    "crowd": Verb(
        "bench.crowd", ALL, "2,000 first visits at once, beside slow clients: who is served, how long it takes"
    ),
    "places": Verb(
        "places.survey", ALL, "the wheel in pages, notebooks and interpreters of others: a table of what works"
    ),
    "export": Verb(
        "site.export", BASE, "the site, one demo of it, or a package with a page, as files for any static host"
    ),
    "pyodide": Verb(
        "places.pyodide_recipe", BASE, "the recipe for the Pyodide distribution: checked by pyodide-build, and built"
    ),
    "profile_runtime": Verb(
        "site.profile_runtime", ALL, "records which functions of Python's runtime pages run: only these come at once"
    ),
    "models": Verb(
        "setup.task_models", (), "fetch models of tasks into build/models: of all packages, or those that are named"
    ),
    "tasks": Verb(
        "judge.tasks",
        ALL,
        "what tasks find in photos, recordings, text and files, beside what their models' makers find",
    ),
    "lock": Verb("setup.pins", (), "resolve the pins again and write the constraints file"),
    "sizes": Verb("judge.sizes", (), "sizes of files and products against their budgets"),
    "tables": Verb("judge.tables", (), "check the generated tables of README and documentation; `--write` renews them"),
}
