"""The judge of zero-shot tasks: transformers' own pipelines, over small models with random weights."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from build_scripts.judge import exporters
from build_scripts.judge.apart import answers_of
from build_scripts.judge.rows import Row
from build_scripts.steps import run_steps

SCRIPT = "zero_shot_answers.py"
LIMIT_S, A_PHOTO_S = 900, 10
FARTHEST = 5e-3  # of a score: CLIP multiplies by 100 what one step of a pixel moves
SEES, READS = "zero-shot-image-classification", "zero-shot-classification"
FILES = {  # of models that are not one model.onnx
    "clip": {"model": "onnx/model.onnx"},
    "clip, two files": {"model": "onnx/vision_model.onnx", "text_model": "onnx/text_model.onnx"},
}


async def rows(folder: Path, photos: Sequence[Path], backend: str) -> list[Row]:
    """A row for each model. `folder` is for models and answers."""
    run_steps([exporters.pytorch_step()])
    output, limit_s = folder / "zero_shot.json", LIMIT_S + A_PHOTO_S * len(photos)
    quiet = {"TRANSFORMERS_VERBOSITY": "error", **os.environ}
    told = answers_of("transformers", exporters.ENVIRONMENT, SCRIPT, output, (output, folder, *photos), limit_s, quiet)
    found = []
    for name, asked in told["models"].items():
        cases = [case for case in FILES if case.startswith(name)] or [name]
        for case in cases:
            files = FILES.get(case, {"model": "model.onnx"})
            options = {option: folder / name / file for option, file in files.items()}
            found.append(await _row(case, {**options, "candidate_labels": told["labels"], "backend": backend}, asked))
    return found


async def _row(name: str, options: dict[str, Any], asked: list[Any]) -> Row:
    """How far our scores are from the judge's, and how often the same label is the best one."""
    from webinfer.tasks import task_class

    sees = "image" in asked[0][0]
    task_name = SEES if sees else READS
    farthest, same = 0.0, 0
    with await task_class(task_name).create(**options) as task:
        for question, scores in asked:
            given = dict(question)
            found = await task.run(given.pop("image" if sees else "text"), **given)
            gaps = [abs(one.score - scores[one.label]) for one in found]
            farthest, same = max(farthest, *gaps), same + (found[0].label == max(scores, key=scores.__getitem__))
    near = farthest <= FARTHEST
    return Row(f"{task_name} {name}", f"{len(asked)} questions", same, len(asked), f"{farthest:.1e} of a score", near)
