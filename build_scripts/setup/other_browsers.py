"""Firefox and WebKitGTK, the browsers beside Chromium that the tests drive: as the distribution has them."""

import shutil
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.setup.chromium import apt_install

EXPECTED = "WEBINFER_EVERY_BROWSER"  # 1: a test that lacks one of them fails
FIREFOXES = ("firefox-esr", "firefox")
WEBKIT_PROGRAMS = ("WebKitWebDriver", "broadwayd")  # the driver, and a display that needs no screen
MINI_BROWSERS = ("/usr/lib/*/webkit2gtk-4.*/MiniBrowser", "/usr/libexec/webkit2gtk-4.*/MiniBrowser")
PACKAGES = ("firefox-esr", "webkit2gtk-driver", "libgtk-3-bin")


def firefox() -> Path | None:
    """The program, or None where there is none."""
    return next((Path(found) for name in FIREFOXES if (found := shutil.which(name))), None)


def webkit() -> Path | None:
    """The small browser around WebKitGTK; None where it, its driver or a display for it is missing."""
    found = sorted(path for pattern in MINI_BROWSERS for path in Path("/").glob(pattern[1:]))
    return found[-1] if found and all(map(shutil.which, WEBKIT_PROGRAMS)) else None


def install() -> tuple[Path, Path]:
    """Firefox and WebKitGTK's browser, installed where they are missing.

    Raises: BuildError if one cannot be installed
    """
    if not (firefox() and webkit()):
        apt_install(*PACKAGES)
    here, there = firefox(), webkit()
    if here is None or there is None:
        missing = " and ".join(n for n, found in (("Firefox", here), ("WebKitGTK's driver", there)) if found is None)
        raise BuildError(f"{missing} cannot be installed; on Debian: apt-get install {' '.join(PACKAGES)}")
    return here, there
