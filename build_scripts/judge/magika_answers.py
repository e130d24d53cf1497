"""What the package magika says of files. Runs in the judges' own environment.

Usage: python magika_answers.py OUTPUT.json FOLDER: its label, the model's own, and the score, by the file's name.
"""

import json
import sys
from pathlib import Path

from magika import Magika


def main(output: Path, folder: Path) -> None:
    """Writes the answers."""
    classifier = Magika()
    answers = {}
    for path in sorted(folder.iterdir()):
        found = classifier.identify_bytes(path.read_bytes())
        guess = str(found.dl.label)
        answers[path.name] = [str(found.output.label), "" if guess == "undefined" else guess, found.score]
    output.write_text(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
