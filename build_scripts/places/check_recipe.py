"""Reads the recipe and lock files with the classes of the Pyodide project; runs where these are installed.

python check_recipe.py FOLDER_OF_RECIPES LOCK …      prints what the recipe says, as JSON
"""

import json
import sys
from pathlib import Path

from pyodide_build.recipe.loader import load_all_recipes
from pyodide_lock import PyodideLockSpec

recipe = load_all_recipes(Path(sys.argv[1]))["webinfer"]
locks = [PyodideLockSpec.from_json(Path(name)) for name in sys.argv[2:]]
for lock in locks:
    lock.check_wheel_filenames()
facts = {
    "name": recipe.package.name,
    "version": recipe.package.version,
    "source": str(recipe.source.path),
    "requires": recipe.requirements.run,
    "summary": recipe.about.summary,
    "license": recipe.about.license,
    "locks": [[lock.info.python, sorted(lock.packages)] for lock in locks],
}
print(json.dumps(facts))
