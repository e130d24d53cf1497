"""marimo: the documentation's notebook, exported by `marimo export html-wasm` and opened in a browser.

marimo, its runtime for pages and what that needs come from the package index, Pyodide's files from npm. The
page asks two servers for them; here both are played. The lock file that marimo's server has is Pyodide's own with
marimo's packages added; all other requests that leave the site fail.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Route

from build_scripts.errors import BuildError
from build_scripts.paths import BROWSER_WHEELS, BUILD, ROOT, WHEELS, settings
from build_scripts.places.guest_site import LOCK, documented, fulfil, guest_site, stand_in_for_pyodide
from build_scripts.places.notebooks import WANTED, own_environment
from build_scripts.places.probe import MODEL
from build_scripts.setup.downloads import lock_row
from build_scripts.setup.environment import pip
from build_scripts.setup.task_models import npm_members
from build_scripts.site.wheel import wheel_name

PLACE = BUILD / "places" / "marimo"
ENVIRONMENT = BUILD / "places" / "marimo-environment"
LIMIT_S = 200
PLATFORM = ("--only-binary", ":all:", "--python-version", "3.14", "--platform", "pyemscripten_2026_0_wasm32")


def in_marimo(browser: Browser) -> str:
    """What the documentation's notebook shows after its export."""
    site = _exported()
    context = browser.new_context()
    page = context.new_page()
    said: list[str] = []
    refused: list[str] = []
    page.on("console", lambda message: said.append(message.text[:300]))
    try:
        with guest_site(files={"/": site}) as address:
            _stand_in(context, address, refused)
            page.goto(f"{address}/index.html")
            shown = page.get_by_text(WANTED).last
            shown.wait_for(timeout=LIMIT_S * 1e3)
            text = shown.inner_text().strip()
    except Exception as error:
        raise BuildError(f"{str(error)[:200]}\n{said[-6:]}\nnot answered: {refused[-6:]}") from error
    finally:
        context.close()
    return f"the page shows {text!r}"


def _exported() -> Path:
    """The folder that marimo makes of the notebook, with the wheel and the model in it."""
    own_environment(ENVIRONMENT, settings()["places"]["marimo"])
    shutil.rmtree(PLACE, ignore_errors=True)
    (PLACE / "public").mkdir(parents=True)
    (PLACE / "notebook.py").write_text(documented("python marimo"))
    shutil.copy(MODEL, PLACE / "public")
    shutil.copy(WHEELS / wheel_name(), PLACE)
    programs = ENVIRONMENT / "bin"
    environment = {**os.environ, "PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}
    command = [str(programs / "marimo"), "export", "html-wasm", "notebook.py", "-o", "site", "--no-sandbox"]
    done = subprocess.run(command, cwd=PLACE, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode or not (PLACE / "site" / "public" / "wheels" / wheel_name()).is_file():
        raise BuildError(f"marimo export fails in {PLACE.relative_to(ROOT)}: {(done.stdout + done.stderr)[-600:]}")
    return PLACE / "site"


def _stand_in(context: BrowserContext, address: str, refused: list[str]) -> None:
    """Answers for Pyodide's server and for marimo's, and for no other."""
    pyodide, wheels = _pyodide(), _wheels()
    lock = json.loads((pyodide / LOCK).read_text())
    for name, path in wheels.items():
        depends = settings()["places"]["marimo_page"]["depends"].get(name, [])
        lock["packages"][name] = lock_row(name, path.name.split("-")[1], path, [], depends)

    def answer(route: Route) -> None:
        url = route.request.url
        if urlsplit(url).path == f"/{LOCK}":
            fulfil(route, {f"/{LOCK}": json.dumps(lock)}, f"/{LOCK}")
        elif url.startswith(address):
            route.fallback()
        else:
            refused.append(url[:120])
            route.abort()

    context.route("**/*", answer)  # the last that is added is asked first
    stand_in_for_pyodide(context, {**{f"/{path.name}": path for path in wheels.values()}, "/": pyodide})


def _pyodide() -> Path:
    """Pyodide of the version that marimo's page asks for, as npm publishes it."""
    folder = BUILD / "places" / "marimo-pyodide"
    if not (folder / LOCK).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in npm_members(settings()["places"]["marimo_page"]["pyodide"]).items():
            (folder / name.rpartition("/")[2]).write_bytes(data)
    return folder


def _wheels() -> dict[str, Path]:
    """Packages that the page installs before a notebook begins, and the wheel's own dependencies, by name."""
    folder, wanted = BUILD / "places" / "marimo-wheels", settings()["places"]["marimo_page"]["wheels"]
    stamp = folder / "wanted.txt"
    if not stamp.is_file() or stamp.read_text() != " ".join(wanted):
        shutil.rmtree(folder, ignore_errors=True)
        pip("download", "--quiet", "--no-deps", "--dest", str(folder), *PLATFORM, *wanted)
        _build_pure(settings()["places"]["marimo_page"]["pure"], folder)
        stamp.write_text(" ".join(wanted))
    found = [*folder.glob("*.whl"), *BROWSER_WHEELS.glob("[jm]*.whl")]
    return {path.name.partition("-")[0].replace("_", "-").lower(): path for path in found}


def _build_pure(requirement: str, folder: Path) -> None:
    """Builds a wheel without its C part, which no wheel of the index has for pages, and names it for every platform."""
    own = requirement.partition("==")[0]  # what builds it, such as Cython, may come as a wheel
    options = ("--quiet", "--no-deps", "--no-binary", own, "--wheel-dir", str(folder / "built"))
    pip("wheel", *options, requirement, extra_environment={"CC": "/bin/false"})
    for path in (folder / "built").glob("*.whl"):
        name, number = path.name.split("-")[:2]
        path.rename(folder / f"{name}-{number}-py3-none-any.whl")
