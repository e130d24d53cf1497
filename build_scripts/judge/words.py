"""The judges of tasks on sound, text and bytes: what their models' own packages say, beside what we say."""

import json
import os
import subprocess
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from build_scripts.errors import BuildError
from build_scripts.judge import pages
from build_scripts.judge.apart import answers_of, environment_step
from build_scripts.judge.decoded import path_of
from build_scripts.judge.rows import Row, edits
from build_scripts.judge.runtimes import litert_run
from build_scripts.paths import BUILD, KERNELS, MODELS, PAGE_ENGINE, ROOT, WEB, settings
from build_scripts.setup.task_models import package_step
from build_scripts.steps import Step, run_steps

ENVIRONMENT = BUILD / "judges" / "words"
SILERO = BUILD / "judges" / "silero"
RECORDINGS = BUILD / "recordings"
PRINTS = BUILD / "prints"
FONTS = BUILD / "fonts"
HARD_TEXTS = [
    "", " ", "Ünïcödé İstanbul ΣΑΣ ﬁne naïve café", "日本語とкириллица 中文字符", "a\u0000b\ufffdc\u200bd\u00ade\x07",
    "don't stop... <b>$5+3=8^2</b> [x] `y` ~z|", "é́ e\u0301\u0327 Å ø ß ẞ", "مرحبا بالعالم हिन्दी ไทย 한국어",
    "x" * 99 + " " + "y" * 100 + " " + "z" * 101, "emoji 👩‍👩‍👧 🇩🇪 ☃", "tab\tnew\nline\u00a0nbsp\u3000wide\u2028sep",
    "\ue000private \u0378unassigned ⅣⅤ ½ ②", "«quotes» „low“ ‚‘’ — – ・ 。、",
]  # fmt: skip
MOST_WRONG = 0.05  # of the letters that the judge reads, those that we read otherwise
LINES = (
    "The quick brown fox jumps over", "the lazy dog: 0123456789.",
    "Prices rose by 3.5 % (to $42)", "in 2025, say A&B Ltd.",
)  # fmt: skip
# Drawn prints: height of letters, how far they are turned in degrees, ink and paper.
DRAWN = {
    "small": (14, 0, 0, 255), "large": (64, 0, 0, 255), "huge": (150, 0, 0, 230), "white on black": (28, 0, 255, 0),
    "turned by 8": (30, 8, 20, 240), "turned by -30": (34, -30, 20, 240),
    "downwards": (30, -90, 0, 255), "upwards": (30, 90, 0, 255), "upside down": (30, 180, 0, 255),
    "turned by 50": (30, 50, 0, 255), "turned by 80": (30, 80, 0, 255), "turned by 135": (30, 135, 0, 255),
}  # fmt: skip
LIMIT_S = 600
FILES_A_KIND = 4
CHUNK_S = 0.032
NEAR = 1e-4  # of probabilities and scores
NEAR_SOUNDS = 0.02  # of scores of a model that computes in bytes inside, on sums of another order


async def rows(folder: Path, backend: str, names: Collection[str] = ()) -> list[Row]:
    """What these tasks (all of JUDGES if none is named) find in samples out of packages, beside their judges.

    `folder` is for files between the two.
    """
    found = []
    for name in names or JUDGES:
        judge, packages, samples = JUDGES[name]
        run_steps([package_step(package) for package in packages])
        run_steps([package_step(package, "judge_packages") for package in samples])
        run_steps([_environment_step()])
        os.environ["WEBINFER_MODELS"] = str(MODELS)
        place = folder / name
        place.mkdir()
        found += await judge(place, backend)
    return found


def _environment_step() -> Step:
    title = "install the judges in an environment of their own"
    return environment_step("word judges", title, ENVIRONMENT, settings()["word_judges"]["requirements"])


def _answers(script: str, output: Path, *arguments: object) -> Any:
    """What a script of the judges' environment writes to a JSON file."""
    return answers_of(script, ENVIRONMENT, script, output, arguments, LIMIT_S)


async def _voices(folder: Path, backend: str) -> list[Row]:
    from webinfer.tasks import VoiceActivityDetector

    recordings = sorted(RECORDINGS.glob("[!.]*"))
    answers = _answers("silero_answers.py", folder / "silero.json", SILERO, folder, *recordings)
    found = []
    for model in ("silero_vad_v6", "silero_vad_sequence"):
        with await VoiceActivityDetector.create(model, backend=backend) as task:
            for name, theirs in answers.items():
                speeches = await task.detect((folder / f"{name}.wav").read_bytes())
                ours = np.array([[s.start, s.end] for s in speeches]).reshape(-1, 2)
                judged = np.array(theirs["speech"]).reshape(-1, 2)
                gap = float(np.abs(ours - judged).max(initial=0)) if ours.shape == judged.shape else np.inf
                apart = float(np.abs(np.array(task.probabilities) - theirs["probabilities"]).max())
                distance = f"{gap:.3f} s, {apart:.1e} of a chunk's probability, {task.times['infer_ms']:.0f} ms"
                found.append(Row(model, name, len(ours), len(judged), distance, gap <= CHUNK_S and apart <= NEAR))
    return found


async def _sounds(folder: Path, backend: str) -> list[Row]:
    """The recordings as `_voices` wrote them, window by window, beside LiteRT with the same model."""
    from webinfer.tasks import AudioClassifier

    model = path_of("yamnet") or path_of("yamnet_audio_f")
    if model is None:  # it lies in a repository alone
        try:
            run_steps([package_step("yamnet")])
        except BuildError as error:
            print(f"sounds are not judged: {error}")
            return []
        model = path_of("yamnet") or MODELS / "yamnet.tflite"
    found, recordings = [], sorted(RECORDINGS.glob("[!.]*"))
    _answers("silero_answers.py", folder / "silero.json", SILERO, folder, *recordings)  # which writes what it heard
    with await AudioClassifier.create(model, backend=backend) as task:
        window = round(task.window_s * task.rate)
        for recording in sorted(folder.glob("*.wav")):
            samples = np.load(recording.with_suffix(".npy"))
            await task.classify(recording.read_bytes())
            whole = np.append(samples, np.zeros(-len(samples) % window, np.float32)).reshape(-1, window)
            scores = [run[0].ravel() for run in litert_run(model, [{"x": one} for one in whole])]
            pairs = list(zip(scores, task.windows, strict=True))
            gaps = [abs(float(theirs[one.index]) - one.score) for theirs, some in pairs for one in some]
            same = sum(int(theirs.argmax()) == some[0].index for theirs, some in pairs)
            told = f"{same} windows have the same best class, {max(gaps):.1e} of a score"
            right = same >= len(pairs) - 1 and max(gaps) <= NEAR_SOUNDS
            found.append(Row(task.name, recording.stem, len(pairs), len(scores), told, right))
    return found


async def _files(folder: Path, backend: str) -> list[Row]:
    """Files of this checkout and of what was fetched, of every suffix that there is; and cuts of them."""
    from webinfer.tasks import FileTypeClassifier

    kinds: dict[str, list[Path]] = {}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    fetched = [p for place in (MODELS, RECORDINGS, PRINTS, KERNELS, PAGE_ENGINE) for p in sorted(place.glob("[!.]*"))]
    for path in (*(ROOT / name for name in listed), *fetched):
        if path.is_file():
            kinds.setdefault(path.suffix, []).append(path)
    samples = folder / "files"
    samples.mkdir()
    for path in (path for paths in kinds.values() for path in paths[:FILES_A_KIND]):
        data = path.read_bytes()
        for part, cut in (("", data), ("-end", data[-700:]), ("-start", data[:12])):
            (samples / f"{path.name}{part}").write_bytes(cut)
    answers = _answers("magika_answers.py", folder / "magika.json", folder / "magika.json", samples)
    same, gap = 0, 0.0
    with await FileTypeClassifier.create(backend=backend) as task:
        for name, theirs in answers.items():
            found = await task.classify((samples / name).read_bytes())
            same += [found.label, found.guess] == theirs[:2]
            gap = max(gap, abs(found.score - theirs[2]))
    distance = f"{same} labels the same, {gap:.1e} of a score"
    return [Row(task.name, f"{len(kinds)} suffixes", len(answers), len(answers), distance, same == len(answers))]


async def _sentences(folder: Path, backend: str) -> list[Row]:
    """Lines of this checkout's documentation, and texts of the scripts that Unicode's rules are hardest for."""
    from webinfer.tasks import SentenceEmbedder
    from webinfer.tasks.word_pieces import WordPieces

    docs = [line for page in sorted((WEB / "docs").glob("*.md")) for line in page.read_text().splitlines() if line]
    texts = [*HARD_TEXTS, *docs[::40], " ".join(docs[:200])]
    words = [line for path in sorted((WEB / "docs").glob("*.*")) for line in path.read_text().splitlines()]
    (folder / "texts.json").write_text(json.dumps(texts + words))
    vocabulary, answer = MODELS / "bert_uncased.txt", folder / "minilm.json"
    model = MODELS / "minilm_l6_v2_int8w.onnx"
    answers = _answers("minilm_answers.py", answer, answer, model, vocabulary, folder / "texts.json", len(texts))
    pieces = WordPieces(vocabulary.read_bytes())
    same = sum(pieces.encode(t, 256) == a[0] for t, a in zip(texts + words, answers, strict=True))
    with await SentenceEmbedder.create(backend=backend) as task:
        found = await task.embed(texts)
    gap = max(float(np.abs(np.array(f.values) - a[1]).max()) for f, a in zip(found, answers, strict=False))
    right = same == len(answers) and gap <= NEAR
    distance = f"{same} of {len(answers)} texts have the same pieces, {gap:.1e} of a vector's element"
    return [Row(task.name, "documentation", len(found), len(texts), distance, right)]


def draw(path: Path, size: int, turned: int, ink: int, paper: int) -> None:
    """Writes a print of LINES: height of the letters in pixels, degrees, grey values."""
    font = ImageFont.load_default(size)
    boxes = [font.getbbox(line) for line in LINES]
    page = Image.new("L", (int(max(b[2] for b in boxes)) + 2 * size, int(2 * size * len(LINES)) + size), paper)
    pen = ImageDraw.Draw(page)
    for number, line in enumerate(LINES):
        pen.text((size, size / 2 + 2 * size * number), line, fill=ink, font=font)
    page.rotate(turned, expand=True, fillcolor=paper, resample=Image.Resampling.BICUBIC).convert("RGB").save(path)


def _wrong(read: list[str]) -> int:
    """The letters of LINES to mend in lines that were read."""
    return sum(min(edits(one, line) for one in [*read, ""]) for line in LINES)


async def _prints(folder: Path, backend: str) -> list[Row]:
    """Photographed and drawn prints. Each of the judge's lines is compared with the line of ours that is nearest."""
    from webinfer.tasks import TextReader

    prints = folder / "prints"
    prints.mkdir()
    for name, look in DRAWN.items():
        draw(prints / f"{name}.png", *look)
    pictures = [*sorted(PRINTS.glob("[!.]*")), *sorted(prints.iterdir())]
    answers = _answers("rapidocr_answers.py", folder / "prints.json", folder / "prints.json", *_ocr(), *pictures)
    found = []
    with await TextReader.create(backend=backend, min_score=0.5) as task:  # rapidocr's own
        for picture in pictures:
            image = np.array(Image.open(picture).convert("RGB"))
            lines = await task.read(image)
            theirs = answers[picture.name]
            wrong, away = 0, 0.0
            for words, _, quad in theirs:
                # Upright text begins at another corner of theirs.
                turns = [np.roll(np.array(quad), turn, axis=0) for turn in range(4)]
                gaps = [min(float(np.abs(np.array(line.quad) - turn).max()) for turn in turns) for line in lines]
                nearest = int(np.argmin(gaps)) if gaps else -1
                wrong += edits(lines[nearest].text, words) if gaps else len(words)
                away = max(away, gaps[nearest] if gaps else np.inf)
            rate = wrong / max(sum(len(words) for words, *_ in theirs), 1)
            distance = f"{100 * rate:.1f} % of letters, {away:.1f} px, {task.times['infer_ms']:.0f} ms"
            # We read lines both ways up, the judge does not: it may have fewer, and of what was drawn read less.
            right = rate <= MOST_WRONG
            if not right and picture.stem in DRAWN:
                ours, judged = (
                    _wrong(read) for read in ([line.text for line in lines], [words for words, *_ in theirs])
                )
                distance += f"; wrong are {ours} letters, of the judge's {judged}"
                right = ours <= judged
            right = right and len(lines) >= len(theirs)
            found.append(Row(task.name, picture.stem, len(lines), len(theirs), distance, right))
    return found


async def _pages(folder: Path, backend: str) -> list[Row]:
    """Drawn pages: the letters that we and the judge read wrongly, for each language and each angle."""
    from webinfer.tasks import TextReader

    drawn = pages.draw(folder, FONTS, list(pages.texts()))
    answers = _answers(
        "rapidocr_answers.py", folder / "pages.json", folder / "pages.json", *_ocr(), *(p.path for p in drawn)
    )
    ours, theirs = list[int](), list[int]()
    with await TextReader.create(backend=backend, min_score=0.5) as task:  # rapidocr's own
        for page in drawn:
            lines = await task.read(np.array(Image.open(page.path).convert("RGB")))
            ours.append(pages.wrong_letters(page, [(line.text, line.quad) for line in lines]))
            theirs.append(pages.wrong_letters(page, [(text, quad) for text, _, quad in answers[page.path.name]]))
    return pages.rows(task.name, drawn, ours, theirs)


def _ocr() -> list[Path]:
    return [MODELS / f"{name}.onnx" for name in ("ppocr_v6_det_tiny", "ppocr_v6_rec_tiny_int8w", "ppocr_v2_cls")]


Judge = Callable[[Path, str], Awaitable[list[Row]]]
# Each with the packages of its models, and those of its samples.
JUDGES: dict[str, tuple[Judge, tuple[str, ...], tuple[str, ...]]] = {
    "voices": (_voices, ("silero-vad",), ("recordings", "silero-vad")),
    "sounds": (_sounds, (), ("recordings", "silero-vad")),
    "files": (_files, ("magika",), ()),
    "sentences": (_sentences, ("minilm", "bert-vocabulary"), ()),
    "prints": (_prints, ("ppocr", "rapidocr"), ("prints",)),
    "pages": (_pages, ("ppocr", "rapidocr"), ("letters", "wide-letters")),
}
