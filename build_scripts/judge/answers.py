"""What the judge of the model table answers: inputs that make every output say something, and the wanted outputs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from build_scripts.judge.backends import definition
from build_scripts.judge.comparison import Comparison, compared, silent_outputs
from build_scripts.judge.model_inputs import IDS, Inputs, model_inputs, more_inputs, takes_photos
from build_scripts.judge.zoo_judge import NUDGES, Array, Judge, JudgeCrashed, nudged

AT_A_TIME = 4  # other inputs that are tried together: each time all inputs run again


class NotJudged(RuntimeError):
    """Why nobody can say whether a model is right."""


@dataclass(frozen=True)
class Asked:
    """A model, the judge, the file that the runtime runs for the model, and the runtime's name if it can run it."""

    model: Path
    file: Path
    judge: Judge
    host: Any
    runtime: str | None


@dataclass
class Answers:
    """Inputs, what the judge makes of them, and what that cannot decide."""

    judge: str
    inputs: list[Inputs]
    wanted: list[list[Array]]
    silent: dict[int, str]  # outputs by number, and why agreement in them says nothing
    spread: Comparison | None = None  # of the judge's own results, with inputs that differ by a rounding
    times: float = 0.0  # so far ours may be off


async def answers_of(asked: Asked, session: Any, photos: Sequence[Path]) -> Answers:
    """The judge's outputs for the usual inputs, and for others while an output stays the same whatever goes in.

    Raises:  NotJudged if the runtime takes none of these inputs, or images are wanted and there are no photos
    """
    infos = session.inputs
    if takes_photos(infos) and not photos:
        raise NotJudged("it takes photos, and there are none")
    name, ids, inputs, wanted = await _first_answers(asked, infos, photos)
    answers = Answers(name, inputs, wanted, silent_outputs(wanted))
    others = list(more_inputs(infos, photos, ids))
    for more in (others[start : start + AT_A_TIME] for start in range(0, len(others), AT_A_TIME)):
        if not answers.silent:
            break
        try:
            wanted = await _wanted(asked, name, [*answers.inputs, *more])  # all in a row: a model may keep a state
        except Exception:  # inputs that nobody expects
            continue
        answers.inputs, answers.wanted = [*answers.inputs, *more], wanted
        answers.silent = silent_outputs(answers.wanted)
    return answers


async def _first_answers(
    asked: Asked, infos: Sequence[Any], photos: Sequence[Path]
) -> tuple[str, int, list[Inputs], list[list[Array]]]:
    """Who answered, the largest index that it took, the inputs and its outputs."""
    name = asked.runtime or definition()
    refusal = Exception()
    for ids in IDS if asked.file.suffix != ".json" else IDS[-2:]:  # TensorFlow.js reads beyond tables without a word
        inputs = model_inputs(infos, photos, ids)
        try:
            return name, ids, inputs, await _wanted(asked, name, inputs)
        except JudgeCrashed:
            return definition(), IDS[-2], inputs, await _wanted(asked, definition(), inputs)
        except Exception as error:  # errors of runtimes have no common base but this
            refusal = error
    if asked.runtime is None:
        raise refusal
    raise NotJudged(f"{name} takes none of the inputs: {type(refusal).__name__}: {refusal}")


async def _wanted(asked: Asked, name: str, inputs: Sequence[Inputs]) -> list[list[Array]]:
    if name != definition():
        return asked.judge.run(asked.file, inputs)
    return await _referee(asked.host, asked.model, inputs)


def spread_of(judge: Judge, model: Path, answers: Answers, other: bool = True) -> Comparison:
    """How far the judge's own results move, by channel: with inputs that differ by a rounding, with `other` kernels."""
    moved = [judge.run(model, nudged(answers.inputs, by)) for by in NUDGES]
    try:
        moved += filter(None, [judge.other(model, answers.inputs) if other else None])
    except Exception:  # other kernels need not run all models
        pass
    return compared([run for runs in moved for run in runs], answers.wanted * len(moved))


async def outputs_of(session: Any, inputs: Sequence[Inputs]) -> tuple[list[list[Array]], float]:
    """The session's outputs for each of the inputs, in the model's order, and its shortest run in milliseconds."""
    results, times = [], []
    for named in inputs:
        start = time.perf_counter()
        outputs = await session.run(named)
        times.append(1e3 * (time.perf_counter() - start))
        results.append([outputs[info.name].numpy().copy() for info in session.outputs])
    return results, min(times)


async def _referee(host: Any, model: Path, inputs: Sequence[Inputs]) -> list[list[Array]]:
    from webinfer.session.loading import load

    with await load(model, backend=definition(), host=host) as session:
        return (await outputs_of(session, inputs))[0]
