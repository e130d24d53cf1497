"""What a page must know before its engine runs, read from the engine itself: part of the site's manifest."""

import sys
from dataclasses import asdict
from importlib import import_module
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.paths import ENGINE
from build_scripts.setup.task_models import late_packages

AUTO_TITLE, AUTO_HINT = "Auto", "The fastest that works here"


def page_facts() -> dict[str, Any]:
    """What pages know of the engine.

    `messages`: the version of the messages; `backends`: those a page offers, the first by default; `models`: the files
    of each known model in the manifest; `late`: of files that are fetched when they are asked for the package that has
    them; `packages`: the megabytes of each; `tasks`: how their results are shown.
    """
    sys.path.insert(0, str(ENGINE.parent))
    try:
        registry = import_module("webinfer.backends.registry")
        version: int = import_module("webinfer.page.messages").VERSION
        known = import_module("webinfer.models.registry").MODELS
        tasks = import_module("webinfer.tasks").TASKS
    except ModuleNotFoundError as error:
        raise BuildError(f"the site needs {error.name}; run `python3 -m build_scripts kernels`") from error
    finally:
        sys.path.remove(str(ENGINE.parent))
    offered = [row for row in registry.ROWS.values() if row.role is registry.Role.INFERENCE]
    auto = {"name": registry.AUTO, "title": AUTO_TITLE, "hint": AUTO_HINT}
    backends = [auto, *({"name": row.name, "title": row.title, "hint": row.hint} for row in offered)]
    models = {name: [f"models/{file}" for file in (row.file, *dict(row.beside))] for name, row in known.items()}
    packages = late_packages()
    late = {file: name for name, (_, files) in packages.items() for file in files}
    sizes = {name: megabytes for name, (megabytes, _) in packages.items()}
    schemas = {name: asdict(task.result) for name, task in tasks.items()}
    facts = {"messages": version, "backends": backends, "models": models}
    return {**facts, "late": late, "packages": sizes, "tasks": schemas}
