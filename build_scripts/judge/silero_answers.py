"""What the package silero-vad hears in recordings. Runs in the judges' own environment.

Usage: python silero_answers.py WHEEL FOLDER RECORDING...: for each it writes FOLDER/<name>.wav and .npy, and all
answers to FOLDER/silero.json. All at 16 kHz: filters between rates are no matter of the package's. Its sequence model
and its own code decide; torch, which it imports, is not needed for that.
"""

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr

RATE = 16000


def package(folder: Path) -> Any:
    """The package's module, read from its unpacked wheel with an empty module in the place of torch."""
    torch: Any = types.ModuleType("torch")
    torch.Tensor, torch.device, torch.set_num_threads = object, str, lambda count: None
    torch.no_grad = lambda: lambda function: function
    sys.modules["torch"] = torch
    sys.path.insert(0, str(folder))
    from silero_vad import sequence_vad

    return sequence_vad


def main(wheel: Path, folder: Path, recordings: list[Path]) -> None:
    """Writes the recordings as WAV files and what the package hears in them."""
    sequence = package(wheel)
    model = sequence.SileroVADSequence(str(wheel / "silero_vad" / "data" / "silero_vad_16k_sequence.onnx"))
    answers = {}
    for path in recordings:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        mono = soxr.resample(samples.mean(axis=1), rate, RATE).astype(np.float32)
        np.save(folder / f"{path.stem}.npy", mono)
        soundfile.write(folder / f"{path.stem}.wav", mono, RATE, subtype="FLOAT")
        found = sequence.get_speech_timestamps_sequence(mono, model)
        answers[path.stem] = {
            "speech": [[s["start"] / RATE, s["end"] / RATE] for s in found],
            "probabilities": model.audio_forward(mono).tolist(),
        }
    (folder / "silero.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
