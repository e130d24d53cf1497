"""What a page must know before its engine runs, read from the engine itself: part of the site's manifest."""

import sys
from dataclasses import asdict
from importlib import import_module
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.paths import ENGINE
from build_scripts.setup.task_models import late_packages


def page_facts() -> dict[str, Any]:
    """What pages know of the engine.

    `messages`: the version of the messages; `backends`: those a page offers, the first by default; `models`: the files
    of each known model in the manifest; `late`: of files that are fetched when they are asked for the package that has
    them; `packages`: the megabytes of each; `tasks`: how their results are shown.
    """
    sys.path.insert(0, str(ENGINE.parent))
    try:
        facts: dict[str, Any] = import_module("webinfer.page.facts").facts_for_pages()
        known = import_module("webinfer.models.registry").MODELS
        tasks = import_module("webinfer.tasks")
    except ModuleNotFoundError as error:
        raise BuildError(f"the site needs {error.name}; run `python3 -m build_scripts build kernels`") from error
    finally:
        sys.path.remove(str(ENGINE.parent))
    models = {name: [f"models/{file}" for file in (row.file, *dict(row.beside))] for name, row in known.items()}
    packages = late_packages()
    late = {file: name for name, (_, files) in packages.items() for file in files}
    sizes = {name: megabytes for name, (megabytes, _) in packages.items()}
    names = (*tasks.TASKS, *tasks.GIVEN_MODEL_TASKS)
    schemas = {name: asdict(tasks.task_class(name).result) for name in names}
    return {**facts, "models": models, "late": late, "packages": sizes, "tasks": schemas}
