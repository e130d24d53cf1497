"""Writes a site that times WebGPU kernels alone: every candidate of every distinct product of some models.

The page needs neither Python nor a server of ours: shaders are rendered here, and all that the engine would
ask of a GPU is recorded as plain data that the page replays.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from build_scripts.bench.kernel_cases import MODELS, case_of, fused_cases, nodes, whole_of
from build_scripts.bench.sum_cases import sum_cases
from build_scripts.paths import BENCHMARKS


def write_kernel_site(site: Path, models: Path) -> int:
    """The site; open its kernels.html on the machine with the GPU. The number of cases."""
    texts: dict[str, int] = {}
    files: dict[str, list[dict[str, Any]]] = {"sums": list(sum_cases(texts))}
    for group, label, node in nodes(models):
        case = case_of(label, node, texts)
        if case["variants"]:
            files.setdefault(group, []).append(case)
    for name in MODELS:
        files.setdefault("fused", []).extend(fused_cases(models, name, texts))
        files.setdefault("whole", []).append(whole_of(models, name, texts))
    write_page(site, files, texts)
    return sum(len(cases) for cases in files.values())


def write_page(site: Path, files: Mapping[str, Sequence[dict[str, Any]]], texts: Mapping[str, int]) -> None:
    """The page with the cases of each group and the shaders that they name."""
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(BENCHMARKS / "kernels", site)
    for group, cases in files.items():
        (site / f"{group}.json").write_text(json.dumps(cases, separators=(",", ":")))
    (site / "shaders.json").write_text(json.dumps(list(texts), separators=(",", ":")))
