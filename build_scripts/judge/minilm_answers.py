"""The pieces that the package tokenizers makes of texts, and their meanings by ONNX Runtime. Runs with the judges.

Usage: python minilm_answers.py OUTPUT.json MODEL.onnx VOCABULARY.txt TEXTS.json MEANINGS: [pieces, vector] of
each text, without a vector after the first MEANINGS of them.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import BertWordPieceTokenizer

LONGEST = 256


def main(output: Path, model: Path, vocabulary: Path, texts: Path, meanings: int) -> None:
    """Writes the answers; the mean over the pieces, of length 1, as the model's authors take it."""
    tokenizer = BertWordPieceTokenizer(str(vocabulary), lowercase=True)
    tokenizer.enable_truncation(LONGEST)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    answers = []
    for place, text in enumerate(json.loads(texts.read_text())):
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        if place >= meanings:
            answers.append([ids[0].tolist()])
            continue
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = session.run(None, inputs)[0][0].mean(axis=0)
        answers.append([ids[0].tolist(), (mean / np.linalg.norm(mean)).tolist()])
    output.write_text(json.dumps(answers))


if __name__ == "__main__":
    places = [Path(name) for name in sys.argv[1:5]]
    main(places[0], places[1], places[2], places[3], int(sys.argv[5]))
